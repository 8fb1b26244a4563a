"""What words mean: levels, prefixes, arguments, options."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.cli.options import parse_globals
from haclusterd.cli.parsing import UsageError, parse
from haclusterd.reports.exit_codes import ExitStatus


@pytest.mark.parametrize(
    ("line", "command", "arguments"),
    [
        ("status", "status", {}),
        ("resource move web n2", "move", {"resource": "web", "node": "n2"}),
        ("res mov web", "move", {"resource": "web"}),
        ("rsc migrate web --constraint", "move", {"resource": "web", "constraint": True}),
        ("resource stop a b", "stop", {"resources": ["a", "b"]}),
        ("resource refresh", "cleanup", {"reprobe": True}),
        ("resource why web --on n2", "why", {"resource": "web", "node": "n2"}),
        ("resource why web --on=n2", "why", {"resource": "web", "node": "n2"}),
        ("configure load up f.yaml --set A=1 --set B=2", "load",
         {"mode": "update", "file": "f.yaml", "variables": ["A=1", "B=2"]}),
        ("configure primitive w Dummy op monitor --odd", "primitive",
         {"words": ["primitive", "w", "Dummy", "op", "monitor", "--odd"]}),
        ("cfg prim w Dummy", "primitive", {"words": ["primitive", "w", "Dummy"]}),
        ("configure delete -- -x", "delete", {"ids": ["-x"]}),
        ("monitor -1", "monitor", {"once": True}),
        ("configure load update -", "load", {"mode": "update", "file": "-"}),
        ("configure load xml replace f", "load", {"format": "xml", "mode": "replace", "file": "f"}),
        ("configure verify f", "verify", {"file": "f"}),
        ("configure verify xml f", "verify", {"format": "xml", "file": "f"}),
        ("history events --limit 5 --node n1", "events", {"limit": 5, "node": "n1"}),
        ("cluster setup --node a=h:1 --node b=h:2", "setup", {"node": ["a=h:1", "b=h:2"]}),
    ],
)  # fmt: skip
def test_what_is_understood(line: str, command: str, arguments: dict[str, Any]) -> None:
    invocation = parse(line.split())
    assert invocation.command.verb.endswith(command) or invocation.command.name == command
    assert invocation.arguments == arguments


@pytest.mark.parametrize(
    ("line", "problem", "status"),
    [
        ("", "a command is missing", 64),
        ("resource", "a command of resource is missing", 64),
        ("resource s", "s is ambiguous: scores, secret, start, status, stop", 109),
        ("c", "c is ambiguous: cib, cibstatus, cluster, completion, configure", 109),
        ("resource teleport", "there is no command teleport in resource", 64),
        ("--teleport status", "there is no option --teleport", 64),
        ("resource stop", "resource stop: RESOURCES... is missing", 64),
        ("resource move a b 5min force c", "resource move: too many words: c", 64),
        ("resource move a --constraint=1", "--constraint takes no value", 64),
        ("resource why a --on", "--on needs a value: why not on this node", 64),
        ("configure show --format toml", "--format: 'toml' is not one of: crm, yaml, xml", 64),
        ("configure usr c a", "there is no command usr in configure", 64),
    ],
)
def test_what_is_not(line: str, problem: str, status: int) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    assert caught.value.problem.startswith(problem)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("line", "words", "expected"),
    [
        ("status", "status", {}),
        ("-o json status", "status", {"output": "json"}),
        ("node standby n1 -w -n", "node standby n1", {"wait_ms": 60_000, "dry_run": True}),
        ("node standby --wait=90s n1", "node standby n1", {"wait_ms": 90_000}),
        ("resource move web --no-wait -F", "resource move web", {"wait_ms": 0, "force": True}),
        ("-f script", "", {"script": "script"}),
        ("--file=script configure", "configure", {"script": "script"}),
        ("configure delete -f x", "configure delete x", {"force": True}),
        ("-n configure primitive p Dummy -n params", "configure primitive p Dummy -n params", {"dry_run": True}),
        ("configure primitive p Dummy -n", "configure primitive p Dummy", {"dry_run": True}),
        ("configure primitive p Dummy --force --reason why", "configure primitive p Dummy",
         {"force": True, "reason": "why"}),
        ("configure group g a b --wait=5s --reason=x -o json", "configure group g a b",
         {"wait_ms": 5000, "reason": "x", "output": "json"}),
        ("configure location l a rule -inf: option eq -n", "configure location l a rule -inf: option eq -n",
         {"dry_run": False}),
        ("configure group g --help", "configure group g", {"wants_help": True}),
        ("configure primitive --help", "configure primitive", {"wants_help": True}),
        ("resource stop -- -h", "resource stop -- -h", {}),
        ("--reason=x --socket s --cib-file c status", "status", {"reason": "x", "socket": "s", "cib_file": "c"}),
    ],
)
def test_options_of_every_command(line: str, words: str, expected: dict[str, Any]) -> None:
    options = parse_globals(line.split())
    assert options.words == words.split()
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize("line", ["-o", "-o yaml status", "--wait=soon status", "-D loud status"])
def test_options_that_are_wrong(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_globals(line.split())
    assert caught.value.status in (ExitStatus.USAGE, ExitStatus.BAD_VALUE)


WORDS = ["resource", "configure", "move", "show", "-o", "--", "-", "--wait", "p", "", "-f", "="]


@given(st.lists(st.sampled_from(WORDS)))
def test_no_words_make_it_raise_anything_else(words: list[str]) -> None:
    with contextlib.suppress(UsageError):
        parse(parse_globals(words).words)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("cleanup web", "there is: crm fencing cleanup, crm resource cleanup"),
        ("configure move web", "there is: crm resource move"),
        ("configure resource", "there is: crm resource"),
        ("configure -f site.crm", "it comes before the level: crm -f site.crm configure"),
        ("resource -c trial", "it comes before the level: crm -c trial resource"),
        ("geo", "no booth here: a site's ticket is granted by hand, crm ticket grant TICKET"),
    ],
)
def test_a_word_of_another_level_is_answered_with_that_level(words: str, remedy: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(words.split())
    assert raised.value.remedy == remedy


def test_a_negative_number_is_no_option() -> None:
    assert parse(["history", "transition", "-2"]).arguments == {"transition": "-2"}


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("cluster remove n3 -y", {"node": "n3"}),
        ("cluster join -c n1 -y", {"host": "n1"}),
        ("cluster init -n web -i eth0 -y", {"name": "web", "interface": ["eth0"]}),
        ("resource cleanup web n1 force", {"resource": "web", "node": "n1", "forced": "force"}),
        ("configure commit force", {"words": ["force"]}),
        ("options wait true", {"value": "true"}),
        ("report -f 2h", {"since": "2h"}),
        ("node standby", {}),
        ("node standby n1 n2 n3", {"node": "n1", "others": ["n2", "n3"]}),
        ("node standby n1 n2 reboot", {"node": "n1", "others": ["n2"], "lifetime": "reboot"}),
        ("node standby reboot n1", {"node": "reboot", "others": ["n1"]}),
        ("node standby reboot", {"lifetime": "reboot"}),
        ("node standby --all reboot", {"all": True, "lifetime": "reboot"}),
        ("node online --all", {"all": True}),
        ("node ready n1 n2", {"node": "n1", "others": ["n2"], "ready": True}),
    ],
)
def test_what_crmsh_types_is_read(line: str, arguments: dict[str, Any]) -> None:
    assert parse(parse_globals(line.split()).words).arguments == arguments


OF_REPORT = "crm report [-f FROM] [-t TO] [FILE], which asks the cluster; on each node for its own journal"


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("status json", "crm -o json status"),
        ("status html", "the web page, docs/howto/web-page.md; for programs: crm status xml"),
        ("verify scores", "crm resource scores"),
        ("report -M r", OF_REPORT),
    ],
)
def test_what_crmsh_types_and_is_not_here_names_what_is(line: str, remedy: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(parse_globals(line.split()).words)
    assert raised.value.remedy == remedy


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("node n1 standby", "the command comes first: crm node standby n1"),
        ("resource web why", "the command comes first: crm resource why web"),
        ("node move web", "there is: crm resource move"),
        ("api show", "see: crm api --help"),
        ("pcs status", "without that word: crm status"),
        ("pcs resource create web ocf:heartbeat:apache", "crm configure primitive NAME AGENT params NAME=VALUE op "
                                                         "monitor interval=10s"),
        ("pcs node standby n1", "without that word: crm node standby n1"),
    ],
)  # fmt: skip
def test_what_to_type_instead_is_said(line: str, remedy: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(line.split())
    assert error.value.remedy == remedy


def test_nodes_are_listed_as_crmsh_does() -> None:
    assert parse(["node", "list"]).command.name == "show"
