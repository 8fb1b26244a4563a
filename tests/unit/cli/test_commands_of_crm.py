"""The command line's table and the daemon's registry agree, and every example can be typed."""

import re
import shlex
from pathlib import Path

import pytest

from haclusterd.adapters.agents.metadata import read_agent_metadata
from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.grammar import Command, Level
from haclusterd.cli.help import TERMS, help_for
from haclusterd.cli.options import parse_globals
from haclusterd.cli.parsing import parse
from haclusterd.cli.render.terminal import Screen
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.ids import AgentReference
from haclusterd.reports.codes import Severity
from haclusterd.verbs.arguments import Kind
from haclusterd.verbs.words import Takes
from tests.administered_clusters import NOW, formed

REPOSITORY = Path(__file__).parents[3]
ALL = [(level, command) for level in (ROOT, *LEVELS) for command in level.commands]
IDS = [f"{level.name}.{command.name}" for level, command in ALL]
ADDED: dict[str, tuple[str, ...]] = {"file": ("text", "source"), "target": (), "cib": ("text", "source"), "follow": ()}
"""Words that `crm` turns into other arguments."""
OF_CRM: dict[str, dict[str, tuple[str, ...]]] = {
    "filter": {"program": ()}, "graph": {"language": (), "picture": ()}, "simulate": {"words": ()},
    "wait_for_startup": {"timeout": ()}, "transition": {"action": (), "words": ()}, "show": {"status": ()},
    "diff": {"forms": ()},
    "status": {"forms": ("form",)}, "secret": {"words": ()}, "set": {"words": ()},
}  # fmt: skip
"""Words that are for `crm` itself."""
OF_TOKENS = {"action": ("digest",)}
"""Which of the verbs about tokens is meant; `crm` makes the token, and sends its digest."""


@pytest.mark.parametrize(("level", "command"), ALL, ids=IDS)
def test_every_argument_is_known_to_the_verb(level: Level, command: Command) -> None:
    if not command.verb:
        return
    verb = registry.find(command.verb)
    assert verb is not None
    options = [each.argument for each in command.options if (command.name, each.argument) != ("simulate", "format")]
    typed = [*(each.name for each in command.parameters), *options]
    named = [*command.fixed, *typed]
    added = {**ADDED, **OF_CRM.get(command.name, {})}
    added |= OF_TOKENS if (level.name, command.name) == ("api", "token") else {}
    names = [other for name in named for other in added.get(name, (name,))]
    schema = {argument.name: argument for argument in verb.arguments}
    assert set(names) <= set(schema)
    for parameter in command.parameters:
        if parameter.name not in added:
            is_list = schema[parameter.name].kind is Kind.WORDS
            assert is_list is (parameter.takes is not Takes.ONE), parameter
            choices = schema[parameter.name].choices
            is_keyword = parameter.is_optional and len(parameter.choices) == 1
            assert choices == () or set(parameter.choices) == set(choices) or (
                is_keyword and set(parameter.choices) <= set(choices)
            )
    required = {argument.name for argument in verb.arguments if argument.is_required}
    assert required <= set(names)


@pytest.mark.parametrize(("level", "command"), ALL, ids=IDS)
def test_every_example_can_be_typed(level: Level, command: Command) -> None:
    assert command.examples
    for example in command.examples:
        text = example.removeprefix('eval "$(').removesuffix(')"').partition(" <")[0]
        words = shlex.split(text)
        if words[0] == "crm":
            invocation = parse(parse_globals(words[1:]).words)
            assert invocation.command is command or invocation.command.name == command.name
        else:
            assert parse(words, level).command is command


@pytest.mark.parametrize(("level", "command"), ALL, ids=IDS)
def test_every_command_has_help_of_at_most_80_columns(level: Level, command: Command) -> None:
    lines = help_for(Screen(), [word for word in (level.name, command.name) if word])
    assert lines[0].startswith("Usage: crm ")
    assert command.help + "." in lines
    assert [line for line in lines if len(line) > 80 and not line.startswith(("Usage", "  crm"))] == []


