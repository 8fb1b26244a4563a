"""Single settings of resources: what is set, and what is not for want of a value."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome
from haclusterd.commands.planning.preview import preview
from haclusterd.model.agents import AgentFacts, ParameterFacts
from haclusterd.model.json_value import Json
from haclusterd.reports.codes import Code
from tests.administered_clusters import NOW, Cluster, running


@pytest.mark.parametrize(("section", "name"), [("meta", "priority"), ("params", "state"), ("utilization", "cpu")])
def test_a_value_that_was_forgotten_is_asked_for_instead_of_being_empty(section: str, name: str) -> None:
    cluster = running()
    arguments: dict[str, Json] = {"resource": "db", "section": section, "action": "set", "name": name}
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    outcome = registry.run("resource.setting", arguments, context)
    assert [report.code for report in outcome.reports] == [Code.MISSING_ARGUMENT]
    assert outcome.commands == ()
    with_value = registry.run("resource.setting", {**arguments, "value": "1"}, context)
    assert Code.CONFIGURATION_CHANGED in [report.code for report in with_value.reports]


def asked(cluster: Cluster, *words: str, is_live: bool = True) -> tuple[Context, AnyOutcome]:
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live if is_live else None)
    names = ("resource", "section", "action", "name", "value")
    return context, registry.run("resource.setting", dict(zip(names, words, strict=False)), context)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("db meta set target-role Stopped", "this stops web, address on n1; stops db on n2"),
        ("db meta set priority 5", "nothing that runs is interrupted"),
        ("db utilization set cpu 1", "nothing that runs is interrupted"),
    ],
)
def test_who_changes_a_setting_is_shown_what_that_does_to_what_runs(words: str, said: str) -> None:
    cluster = running()
    context, outcome = asked(cluster, *words.split())
    assert outcome.reports[-1].parameters["what"] == said
    assert said not in [each.parameters.get("what") for each in preview(context, outcome).reports]


def test_in_a_file_nothing_runs() -> None:
    _, outcome = asked(running(), "db", "params", "set", "state", "/x", is_live=False)
    assert outcome.reports[-1].code is Code.CONFIGURATION_CHANGED


def test_a_secret_is_not_said_again() -> None:
    _, outcome = asked(running(), "db", "params", "set", "passwd", "hush")
    assert not [each for each in outcome.reports if "hush" in str(each)]
    assert "passwd=******" in " ".join(str(each) for each in outcome.reports)


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        ("db params show state", "state is not set for db", "the agent's default is /run/db; those that are set: none"),
        ("db params show fake", "fake is not set for db", "the agent has no default; those that are set: none"),
        (
            "db params show stat", "stat is not set for db",
            "the agent has no such parameter, did you mean state?; those that are set: none",
        ),
        ("db meta show priority", "priority is not set for db", "those that are set: none"),
    ],
)  # fmt: skip
def test_what_is_not_set_is_said_with_what_counts_instead(words: str, message: str, remedy: str) -> None:
    cluster = running()
    parameters = {"state": ParameterFacts(default="/run/db"), "fake": ParameterFacts()}
    agents = {"ocf:haclusterd:dummy": AgentFacts(parameters=parameters)}
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, agents=agents)
    names = ("resource", "section", "action", "name")
    (said,) = registry.run("resource.setting", dict(zip(names, words.split(), strict=True)), context).reports
    assert (said.code, said.message, said.remedy) == (Code.NOT_SET, message, remedy)
