"""What is shown of a configuration, what a change answers for, and what a preview shows."""

import pytest

from haclusterd.cib.commands import ChangeConfiguration
from haclusterd.commands import registry
from haclusterd.commands.attribute_sets import with_value, without
from haclusterd.commands.configure.view import masked, part_of
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.planning.preview import preview
from haclusterd.model.agents import AgentFacts, ParameterFacts
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import AttributeSet, Primitive, effective
from haclusterd.model.ids import ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.rules import DateExpression, Rule
from haclusterd.model.words import HIDDEN
from haclusterd.reports.codes import Code, Severity
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.configuration import ConfigurationText, Judgement, PlaceInText
from tests.administered_clusters import CONFIGURATION, NOW, SITUATIONS, Cluster, configured, formed, running

FACTS = {
    "ocf:haclusterd:dummy": AgentFacts(parameters={"key": ParameterFacts(is_private=True), "state": ParameterFacts()}),
    "ocf:haclusterd:http-service": AgentFacts(parameters={"command": ParameterFacts(is_required=True)}),
    "stonith:fence_local": AgentFacts(parameters={"nodes_dir": ParameterFacts()}),
}


def ask(cluster: Cluster, verb: str, *, is_forced: bool = False, **arguments: Json) -> Outcome:
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, agents=FACTS, is_forced=is_forced)
    return registry.run(verb, arguments, context)


def codes(outcome: Outcome) -> list[Code]:
    return [report.code for report in outcome.reports]


# One name in blocks of pairs

ONE = AttributeSet("p-meta_attributes", (("a", "1"), ("b", "2")))
WEAK = AttributeSet("weak", (("b", "3"),), score=-5)
AT_NIGHT = AttributeSet(
    "at-night", (("b", "4"),), rule=Rule("night", conditions=(DateExpression("lt", end="2099-01-01"),)), score=9
)
TAKEN = replace(AT_NIGHT, id="p-meta_attributes")


@pytest.mark.parametrize(
    ("sets", "name", "value", "expected"),
    [
        ((), "a", "1", (AttributeSet("p-meta_attributes", (("a", "1"),)),)),
        ((ONE,), "a", "1", (ONE,)),
        ((ONE,), "a", "9", (AttributeSet("p-meta_attributes", (("a", "9"), ("b", "2"))),)),
        ((ONE,), "c", "3", (AttributeSet("p-meta_attributes", (("a", "1"), ("b", "2"), ("c", "3"))),)),
        ((ONE, WEAK), "b", "7", (
            AttributeSet("p-meta_attributes", (("a", "1"), ("b", "7"))), AttributeSet("weak", (("b", "7"),), score=-5)
        )),
        ((AT_NIGHT, WEAK), "c", "3", (AT_NIGHT, replace(WEAK, pairs=(("b", "3"), ("c", "3"))))),
        ((AT_NIGHT,), "c", "3", (AT_NIGHT, AttributeSet("p-meta_attributes", (("c", "3"),)))),
        ((TAKEN,), "c", "3", (TAKEN, AttributeSet("p-meta_attributes-2", (("c", "3"),)))),
        ((AT_NIGHT,), "b", "7", (
            replace(AT_NIGHT, pairs=(("b", "7"),)), AttributeSet("p-meta_attributes", (("b", "7"),))
        )),
    ],
)  # fmt: skip
def test_setting_a_value(
    sets: tuple[AttributeSet, ...], name: str, value: str, expected: tuple[AttributeSet, ...]
) -> None:
    after = with_value(sets, owner="p", section="meta", name=name, value=value)
    assert after == expected
    assert effective(after)[name] == value, "also when no rule holds any more"


def test_taking_a_name_out() -> None:
    assert without((ONE, WEAK), "b") == (AttributeSet("p-meta_attributes", (("a", "1"),)),)
    assert without((ONE,), "z") == (ONE,)


# What is shown


def test_secrets_are_hidden_by_name_and_by_what_the_agent_says() -> None:
    configuration = configured(
        "primitive p ocf:haclusterd:dummy params key=1 state=2 password=3 db_password=4 api_token=5 "
        "op monitor interval=10s passwd=6"
    )
    shown = masked(configuration, FACTS).resources[ResourceId("p")]
    assert isinstance(shown, Primitive)
    assert dict(shown.parameters[0].pairs) == {
        "key": HIDDEN, "state": "2", "password": HIDDEN, "db_password": HIDDEN, "api_token": HIDDEN
    }  # fmt: skip
    assert shown.operations[0].parameters[0].pairs == (("passwd", HIDDEN),)


@pytest.mark.parametrize("form", ["crm", "yaml"])
def test_no_form_of_showing_gives_a_secret_away(form: str) -> None:
    cluster = formed()
    cluster.configure("primitive p ocf:haclusterd:dummy params password=hunter2")
    data = ask(cluster, "configure.show", format=form, structured=True).data
    assert "hunter2" not in str(data)
    assert "hunter2" in str(ask(cluster, "configure.show", format=form, structured=True, secrets=True).data)


