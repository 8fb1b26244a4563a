"""Taking over a Pacemaker cluster's configuration: wholly, with its warnings, or not at all, with line and cause."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.configure.showing import show_document
from haclusterd.commands.configure.view import masked
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.formats.cib_xml.document import read_configuration
from haclusterd.model.agents import AgentFacts, ParameterFacts
from haclusterd.model.configuration import Configuration, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.reports.codes import Severity
from haclusterd.reports.items import has_errors
from tests.administered_clusters import NOW, Cluster, running
from tests.written_cibs import cib, pair

FACTS = {
    "ocf:haclusterd:dummy": AgentFacts(parameters={"state": ParameterFacts()}),
    "stonith:fence_local": AgentFacts(parameters={"nodes_dir": ParameterFacts(), "password": ParameterFacts()}),
}
NODES = "".join(f'<node id="{number}" uname="n{number}"/>' for number in (1, 2, 3))
PRIMITIVE = (
    '<primitive id="a" class="ocf" provider="haclusterd" type="dummy">{}<operations>'
    '<op id="m" name="monitor" interval="10s"/></operations></primitive>'
)
SEVERAL = "".join(
    PRIMITIVE.format("").replace('id="a"', f'id="{name}"').replace('id="m"', f'id="{name}-m"') for name in "abc"
)


def in_sets(*members: str) -> str:
    written = ("".join(f'<resource_ref id="{name}"/>' for name in each.split()) for each in members)
    return "".join(f'<resource_set id="s{number}">{each}</resource_set>' for number, each in enumerate(written))


def ordered(*members: str) -> str:
    return f'<rsc_order id="o">{in_sets(*members)}</rsc_order>'


def colocated(*members: str) -> str:
    return f'<rsc_colocation id="o" score="INFINITY">{in_sets(*members)}</rsc_colocation>'


POWER = (
    '<primitive id="power" class="stonith" type="fence_local"><instance_attributes id="power-ia">'
    f"{pair('nodes_dir', '/nodes')}{pair('pcmk_host_list', 'n1 n2 n3')}</instance_attributes><operations>"
    '<op id="power-m" name="monitor" interval="60s"/></operations></primitive>'
)


def load(cluster: Cluster, text: str, mode: str = "replace", source: str = "cib.xml") -> Outcome:
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, agents=FACTS, is_preview=True)
    return registry.run("configure.load", {"mode": mode, "text": text, "source": source}, context)


def loaded(cluster: Cluster, outcome: Outcome) -> Configuration:
    for command in outcome.commands:
        cluster.do(command)
    return cluster.cib.configuration


def report_lines(outcome: Outcome) -> list[str]:
    return [f"{each.severity} {each.place}: {each.message}" for each in outcome.reports]


def test_a_cluster_is_taken_over() -> None:
    cluster = running()
    text = cib(
        nodes=NODES,
        properties=pair("dc-version", "2.1.5") + pair("have-watchdog", "false") + pair("stonith-enabled", "true"),
        resources=PRIMITIVE.format("") + POWER,
        constraints='<rsc_location id="l" rsc="a"><rule id="r" score="5"><expression id="e" attribute="#uname" '
        'operation="eq" value="n1"/></rule></rsc_location>',
    )
    outcome = load(cluster, text)
    assert report_lines(outcome)[:2] == [
        "info cib.xml:3: left out: the property dc-version=2.1.5: Pacemaker notes there its version",
        "info cib.xml:3: left out: the property have-watchdog=false: Pacemaker notes there whether sbd runs; here each "
        "node tells what watchdog it has",
    ]
    made = loaded(cluster, outcome)
    assert list(made.resources) == ["a", "power"]
    assert list(made.constraints) == ["l"]
    assert made.properties[0].pairs == (("stonith-enabled", "true"),)


def test_the_watchdog_as_a_device_is_stored_as_what_it_stands_for() -> None:
    cluster = running()
    watchdog = f'<primitive id="w" class="stonith" type="fence_watchdog"><instance_attributes id="wp">' \
               f"{pair('pcmk_host_list', 'n1')}</instance_attributes></primitive>"
    outcome = load(cluster, cib(nodes=NODES, resources=PRIMITIVE.format("") + watchdog))
    assert "info cib.xml:5: w (stonith:fence_watchdog) is kept as watchdog-fencing=true" in report_lines(outcome)
    made = loaded(cluster, outcome)
    assert (list(made.resources), [block.pairs for block in made.properties]) == (
        ["a"], [(("watchdog-fencing", "true"),)]
    )  # fmt: skip


def test_a_rule_on_the_ids_of_nodes_means_the_same_nodes() -> None:
    cluster = running()
    rule = (
        '<rsc_location id="l" rsc="a"><rule id="r" score="-INFINITY"><expression id="e" attribute="#id" '
        'operation="ne" value="2"/></rule></rsc_location>'
    )
    made = loaded(cluster, load(cluster, cib(nodes=NODES, resources=PRIMITIVE.format(""), constraints=rule)))
    assert {str(name): node.id for name, node in made.nodes.items()} == {"n1": "1", "n2": "2", "n3": "3"}
    again = loaded(cluster, load(cluster, show_document(made), source="all.crm"))
    assert again.nodes == made.nodes
    without_ids = show_document(made).replace("$id=1 ", "").replace("$id=2 ", "").replace("$id=3 ", "")
    kept = loaded(cluster, load(cluster, without_ids, source="all.crm"))
    assert kept.nodes == made.nodes, "a statement that gives no id keeps the one that the node has"
    update = "<configuration><nodes><node id='n2' uname='n2'/></nodes></configuration>"
    assert loaded(cluster, load(cluster, update, "update")).nodes[NodeName("n2")].id == "2"


def test_a_rule_on_an_id_that_no_node_has_is_warned_of() -> None:
    outcome = load(running(), "primitive a ocf:haclusterd:dummy\nlocation l a rule -inf: #id ne 2", source="all.crm")
    found = {each.message: each.remedy for each in outcome.reports if "#id" in each.message}
    assert found == {
        "constraint l: rule: #id is compared with '2', which is the id of no node": "write #uname and the node's name"
    }


def test_what_show_prints_can_be_loaded_without_the_loss_of_a_secret() -> None:
    cluster = running()
    secret = POWER.replace("</instance_attributes>", f"{pair('password', 'real')}</instance_attributes>", 1)
    loaded(cluster, load(cluster, cib(nodes=NODES, resources=secret)))
    shown = show_document(masked(cluster.cib.configuration, {}))
    assert "real" not in shown
    outcome = load(cluster, shown.replace("interval=60s", "interval=90s"), source="edited.crm")
    assert "info edited.crm:5: power: password keeps its value: the text has asterisks in its place" in [
        f"{each.severity} {str(each.place).rpartition(':')[0]}: {each.message}" for each in outcome.reports
    ]
    (power,) = loaded(cluster, outcome).fence_devices()
    assert effective(power.parameters)["password"] == "real"
    assert power.operations[0].interval_ms == 90_000


@pytest.mark.parametrize("source", ["cib.xml", "all.crm"])
def test_asterisks_that_stand_for_nothing_are_refused(source: str) -> None:
    secret = POWER.replace("</instance_attributes>", f"{pair('password', '******')}</instance_attributes>", 1)
    text = cib(nodes=NODES, resources=secret)
    if source.endswith("crm"):
        text = show_document(read_configuration(text, "cib.xml").configuration)
    (found,) = [each for each in load(running(), text, source=source).reports if each.severity is Severity.ERROR]
    assert found.message == "power: password is ******, which stands for a secret that was not shown"


DATED = (
    '<{0} id="dated"><rule id="dated-r"><date_expression id="dated-d" operation="gt" start="2030-01-01 10:00:00"/>'
    '</rule><nvpair id="dated-n" name="{1}" value="{2}"/></{0}>'
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (cib(nodes=NODES, resources=PRIMITIVE.replace('interval="10s"/>', 'interval="10s">{}</op>').format(
            "", DATED.format("meta_attributes", "timeout", "5s"))), "a: monitor"),
        (cib(nodes=NODES, resources=PRIMITIVE.format(DATED.format("utilization", "cpu", "1"))), "a"),
        (cib(nodes=f'<node id="9" uname="n1">{DATED.format("instance_attributes", "rack", "1")}</node>'), "node n1"),
        (cib(nodes=f'<node id="9" uname="n1">{DATED.format("utilization", "cpu", "1")}</node>'), "node n1"),
        (cib(nodes=NODES, resources=f'<group id="g">{PRIMITIVE.format("")}'
             f'{DATED.format("meta_attributes", "is-managed", "true")}</group>'), "g"),
    ],
)  # fmt: skip
def test_a_time_without_an_offset_is_warned_of_wherever_it_stands(text: str, place: str) -> None:
    messages = [each.message for each in load(running(), text).reports]
    assert f"{place}: rule: times without an offset are UTC here, and local time in Pacemaker" in messages


def test_nothing_is_said_twice() -> None:
    moment = '<date_expression id="{0}" operation="gt" start="2030-01-01 10:00:00"/>'
    rules = "".join(f'<rule id="r{each}" score="5">{moment.format(f"d{each}")}</rule>' for each in (1, 2))
    constraint = f'<rsc_location id="l" rsc="a">{rules}</rsc_location>'
    messages = report_lines(load(running(), cib(nodes=NODES, resources=PRIMITIVE.format(""), constraints=constraint)))
    assert len(messages) == len(set(messages))
    assert any("times without an offset" in each for each in messages)


def test_a_tag_that_names_a_node_by_its_id_gets_the_name() -> None:
    cluster = running()
    tags = '<tags><tag id="t"><obj_ref id="2"/><obj_ref id="a"/></tag></tags>'
    text = cib(nodes=NODES, resources=PRIMITIVE.format("")).replace("</configuration>", f"{tags}</configuration>")
    outcome = load(cluster, text)
    assert "info cib.xml:8: 2 in tag t is kept as n2" in report_lines(outcome)
    assert loaded(cluster, outcome).tags["t"].references == ("n2", "a")


def test_an_update_keeps_what_the_file_does_not_name() -> None:
    cluster = running()
    before = cluster.cib.configuration
    text = f"<configuration><resources>{PRIMITIVE.format('')}</resources></configuration>"
    made = loaded(cluster, load(cluster, text, "update"))
    assert list(made.resources) == [*before.resources, "a"]
    assert made.properties == before.properties
    assert made.constraints == before.constraints


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (cib(nodes=NODES, resources='<primitive id="a" class="nagios" type="x"/>'), "error cib.xml:5: "),
        (cib(nodes=NODES, resources=PRIMITIVE.format(f'<meta_attributes id="x">\n{pair("remote-node", "g")}'
                                                     "</meta_attributes>")), "error cib.xml:6: a: remote-node: "),
        ("<cib>\n<x></cib>", "error cib.xml:2:6: this is no well-formed XML"),
        ("<acl/>", "error cib.xml:1: <acl> is neither a <cib> with a <configuration> nor a <configuration>"),
        (cib(resources="\n<x/>"), "error cib.xml:6: <x id=None> is not supported yet"),
    ],
)  # fmt: skip
def test_what_cannot_run_here_is_refused_with_its_line_and_changes_nothing(text: str, expected: str) -> None:
    outcome = load(running(), text)
    assert outcome.commands == ()
    errors = [line for line in report_lines(outcome) if line.startswith("error")]
    assert any(line.startswith(expected) for line in errors), errors


@pytest.mark.parametrize(
    ("text", "expected", "remedy"),
    [
        (cib(nodes=NODES, resources="", properties=pair("have-watchdog", "true")),
         "warning cib.xml:3: left out: the property have-watchdog=true: Pacemaker notes there whether sbd runs; here "
         "each node tells what watchdog it has",
         "where nodes are to be fenced by their watchdogs: crm configure property watchdog-fencing=true"),
        (cib(nodes=NODES, resources="", properties=pair("batch-limt", "1")),
         "warning cib.xml:3: left out: the property batch-limt, which there is not, as in Pacemaker",
         "did you mean batch-limit?"),
        (cib(nodes=NODES, resources="", properties=pair("batch-limit", "many")),
         "warning cib.xml:3: batch-limit: not a whole number: 'many'; 0 counts instead, as in Pacemaker", None),
        (cib(nodes=NODES, resources="", properties=pair("redis_REPL_INFO", "n1")),
         "info cib.xml:3: the property redis_REPL_INFO is kept and shown; the cluster does not read it, agents may",
         None),
        (cib(nodes=NODES, resources="", properties=pair("stonith-watchdog-timeout", "10")),
         "info cib.xml:3: stonith-watchdog-timeout=10 is kept as watchdog-fencing=true", None),
        (cib(nodes=NODES, resources=PRIMITIVE.format(""), constraints='<rsc_location id="l" rsc="a"><rule id="r" '
             'score="5"><date_expression id="d" operation="gt" start="2030-01-01 10:00:00"/></rule></rsc_location>'),
         "warning cib.xml:6: constraint l: rule: times without an offset are UTC here, and local time in Pacemaker",
         "write the offset, as in 2030-01-31T12:00:00+01:00; date_spec is UTC always"),
        (cib(nodes=NODES, resources="", constraints='<rsc_location id="l" rsc="gone" node="n1" score="5"/>'),
         "warning cib.xml:6: left out: constraint l: there is no resource gone, as in Pacemaker",
         "once it is defined: crm configure location l gone 5: n1"),
        (cib(nodes=NODES, resources=PRIMITIVE.format(
            f'<meta_attributes id="x">{pair("resource-stickiness", "inf")}</meta_attributes>')),
         "warning cib.xml:5: a: resource-stickiness: not a score: 'inf'; 0 counts instead, as in Pacemaker", None),
        (cib(nodes=NODES, resources=SEVERAL, constraints=ordered("a b", "gone c")),
         "warning cib.xml:6: left out: constraint o: there is no resource gone; what comes before it counts, as in "
         "Pacemaker", "once it is defined: crm configure order o { a b $id=s0 } { gone c $id=s1 }"),
        (cib(nodes=NODES, resources=SEVERAL, constraints=ordered("a gone", "b c")),
         "warning cib.xml:6: left out: constraint o: there is no resource gone, as in Pacemaker", None),
        (cib(nodes=NODES, resources=SEVERAL, constraints=colocated("a b gone")),
         "warning cib.xml:6: left out: constraint o: there is no resource gone; what comes before it counts, as in "
         "Pacemaker", None),
        (cib(nodes=NODES, resources=SEVERAL, constraints=colocated("a", "gone", "b c")),
         "warning cib.xml:6: left out: constraint o: there is no resource gone; in Pacemaker the sets without it count",
         None),
        (cib(nodes=NODES, resources=PRIMITIVE.format(
            f'<meta_attributes id="x">{pair("is-managed", "maybe")}</meta_attributes>')),
         "warning cib.xml:5: a: is-managed: not a boolean: 'maybe' (write true or false); false counts instead, as in "
         "Pacemaker", None),
    ],
)  # fmt: skip
def test_what_pacemaker_takes_is_taken_and_named(text: str, expected: str, remedy: str | None) -> None:
    cluster = running()
    outcome = load(cluster, text)
    assert expected in report_lines(outcome)
    assert outcome.commands, report_lines(outcome)
    messages = {f"{each.severity} {each.place}: {each.message}": each.remedy for each in outcome.reports}
    assert remedy in (None, messages[expected])
    # Whatever is shown of it loads back, without a word about what was left out.
    loaded(cluster, outcome)
    shown = show_document(cluster.cib.configuration)
    again = load(cluster, shown, source="shown.crm")
    assert not has_errors(again.reports)
    assert "LEFT_OUT" not in {str(each.code) for each in again.reports}


def test_a_watchdog_timeout_of_sbd_becomes_fencing_by_watchdogs() -> None:
    cluster = running()
    text = cib(nodes=NODES, resources="", properties=pair("stonith-watchdog-timeout", "10"))
    made = loaded(cluster, load(cluster, text))
    assert made.properties[0].pairs == (("watchdog-fencing", "true"),)


def test_words_are_kept_in_one_spelling() -> None:
    cluster = running()
    meta = pair("target-role", "stopped") + pair("colour", "red")
    text = cib(nodes=NODES, properties=pair("no-quorum-policy", "Suicide"),
               resources=PRIMITIVE.format(f'<meta_attributes id="x">{meta}</meta_attributes>'))  # fmt: skip
    made = loaded(cluster, load(cluster, text))
    assert made.properties[0].pairs == (("no-quorum-policy", "fence"),)
    assert made.resources[ResourceId("a")].meta[0].pairs == (("target-role", "Stopped"), ("colour", "red"))


def test_xml_is_known_by_its_format_or_its_name() -> None:
    text = f"<configuration><resources>{PRIMITIVE.format('')}</resources></configuration>"
    context = Context(running().cib, NOW, "root@n1", agents=FACTS)
    for arguments in ({"format": "xml", "source": "-"}, {"source": "a.xml"}):
        outcome = registry.run("configure.verify", {"text": text, **arguments}, context)
        assert isinstance(outcome.data, dict)
        assert "SYNTAX" not in [report.code for report in outcome.reports]
    assert ResourceId("a") not in context.cib.configuration.resources


@pytest.mark.parametrize(
    ("name", "text", "counts"),
    [
        # What crm_simulate 2.1.5 starts and promotes: as many as the number with which they begin, else none.
        ("clone-max", "abc", "0"), ("clone-max", "5s", "5"), ("clone-max", "1e3", "1"), ("clone-max", "0x10", "0"),
        ("clone-max", "", "0"), ("clone-node-max", "INFINITY", "0"), ("clone-node-max", "-5", "0"),
        ("promoted-max", "abc", "0"), ("promoted-node-max", "1.5", "1"), ("clone-min", "many", "0"),
        ("resource-stickiness", "1e3", "1"), ("resource-stickiness", "5s", "5"), ("priority", "high", "0"),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_read_counts_as_in_pacemaker(name: str, text: str, counts: str) -> None:
    meta = f'<clone id="c"><meta_attributes id="x">{pair(name, text)}</meta_attributes>{PRIMITIVE.format("")}</clone>'
    cluster = running()
    outcome = load(cluster, cib(nodes=NODES, resources=meta + POWER))
    assert not has_errors(outcome.reports)
    assert any(f"{name}: " in line and f"{counts} counts instead" in line for line in report_lines(outcome))
    assert effective(loaded(cluster, outcome).resources[ResourceId("c")].meta)[name] == counts


@pytest.mark.parametrize(("text", "counts"), [("1.5", "1"), ("abc", "0"), ("1_0", "1")])
def test_a_capacity_of_a_node_that_is_no_number_counts_as_in_pacemaker(text: str, counts: str) -> None:
    nodes = NODES.replace("/>", f'><utilization id="u">{pair("cpu", text)}</utilization></node>', 1)
    cluster = running()
    outcome = load(cluster, cib(nodes=nodes, resources=POWER))
    assert not has_errors(outcome.reports)
    assert effective(loaded(cluster, outcome).nodes[NodeName("n1")].utilization) == {"cpu": counts}