def test_help_of_levels_fits_80_columns() -> None:
    for words in ([], *([level.name] for level in LEVELS)):
        assert [line for line in help_for(Screen(), words) if len(line) > 80] == []


def test_names_are_not_ambiguous_within_a_level() -> None:
    for level in (ROOT, *LEVELS):
        names = [name for command in level.commands for name in (command.name, *command.aliases)]
        assert len(names) == len(set(names)), level.name


def test_every_verb_can_be_reached_or_is_internal() -> None:
    reached = {command.verb for _, command in ALL} | {"api.token_list", "api.token_revoke"}
    internal = {"cluster.names", "configure.script", "history.follow", "history.status", "metrics", "node.attributes",
                "tool.run"}
    assert set(registry.VERBS) - reached == internal


def test_words_of_status_are_explained() -> None:
    for term in TERMS:
        assert help_for(Screen(), [term])[0].startswith(f"{term}: ")
    assert " ".join(help_for(Screen(), ["DC"])).startswith("DC: the node that decides")
    assert help_for(Screen(), ["fencing"])[0].startswith("Usage: crm fencing"), "a level is no word"


def test_the_help_of_a_word_that_stands_in_a_level_is_found_without_the_level() -> None:
    assert help_for(Screen(), ["move"]) == help_for(Screen(), ["resource", "move"])
    nothing = help_for(Screen(), ["mvoe"])
    assert "Usage: crm  COMMAND" not in "\n".join(nothing)
    assert "Usage: crm [OPTIONS] LEVEL COMMAND [ARGUMENTS]" in nothing


def test_examples_name_parameters_that_their_agent_has() -> None:
    metadata = (REPOSITORY / "tests/golden/agents/http-service.xml").read_text()
    known = set(re.findall(r'<parameter name="(\w+)"', metadata))
    examples = [example for _, command in ALL for example in command.examples]
    primitive = next(each for each in examples if "http-service params" in each)
    named = re.findall(r"(\w+)=", primitive.partition(" params ")[2].partition(" op ")[0])
    named += [each.split(".")[1].split()[0] for each in examples if each.startswith("crm configure set web.")][:1]
    named += [each.split()[5] for each in examples if each.startswith("crm resource param web set")]
    assert named
    assert set(named) <= known, named


PRIMITIVES = ("web", "db", "address", "shop", "blog", "log", "ipmi1", "pdu-a", "pdu-b")
STATEMENTS = [
    example
    for level in LEVELS
    for command in level.commands
    if command.is_statement and command.verb == "configure.statement"
    for example in command.examples
]


def prelude(own: str) -> str:
    """Return a configuration that has what the examples name, but for one object."""
    agent = {"ipmi1": "stonith:fence_local", "pdu-a": "stonith:fence_local", "pdu-b": "stonith:fence_local"}
    lines = [f"primitive {name} {agent.get(name, 'ocf:haclusterd:stateful')}" for name in PRIMITIVES if name != own]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("example", STATEMENTS)
def test_every_example_of_a_statement_means_something(example: str) -> None:
    """It is read and judged as what a person would commit, with the agents that come with the package."""
    agents = {}
    for path in (REPOSITORY / "tests/golden/agents").glob("*.xml"):
        provider = "stonith" if path.stem.startswith("fence_") else "ocf:haclusterd"
        reference = AgentReference.parse(f"{provider}:{path.stem}")
        agents[str(reference)] = read_agent_metadata(path.read_text(), reference).facts()
    words = shlex.split(example)[2:]
    typed = " ".join(words) if words[0] == "xml" else example.removeprefix("crm configure ")
    context = Context(formed().cib, NOW, "root", agents=agents)
    before = prelude("" if words[0] == "monitor" else words[1])
    asked = {"text": before + typed, "source": "example.crm"}
    reports = registry.run("configure.verify", asked, context).reports
    line = before.count("\n") + 1
    errors = [each for each in reports if each.severity is Severity.ERROR and each.place and each.place.line == line]
    assert [str(each.code) for each in errors] == (["NOT_YET"] if words[0] == "bundle" else []), errors