def test_a_part_is_what_was_asked_for() -> None:
    part = part_of(configured(CONFIGURATION), ["site", "db-first", "rsc-options"])
    assert (list(part.resources), list(part.constraints), len(part.resource_defaults)) == (["site"], ["db-first"], 1)


# What a change answers for


def test_an_old_fault_does_not_keep_anybody_from_acting() -> None:
    cluster = running()
    cluster.configure("location broken nothing 5: n1")
    assert not ask(cluster, "node.standby", node="n2").is_refused
    assert codes(ask(cluster, "configure.verify")) == [Code.UNKNOWN_RESOURCE]


def test_verification_answers_each_fault_with_its_place_and_remedy() -> None:
    outcome = ask(running(), "configure.verify", text="primitive 9x dummy", source="site.crm")
    assert isinstance(outcome.answer, Judgement)
    (fault,) = outcome.answer.reports
    assert as_json(outcome.answer)["is_valid"] is False
    assert (fault.code, fault.severity, fault.message) == ("BAD_ID", "error", "'9x' cannot be an id")
    assert (fault.parameters, fault.place) == ({"id": "9x"}, PlaceInText("site.crm", 1, 11))
    assert fault.remedy == "start with a letter or _, continue with letters, digits, '.', '-' and '_'"


def test_a_new_fault_refuses_the_change() -> None:
    outcome = ask(running(), "configure.statement", words=["location", "l", "nothing", "5:", "n1"])
    assert codes(outcome) == [Code.UNKNOWN_RESOURCE]
    assert outcome.commands == ()


def test_a_change_is_proposed_against_the_version_it_was_made_from() -> None:
    cluster = running()
    (command,) = ask(cluster, "configure.delete", ids=["db-first"]).commands
    assert isinstance(command, ChangeConfiguration)
    assert (command.expected_epoch, command.author) == (7, "root@n1")


@pytest.mark.parametrize("names", [("fencing-timeout", "stonith-timeout"), ("stonith-timeout", "fencing-timeout")])
def test_a_property_that_is_set_replaces_its_other_spelling(names: tuple[str, str]) -> None:
    cluster = running()
    for name, value in zip(names, ("50s", "70s"), strict=True):
        text = f"property {name}={value}\n"
        (command,) = ask(cluster, "configure.script", text=text, source="s").commands
        cluster.do(command)
    pairs = dict(pair for block in cluster.cib.configuration.properties for pair in block.pairs)
    assert {name: value for name, value in pairs.items() if name in names} == {names[1]: "70s"}


def test_a_script_is_read_in_order() -> None:
    cluster = running()
    text = "delete db-first\norder db-first Optional: db site\nproperty node-timeout=3s\n"
    outcome = ask(cluster, "configure.script", text=text, source="s")
    assert codes(outcome) == [Code.CONFIGURATION_CHANGED]
    (command,) = outcome.commands
    cluster.do(command)
    assert str(cluster.cib.configuration.constraints).count("OPTIONAL") == 1


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("primitive\n\nlocation l db 5 n1\n", ["s:1:1", "s:3:15"]),
        ("# fine\n\ndelete nothing\n", ["s:3"]),
        ("primitive a ocf:haclusterd:dummy \\\n  op monitor\ndelete nothing\nlocation l a x: n1", ["s:3", "s:4:14"]),
    ],
)
def test_a_script_tells_every_fault_with_its_place(text: str, places: list[str]) -> None:
    outcome = ask(running(), "configure.script", text=text, source="s")
    assert [str(report.place) for report in outcome.reports] == places


def test_replacing_keeps_the_nodes_only() -> None:
    cluster = running()
    cluster.configure("node n1 attributes rack=1")
    text = "primitive a ocf:haclusterd:dummy op monitor interval=10s"
    outcome = ask(cluster, "configure.load", is_forced=True, mode="replace", text=text, source="a.crm")
    assert codes(outcome)[0] is Code.UNSAFE
    for command in outcome.commands:
        cluster.do(command)
    configuration = cluster.cib.configuration
    assert (list(configuration.nodes), list(configuration.resources)) == (["n1"], ["a"])
    assert (configuration.constraints, configuration.resource_defaults) == ({}, ())


@pytest.mark.parametrize(
    ("source", "text", "problem"),
    [
        ("a.crm", "", "this removes every resource: address, web, db, power, site; running: address, web, db, power"),
        ("a.yaml", "resources: []\n", "this removes every resource: address, web, db, power, site; running: "
                                      "address, web, db, power"),
        ("a.crm", CONFIGURATION.replace("location db", "#").replace("order db", "#").replace("primitive db", "#"),
         "this removes a resource: db; running: db"),
    ],
)  # fmt: skip
def test_a_replacement_that_removes_resources_names_them_and_must_be_meant(
    source: str, text: str, problem: str
) -> None:
    arguments: dict[str, Json] = {"mode": "replace", "text": text, "source": source}
    refused = ask(running(), "configure.load", **arguments)
    errors = [(each.code, each.message) for each in refused.reports if each.severity is Severity.ERROR]
    assert errors == [(Code.UNSAFE, problem)]
    assert refused.commands == ()
    meant = ask(running(), "configure.load", is_forced=True, **arguments)
    assert len(meant.commands) == 1
    assert problem in [each.message for each in meant.reports]


