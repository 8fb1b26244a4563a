"""Every word of crmsh and pcs is a command here or answers with what to type; no guess stops or removes anything."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.grammar import Level
from haclusterd.cli.options import parse_globals
from haclusterd.cli.other_tools import DEEPER, OTHER_TOOLS
from haclusterd.cli.parsing import UsageError, find_command, find_level, parse
from haclusterd.commands import registry
from haclusterd.verbs.verb import Permission

REPOSITORY = Path(__file__).parents[3]
CRMSH = {
    "" if level == "root" else level: words
    for level, words in tomllib.loads((REPOSITORY / "docs/reference/crmsh-words.toml").read_text()).items()
}
PCS = {
    "": "acl alert booth client cluster config constraint dr host node pcsd property qdevice quorum resource status "
        "stonith tag",
    "alert": "create delete recipient remove show update",
    "cluster": "auth authkey cib cib-push cib-upgrade config corosync destroy disable edit enable kill link node "
               "reload remove report setup start status stop sync uidgid verify",
    "constraint": "colocation config delete location order ref remove ticket",
    "host": "auth deauth",
    "node": "attribute maintenance standby unmaintenance unstandby utilization",
    "property": "config defaults describe set unset",
    "quorum": "config device expected-votes status unblock update",
    "resource": "agents ban bundle cleanup clear clone config create debug-demote debug-monitor debug-promote "
                "debug-start debug-stop defaults delete describe disable enable failcount group list manage meta move "
                "move-with-constraint op promotable providers refresh relations relocate remove restart safe-disable "
                "standards status unclone ungroup unmanage update utilization",
    "stonith": "cleanup config confirm create delete describe disable enable fence history level list meta op refresh "
               "remove sbd status update update-scsi-devices",
    "tag": "config create delete list remove update",
}  # fmt: skip
WORDS = sorted({(level, word) for tool in (CRMSH, PCS) for level, words in tool.items() for word in words.split()})
ENTRIES = [
    (level, word, text) for table in (OTHER_TOOLS, DEEPER) for level, words in table.items()
    for word, text in words.items()
]  # fmt: skip


def answer(words: list[str]) -> UsageError | None:
    """Type words; return what is said when there is no such command."""
    try:
        parse(words)
    except UsageError as error:
        return error if error.problem.startswith("there is no command") else None
    return None


@pytest.mark.parametrize(("level", "word"), WORDS, ids=[" ".join(each).strip() for each in WORDS])
def test_every_word_is_a_command_or_says_what_to_type(level: str, word: str) -> None:
    objection = answer([each for each in (level, word) if each])
    if objection is not None:
        assert "did you mean" not in objection.remedy
        assert "--help" not in objection.remedy.replace("crm --help shows", "")


@pytest.mark.parametrize(("level", "word", "text"), ENTRIES, ids=[f"{level} {word}" for level, word, _ in ENTRIES])
def test_what_is_said_to_type_is_a_command(level: str, word: str, text: str) -> None:
    for typed in re.findall(r"\bcrm ((?:-o json |--cib-file FILE )?[a-z][^;:,()]*(?::[^;,()]*)?)", text):
        words = parse_globals(shlex.split(typed.replace("NAME: ", "NAME ").partition(" > ")[0])).words
        below = find_level(words[0]) if words[0] not in [command.name for command in ROOT.commands] else None
        assert below is not None or find_command(ROOT, words[0])
        if below is not None and len(words) > 1:
            find_command(below, words[1])


@pytest.mark.parametrize("level", [ROOT, *LEVELS], ids=lambda level: level.name or "root")
def test_no_entry_hides_a_command(level: Level) -> None:
    named = {name for command in level.commands for name in (command.name, *command.aliases)}
    assert named.isdisjoint(OTHER_TOOLS.get(level.name, {}))


HARMLESS = {"start", "manage", "online", "ready", "activate", "export", "backup", "attribute", "status-attr",
            "utilization", "meta", "param", "failcount", "off", "validate-all", "accept"}  # fmt: skip


def test_what_is_never_guessed_is_everything_that_takes_something_away() -> None:
    guessed = {
        command.name
        for level in LEVELS
        for command in level.commands
        if command.is_guessed and command.verb and command.verb != "configure.statement"
        and registry.VERBS[command.verb].permission is not Permission.READ
    }  # fmt: skip
    assert guessed == HARMLESS


def slips(word: str) -> set[str]:
    """Return what a word becomes by one slip, and by leaving its end away."""
    found = {word[:n] + word[n + 1 :] for n in range(len(word))}
    found |= {word[:n] + word[n + 1 : n + 2] + word[n : n + 1] + word[n + 2 :] for n in range(len(word) - 1)}
    return found | {word + "s", "un" + word, "re" + word}


def test_no_guess_stops_removes_or_restores() -> None:
    typed = {word for _, word in WORDS} | {name for level in (ROOT, *LEVELS) for name in level_words(level)}
    for level in (ROOT, *LEVELS):
        for word in sorted(set().union(*map(slips, typed))):
            objection = answer([each for each in (level.name, word) if each])
            guess = re.search(r"did you mean ([^?]+)\?", objection.remedy) if objection is not None else None
            if guess is not None:
                is_level = level is ROOT and find_level(guess[1]) is not None
                assert is_level or find_command(level, guess[1]).is_guessed, (level.name, word, objection)


def level_words(level: Level) -> list[str]:
    """Return the names of a level's commands."""
    return [command.name for command in level.commands]


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("maintenance action web stop", "not supported: run the agent by hand"),
        ("resource disable web", "crm resource stop NAME"),
        ("resorce", "did you mean resource?"),
        ("cluster sotp", "see: crm cluster --help"),
        ("resource op add web monitor interval=10s", "crm configure edit NAME; crm configure monitor"),
        ("resource op defaults update timeout=30s", "crm configure op_defaults NAME=VALUE"),
        ("stonith level add 1 n1 power", "crm configure fencing_topology NODE: DEVICE"),
        ("stonith level clear", "crm configure edit fencing_topology"),
        ("constraint location web prefers n1", "crm configure location NAME RESOURCE 100: NODE"),
        ("constraint location web avoids n1", "crm configure location NAME RESOURCE -inf: NODE"),
        ("constraint location remove here", "crm configure delete NAME"),
        ("property set a=b", "crm configure property NAME=VALUE"),
        ("cluster cib-push cib.xml", "crm configure load xml replace FILE --dry-run"),
        ("cluster kill", "on the node itself: systemctl stop haclusterd"),
        ("cluster node add-remote r1", "not supported: there are no remote and guest nodes"),
        ("quorum unblock", "bring voters back"),
    ],
)
def test_what_is_said(line: str, remedy: str) -> None:
    objection = answer(line.split())
    assert objection is not None
    assert objection.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        ("resource meta web target-role=Started", "is not one of: set, delete, show", "crm resource meta RESOURCE set"),
        ("resource utilization web cpu=1", "is not one of: set, delete, show", "crm resource utilization RESOURCE set"),
        ("node attribute n1 rack=1", "is not one of: set, delete, show", "crm node attribute NODE set NAME VALUE"),
        ("status resources", "is not one of: simple", "crm resource status"),
        ("stonith history show n1", "too many words", "crm fencing history NODE"),
    ],
)
def test_a_command_that_is_here_says_how_its_words_are_written(line: str, problem: str, remedy: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(line.split())
    assert problem in raised.value.problem
    assert raised.value.remedy.startswith(remedy)