def test_a_replacement_that_removes_a_resource_is_shown_without_being_meant() -> None:
    cluster = running()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, agents=FACTS, is_preview=True)
    outcome = registry.run("configure.load", {"mode": "replace", "text": "", "source": "a.crm"}, context)
    assert preview(context, outcome).is_refused is False


def test_a_replacement_that_removes_nothing_is_not_asked_about() -> None:
    text = CONFIGURATION + "primitive more ocf:haclusterd:dummy op monitor interval=10s timeout=20s\n"
    outcome = ask(running(), "configure.load", mode="replace", text=text, source="a.crm")
    assert Code.UNSAFE not in codes(outcome)
    assert len(outcome.commands) == 1


# Previews


def test_a_preview_proposes_nothing_and_says_what_would_happen() -> None:
    cluster = running()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    outcome = preview(context, ask(cluster, "resource.stop", resources=["db"]))
    assert outcome.commands == ()
    assert codes(outcome)[-1] is Code.DRY_RUN
    assert isinstance(outcome.data, dict)
    assert "stop db on n2" in [action["text"] for action in outcome.data["actions"]]


def test_a_preview_without_quorum_says_so_and_plans_nothing_that_needs_one() -> None:
    cluster = SITUATIONS["no-quorum"]()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    outcome = preview(context, ask(cluster, "configure.statement", words=["property", "batch-limit=3"]))
    assert Code.NO_QUORUM_LEFT in [each.code for each in outcome.reports]


def test_a_path_needs_no_word_for_the_section() -> None:
    outcome = ask(running(), "configure.set", path="db.meta.priority", value="1")
    assert "the word meta is left out: ID.priority" in outcome.reports[0].parameters["problem"]


def test_a_preview_of_a_refusal_is_the_refusal() -> None:
    cluster = running()
    refused = ask(cluster, "resource.stop", resources=["nothing"])
    assert preview(Context(Cib(), NOW, "root"), refused).reports == refused.reports


def test_what_is_wrong_in_grammar_and_in_meaning_is_reported_in_one_round() -> None:
    cluster = running()
    text = (
        "primitive a ocf:haclusterd:dummy op\n"
        "primitive b ocf:haclusterd:dummy op monitor interval=10s meta target-role=Sarted\n"
        "group g a b\nlocation l a 5: n1\nlocation m lost 5: n1\nproperty batch-limit=many\norder o b: lost\n"
    )
    asked = {"text": text, "source": "x.crm", "mode": "update"}
    reports = registry.run("configure.load", asked, Context(cluster.cib, NOW, "root")).reports
    report_lines = [(str(each.code), each.place.line if each.place else 0) for each in reports]
    assert report_lines == [
        ("EXPECTED", 1), ("BAD_VALUE", 2), ("UNKNOWN_RESOURCE", 5), ("BAD_VALUE", 6), ("BAD_VALUE", 7),
    ]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("no-quorum-policy", "\tfencing-enabled=true\n"),
        ("cib-bootstrap-options.no-quorum-policy", "\tfencing-enabled=true\n"),
        ("p.priority", "primitive p ocf:haclusterd:dummy"),
        ("p.state", "meta priority=5"),
        ("p.monitor.timeout", "op monitor interval=10s"),
        ("n1.rack", "node n1"),
    ],
)
def test_a_value_is_taken_away(path: str, shown: str) -> None:
    cluster = formed()
    cluster.configure(
        "node n1 attributes rack=4\nprimitive p ocf:haclusterd:dummy params state=/run/p meta priority=5 "
        "op monitor interval=10s timeout=33s\nproperty fencing-enabled=true no-quorum-policy=freeze\n"
    )
    outcome = ask(cluster, "configure.unset", path=path)
    assert not outcome.is_refused, outcome.reports
    for command in outcome.commands:
        cluster.do(command)
    answer = ask(cluster, "configure.show").answer
    assert isinstance(answer, ConfigurationText)
    text = answer.text
    assert path.rpartition(".")[2] + "=" not in text
    assert shown in text


@pytest.mark.parametrize("path", ["nothing", "p.nothing", "p.monitor.interval", "p.start.timeout", ""])
def test_what_is_not_set_cannot_be_taken_away(path: str) -> None:
    cluster = formed()
    cluster.configure("primitive p ocf:haclusterd:dummy op monitor interval=10s\n")
    assert ask(cluster, "configure.unset", path=path).is_refused
