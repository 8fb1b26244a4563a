"""Where containers, guest nodes and what runs there are placed in small CIBs of Pacemaker; `crm_simulate` agrees."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.pacemaker_plans import FENCE, FENCE_RUNS, LOST, NOW, actions_of, member, missing_orders, ran, remote, word
from tests.pacemaker_plans import Case as PlanCase
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import cib, pair, read

PODMAN = 'class="ocf" provider="heartbeat" type="podman"'
CONNECTION = 'class="ocf" provider="pacemaker" type="remote"'
NO_FENCING = pair("stonith-enabled", "false")
THREE = '<node id="1" uname="n1"/><node id="2" uname="n2"/><node id="3" uname="n3"/>'
STATEFUL = "ocf:pacemaker:Stateful"
STOPPED_MONITOR = '<operations><op id="o" name="monitor" interval="20s" role="Stopped"/></operations>'
GREEN = (
    '<transient_attributes id="b-0"><instance_attributes id="sb">'
    '<nvpair id="sbh" name="#health-disk" value="green"/></instance_attributes></transient_attributes>'
)
GUEST = primitive("vm", meta("vm", **{"remote-node": "g1"}))


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    text: str
    changes: tuple[str, ...]


def bundle(replicas: int, inside: str = "") -> str:
    network = '<network control-port="3121"/>' if inside else ""
    return f'<bundle id="b"><podman image="i" replicas="{replicas}"/>{network}{inside}</bundle>'


CASES = (
    Case(
        "a container that may not stay where it is leaves its place to those that may",
        cib(
            nodes=THREE,
            properties=NO_FENCING,
            resources=primitive("w") + bundle(2),
            constraints='<rsc_location id="l" rsc="w" node="n1" score="5"/>',
            status=member(1)
            + member(2, ran("b-podman-0", "start", agent=PODMAN), **{"fail-count-b-podman-0#monitor_60000": "INFINITY"})
            + member(3, ran("b-podman-1", "start", "monitor/60000=1", agent=PODMAN)),
        ),
        ("move b-podman-0 n2 n1", "recover b-podman-1 n3 n3"),
    ),
    Case(
        "what is on a lost guest node is not placed after what is on a lost member",
        cib(
            nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/>',
            resources=FENCE + GUEST + bundle(3, primitive("a")),
            constraints='<rsc_location id="l" rsc="vm" node="n2" score="-INFINITY"/>',
            status=member(1, ran("b-podman-0", "start", agent=PODMAN), state=LOST)
            + member(2, FENCE_RUNS)
            + remote("g1", ran("b-podman-2", "start", agent=PODMAN)).replace(' in_ccm="true"', "")
            + remote("b-0", ran("a", "start")).replace(' in_ccm="true"', ""),
        ),
        ("recover b-podman-2 g1 n2", "stop b-podman-0 n1"),
    ),
    Case(
        "a container does not move to its own guest node because something would rather not be with it on another node",
        cib(
            nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/>',
            properties=NO_FENCING + pair("node-health-strategy", "custom") + pair("node-health-green", "20"),
            resources=bundle(1, primitive("a")) + primitive("w"),
            constraints='<rsc_colocation id="c" rsc="w" with-rsc="b" score="-200"/>',
            status=member(
                1,
                ran("b-podman-0", "start", agent=PODMAN),
                ran("b-0", "start", agent=CONNECTION),
                **{"#health-disk": "green"},
            )
            + member(2, **{"#health-disk": "green"})
            + remote("b-0", ran("a", "start")).replace("<lrm ", f"{GREEN}<lrm "),
        ),
        ("restart b-podman-0 n1 n1",),
    ),
    Case(
        "without fencing nothing counts that a guest node said before it is reached again",
        cib(
            nodes='<node id="1" uname="n1"/>',
            properties=NO_FENCING,
            resources=GUEST + f'<clone id="c">{meta("c", promotable="true")}{primitive("s", agent=STATEFUL)}</clone>',
            status=member(1)
            + '<node_state id="g1" uname="g1"><transient_attributes id="g1"><instance_attributes id="sg">'
            '<nvpair id="sgm" name="master-s" value="50"/></instance_attributes></transient_attributes></node_state>',
        ),
        ("start s g1", "start s n1"),
    ),
    Case(
        "a member of a group goes also where an exclusive constraint of its own forbids that it is looked for",
        cib(
            nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/>',
            properties=NO_FENCING,
            resources=f'<group id="g">{primitive("a")}{primitive("b")}</group>',
            constraints='<rsc_location id="l" rsc="b" node="n1" score="INFINITY" resource-discovery="exclusive"/>',
            status=member(1, standby="on") + member(2),
        ),
        ("start b n2",),
    ),
    Case(
        "what is in a bundle whose ticket is in standby waits for its container",
        cib(
            nodes='<node id="1" uname="n1"/>',
            properties=NO_FENCING,
            resources=bundle(1, primitive("s")),
            constraints='<rsc_ticket id="k" rsc="b" ticket="t" loss-policy="stop"/>',
            status=member(1) + '<tickets><ticket_state id="t" granted="true" standby="true"/></tickets>',
        ),
        ("start s b-0",),
    ),
    Case(
        "an instance that failed to stop, and whose node is fenced, does not take the place of one that can start",
        cib(
            nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/>',
            resources=FENCE + f'<clone id="c">{primitive("b")}</clone>',
            status=member(1, FENCE_RUNS) + member(2, ran("b", "stop=1")),
        ),
        ("start b n1", "stop b n2"),
    ),
)


IN_A_CIRCLE = cib(
    properties=NO_FENCING,
    nodes='<node id="1" uname="n1"/>',
    resources='<bundle id="b"><podman image="i" promoted-max="1"/><network control-port="3121"/>'
    + primitive("s", agent=STATEFUL)
    + "</bundle>"
    + primitive("b2"),
    constraints='<rsc_colocation id="c1" rsc="b2" with-rsc="b" with-rsc-role="Promoted" score="INFINITY"/>'
    '<rsc_colocation id="c2" rsc="b" rsc-role="Promoted" with-rsc="b2" score="1000"/>',
    status=member(
        1,
        ran("b2", "start"),
        ran("b-podman-0", "start", agent=PODMAN),
        ran("b-0", "start", agent=CONNECTION),
    )
    + remote("b-0", ran("s", "promote")).replace(
        "<lrm ",
        '<transient_attributes id="b-0"><instance_attributes id="sb"><nvpair id="sbp" name="master-s" value="5"/>'
        "</instance_attributes></transient_attributes><lrm ",
    ),
)
"""What goes with the promoted instance of a bundle that would rather be promoted beside it."""


def changes(text: str) -> list[str]:
    outcome = registry.run("simulate", {"text": text, "source": "cib.xml"}, Context(Cib(), WallTime(0), "tests"))
    assert not outcome.is_refused, outcome.reports
    shown = [
        " ".join(str(entry[key]) for key in ("action", "resource", "from", "to") if key in entry)
        for entry in outcome.data["summary"]
        if "resource" in entry and entry["resource"].partition(":")[0].partition("-podman")[0] in ("b", "s")
    ]
    return sorted(entry.replace(":0", "").replace(":1", "") for entry in shown)


@pytest.mark.parametrize(("operation", "expected"), [("lt", ["start b n2"]), ("gt", ["start b n1"])])
def test_the_health_strategy_holds_while_its_rule_is_true(operation: str, expected: list[str]) -> None:
    ruled = (
        '<cluster_property_set id="h"><rule id="h-r" score="0">'
        f'<date_expression id="h-e" operation="{operation}" {"end" if operation == "lt" else "start"}="2000-01-01"/>'
        f'</rule>{pair("node-health-strategy", "only-green")}</cluster_property_set></crm_config>'
    )
    unhealthy = member(1, **{"#health-disk": "red"}) + member(2)
    text = cib(properties=NO_FENCING, resources=primitive("b"), status=unhealthy)
    assert changes(text.replace("</crm_config>", ruled)) == expected


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("5", "n1"),
        ("5x", "n1"),
        ("7.5", "n1"),
        ("1e3", "n1"),
        ("+INFINITY", "n1"),
        ("-5x", "n2"),
        ("inf", "n2"),
        ("infinity", "n2"),
        ("abc", "n2"),
        ("", "n2"),
    ],
)
def test_of_a_health_score_that_counts_with_which_it_begins_or_the_default(value: str, place: str) -> None:
    """`crm_simulate` 2.1.5 decides the same; the default of node-health-red is -INFINITY."""
    properties = NO_FENCING + pair("node-health-strategy", "custom") + pair("node-health-red", value)
    health = member(1, **{"#health-disk": "red"}) + member(2)
    assert changes(cib(properties=properties, resources=primitive("b"), status=health)) == [f"start b {place}"]


@pytest.mark.parametrize(("value", "place"), [("5x", "n2"), ("+INFINITY", "n2"), ("inf", "n1"), ("-5", "n1")])
def test_a_number_in_the_place_of_a_colour_is_read_likewise(value: str, place: str) -> None:
    properties = NO_FENCING + pair("node-health-strategy", "custom")
    health = member(1) + member(2, **{"#health-disk": value})
    assert changes(cib(properties=properties, resources=primitive("b"), status=health)) == [f"start b {place}"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_plan_changes_what_pacemaker_changes(case: Case) -> None:
    assert changes(case.text) == sorted(case.changes)


def test_a_guest_node_is_fenced_when_its_launcher_is_on_a_guest_node_that_can_be_fenced() -> None:
    nested = next(case for case in CASES if "lost guest node" in case.name)
    assert {"fence reboot@n1", "~off@b-0", "~off@g1", "~reboot@b-2"} <= {*actions_of(PlanCase("", nested.text, ()))}


def test_a_circle_of_colocations_through_a_bundle_promotes_nothing_in_it_as_pacemaker_3_does() -> None:
    assert "stop b2@n1" in actions_of(PlanCase("", IN_A_CIRCLE, ()))


def test_a_running_cluster_ends_a_circle_of_colocations_through_a_bundle_where_it_closes() -> None:
    options = ScheduleOptions(has_quorum=True)
    graph = schedule(read(IN_A_CIRCLE).cib, NOW, options=options).graph
    assert "b2" not in {action.resource for action in graph.actions.values() if action.name == "stop"}


@pytest.mark.parametrize(
    ("is_pacemakers", "role", "stops"),
    [
        (True, "Promoted", []),
        (True, "Unpromoted", ["a@n2"]),
        (True, "", ["a@n2"]),
        (False, "Promoted", ["a@n2"]),
    ],
)
def test_a_clone_that_must_be_with_the_role_of_a_bundle_runs_everywhere_while_that_has_another(
    is_pacemakers: bool, role: str, stops: list[str]
) -> None:
    """As Pacemaker does it; in a running cluster the clone is bound to the containers."""
    inside = primitive("w", agent=STATEFUL)
    promotable = bundle(1, inside).replace('replicas="1"', 'replicas="1" promoted-max="1"')
    with_role = f' with-rsc-role="{role}"' if role else ""
    text = cib(
        properties=NO_FENCING,
        resources=f'<clone id="c">{primitive("a")}</clone>' + promotable,
        constraints=f'<rsc_colocation id="l" rsc="c" with-rsc="b" score="INFINITY"{with_role}/>',
        status=member(1, ran("a", "start"), ran("b-podman-0", "start", agent=PODMAN)) + member(2, ran("a", "start")),
    )
    options = ScheduleOptions(has_quorum=True, is_pacemaker_compatible=is_pacemakers)
    actions = schedule(read(text).cib, NOW, options=options).graph.actions.values()
    assert [f"{each.resource}@{each.node}" for each in actions if word(each).startswith("stop a")] == stops


@pytest.mark.parametrize("role", ["", "Promoted", "Unpromoted"])
def test_a_clone_that_must_be_with_a_bundle_is_nowhere_while_no_container_is_anywhere(role: str) -> None:
    """Nothing of it would start, were the bundle there, so no start of it is said to be blocked."""
    with_role = f' with-rsc-role="{role}"' if role else ""
    text = cib(
        nodes='<node id="1" uname="n1"/>',
        properties=NO_FENCING,
        resources=f'<clone id="c">{primitive("a")}</clone>' + bundle(1),
        constraints=f'<rsc_colocation id="k" rsc="c" with-rsc="b" score="INFINITY"{with_role}/>'
        '<rsc_location id="l" rsc="b" node="n1" score="-INFINITY"/>',
        status=member(1),
    )
    options = ScheduleOptions(has_quorum=True, is_pacemaker_compatible=True)
    assert schedule(read(text).cib, NOW, options=options).changes == ()


ACTIONS = (
    PlanCase(
        "a fence device that is not configured any more is one all the same: resources are managed",
        cib(
            nodes='<node id="1" uname="n1"/>',
            resources=primitive("a"),
            status=member(1, ran("f", "monitor=7", agent='class="stonith" type="fence_dummy"'), ran("a", "monitor=7")),
        ),
        ("delete f@n1", "start a@n1"),
    ),
    PlanCase(
        "what runs after a bundle is restarted when a container starts, on whatever node",
        cib(
            properties=NO_FENCING,
            nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/>',
            resources=bundle(1) + primitive("a"),
            constraints='<rsc_order id="o" first="b" then="a"/><rsc_location id="l" rsc="a" node="n2" score="5"/>',
            status=member(1, ran("a", "monitor=7"), ran("b-podman-0", "monitor=7", agent=PODMAN))
            + member(2, ran("a", "start"), ran("b-podman-0", "monitor=7", agent=PODMAN)),
        ),
        ("~start b@", "start b-podman-0@n1", "monitor/60000 b-podman-0@n1", "~running b@", "stop a@n2", "start a@n2"),
        ("start b-podman-0@n1 < start a@n2",),
    ),
    PlanCase(
        "a monitor that is not configured any more ends with what it watches",
        cib(
            properties=NO_FENCING,
            resources=primitive("a", meta("a", **{"target-role": "Stopped"})),
            status=member(1, ran("a", "start", "monitor/5000")) + member(2, ran("a", "monitor=7")),
        ),
        ("stop a@n1",),
    ),
    PlanCase(
        "nothing is asked on a guest node whose launcher nobody starts",
        cib(
            nodes='<node id="1" uname="n1"/>',
            resources=GUEST + primitive("a", STOPPED_MONITOR),
            status=member(1, ran("vm", "monitor=7"), ran("g1", "start", "monitor/30000", agent=CONNECTION)),
        ),
        ("monitor a@n1", "monitor/20000 a@n1", "monitor/30000 g1@n1"),
    ),
)


@pytest.mark.parametrize("case", ACTIONS, ids=lambda case: case.name)
def test_the_plan_has_the_actions_of_pacemaker_in_its_order(case: PlanCase) -> None:
    assert actions_of(case) == sorted(case.actions)
    assert missing_orders(case) == []


@pytest.mark.parametrize(("attribute", "places"), [("rack", ["n1", "n2"]), ("#uname", ["n2"])])
def test_containers_are_looked_for_on_each_node_while_an_exclusive_rule_is_true_nowhere(
    attribute: str, places: list[str]
) -> None:
    rule = (
        '<rsc_location id="l" rsc="b" resource-discovery="exclusive"><rule id="lr" score="0">'
        f'<expression id="le" attribute="{attribute}" operation="eq" value="n2"/></rule></rsc_location>'
    )
    text = cib(properties=NO_FENCING, resources=bundle(1), constraints=rule, status=member(1) + member(2))
    probes = [each for each in actions_of(PlanCase("", text, ())) if each.startswith("monitor b-")]
    assert probes == [f"monitor b-podman-0@{place}" for place in places]


@pytest.mark.parametrize(("is_pacemakers", "roles"), [(True, ["promote b@n1", "promote s@n1"]), (False, [])])
def test_the_promotion_score_of_a_group_is_a_plain_sum_in_plans_for_cibs_of_pacemaker(
    is_pacemakers: bool, roles: list[str]
) -> None:
    """Of what members say in a running cluster -INFINITY wins."""
    group = f'<group id="g">{primitive("b", agent=STATEFUL)}{primitive("s", agent=STATEFUL)}</group>'
    clone = f'<clone id="c">{meta("c", promotable="true")}{group}</clone>'
    status = member(1, **{"master-b": "INFINITY", "master-s": "-INFINITY"})
    value = read(cib(properties=NO_FENCING, nodes='<node id="1" uname="n1"/>', resources=clone, status=status)).cib
    options = ScheduleOptions(is_pacemaker_compatible=is_pacemakers, has_quorum=True)
    actions = map(word, schedule(value, NOW, options=options).graph.actions.values())
    assert sorted(each for each in actions if each.startswith("promote ")) == roles


def test_a_cloned_group_stays_promoted_without_quorum_when_the_policy_is_to_freeze() -> None:
    group = f'<group id="g">{primitive("s", agent=STATEFUL)}</group>'
    clone = f'<clone id="c">{meta("c", promotable="true")}{group}</clone>'
    history = ran("s", "promote", agent='class="ocf" provider="pacemaker" type="Stateful"')
    frozen = NO_FENCING + pair("no-quorum-policy", "freeze")
    status = member(1, history, **{"master-s": "10"})
    text = cib(properties=frozen, nodes='<node id="1" uname="n1"/>', resources=clone, status=status)
    assert changes(text.replace('have-quorum="1"', 'have-quorum="0"')) == []


@pytest.mark.parametrize(
    ("is_pacemakers", "demotes"), [(True, ["demote s@n1", "demote s@n2"]), (False, ["demote s@n1"])]
)
def test_what_is_active_too_often_is_demoted_where_it_is_promoted(is_pacemakers: bool, demotes: list[str]) -> None:
    """Pacemaker demotes it on every node; an agent that writes attributes then would end each plan before the stop."""
    agent = 'class="ocf" provider="pacemaker" type="Stateful"'
    status = member(1, ran("s", "start", "promote", agent=agent)) + member(2, ran("s", "start", "demote", agent=agent))
    two = '<node id="1" uname="n1"/><node id="2" uname="n2"/>'
    text = cib(properties=NO_FENCING, nodes=two, resources=primitive("s", agent=STATEFUL), status=status)
    options = ScheduleOptions(is_pacemaker_compatible=is_pacemakers, has_quorum=True)
    actions = [word(action) for action in schedule(read(text).cib, NOW, options=options).graph.actions.values()]
    assert sorted(each for each in actions if each.startswith("demote ")) == demotes
    assert {"stop s@n1", "stop s@n2"} <= set(actions)


NEW_GUESTS = "".join(
    primitive(f"vm{number}", meta(f"vm{number}", **{"remote-node": f"g{number}"})) for number in (1, 2)
)
APART_FROM_MEMBERS = '<rsc_location id="l" rsc="{}" node="n1" score="-INFINITY"/>'
NAMED_BY_RULE = (
    '<rsc_location id="r" rsc="s"><rule id="rr" score="100">'
    '<expression id="re" attribute="{}" operation="eq" value="g2"/></rule></rsc_location>'
)


def starts(text: str, *, is_pacemakers: bool) -> list[str]:
    options = ScheduleOptions(is_pacemaker_compatible=is_pacemakers, has_quorum=True)
    actions = map(word, schedule(read(text).cib, NOW, options=options).graph.actions.values())
    return sorted(each for each in actions if each.startswith(("start b@", "start s@")))


@pytest.mark.parametrize(
    ("is_pacemakers", "mentioned", "places"),
    [
        (True, "", ["start b@g1", "start s@g2"]),
        (True, remote("g2"), ["start b@g1", "start s@g1"]),
        (False, "", ["start b@g1", "start s@g1"]),
    ],
)
def test_remote_nodes_that_a_cib_of_pacemaker_does_not_mention_are_one_to_a_colocation(
    is_pacemakers: bool, mentioned: str, places: list[str]
) -> None:
    """Such nodes have no `#uname` there, in 2.1.5 and 3.0.0, so the two have the same one."""
    text = cib(
        properties=NO_FENCING,
        nodes='<node id="1" uname="n1"/>',
        resources=NEW_GUESTS + f'<group id="g">{primitive("b")}{primitive("s")}</group>',
        constraints=APART_FROM_MEMBERS.format("g"),
        status=member(1) + mentioned,
    )
    assert starts(text, is_pacemakers=is_pacemakers) == places


@pytest.mark.parametrize("attribute", ["#uname", "#id"])
@pytest.mark.parametrize(("is_pacemakers", "place"), [(True, "g1"), (False, "g2")])
def test_rules_do_not_know_remote_nodes_by_name_that_a_cib_of_pacemaker_does_not_mention(
    is_pacemakers: bool, place: str, attribute: str
) -> None:
    text = cib(
        properties=NO_FENCING,
        nodes='<node id="1" uname="n1"/>',
        resources=NEW_GUESTS + primitive("s"),
        constraints=APART_FROM_MEMBERS.format("s") + NAMED_BY_RULE.format(attribute),
        status=member(1),
    )
    assert starts(text, is_pacemakers=is_pacemakers) == [f"start s@{place}"]


@pytest.mark.parametrize(("is_pacemakers", "started"), [(True, []), (False, ["start s@n1"])])
@pytest.mark.parametrize(
    "meant",
    [
        'rsc="c" role="Promoted">',
        '><resource_set id="ls" role="Promoted"><resource_ref id="c"/></resource_set>',
    ],
)
def test_only_a_rules_own_role_counts_in_plans_for_cibs_of_pacemaker(
    meant: str, is_pacemakers: bool, started: list[str]
) -> None:
    """The role of the constraint or of its set counts beside `node` only (2.1.5, 3.0.0)."""
    rule = '<rule id="lr" score="-INFINITY"><date_expression id="le" operation="gt" start="2000-01-01"/></rule>'
    text = cib(
        properties=NO_FENCING,
        nodes='<node id="1" uname="n1"/>',
        resources=f'<clone id="c">{meta("c", promotable="true")}{primitive("s", agent=STATEFUL)}</clone>',
        constraints=f'<rsc_location id="l" {meant}{rule}</rsc_location>',
        status=member(1),
    )
    assert starts(text, is_pacemakers=is_pacemakers) == started


@pytest.mark.parametrize(
    ("of_clone", "of_instance", "is_flagged"),
    [("Unpromoted", "Started", True), ("Started", "Unpromoted", False), ("", "Unpromoted", True), ("", "", False)],
)
def test_which_line_says_that_instances_are_held_by_their_target_role(
    of_clone: str, of_instance: str, is_flagged: bool
) -> None:
    """`crm_simulate` 2.1.5 and 3.0.0 take the clone's own target role where there is one, else the instance's."""
    roles = [{"target-role": each} if each else {} for each in (of_clone, of_instance)]
    text = cib(
        properties=NO_FENCING,
        nodes='<node id="1" uname="n1"/>',
        resources=f'<clone id="c">{meta("c", promotable="true", **roles[0])}'
        + primitive("s", meta("s", **roles[1]), agent=STATEFUL)
        + "</clone>",
        status=member(1),
    )
    outcome = registry.run("simulate", {"text": text, "source": "cib.xml"}, Context(Cib(), WallTime(0), "tests"))
    rows = [each for each in outcome.data["status"]["resources"] if "target-role" in each.get("flags", ())]
    assert [(each["resource"], each["nodes"]) for each in rows] == ([("s", ["n1"])] if is_flagged else [])


LEFT = 'in_ccm="false" crmd="offline" join="down" expected="down"'


def found(text: str) -> list[tuple[str, str]]:
    """Return what the status counts as active, of `b` and `s`."""
    arguments = {"text": text, "source": "cib.xml", "date": "2026-06-01T00:00:00"}
    outcome = registry.run("simulate", arguments, Context(Cib(), WallTime(0), "tests"))
    rows = outcome.data["status"]["resources"]
    return [(each["resource"], each["node"]) for each in rows if "node" in each and each["resource"] in ("b", "s")]


@pytest.mark.parametrize(
    ("resources", "rows"),
    [
        (primitive("s"), [("s", "n2")]),
        (f'<group id="g">{primitive("s")}</group>', []),
        (f'<clone id="c">{primitive("s")}</clone>', []),
        (f'<group id="g">{primitive("b")}{primitive("s")}</group>', [("b", "n1"), ("s", "n2")]),
    ],
)
def test_a_collective_that_is_left_alone_on_nodes_that_are_away_is_not_printed(
    resources: str, rows: list[tuple[str, str]]
) -> None:
    """Measured with `crm_simulate` 3.0.0; a primitive of its own is printed there, and what else the group has."""
    text = cib(
        properties=pair("maintenance-mode", "true"),
        nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/>',
        resources=FENCE + resources,
        status=member(1, *([ran("b", "start")] if '"b"' in resources else []))
        + member(2, ran("s", "start"), state=LEFT),
    )
    assert found(text) == rows


@pytest.mark.parametrize("resources", [primitive("s"), ""])
def test_what_a_failed_migration_has_left_is_gone_where_it_is_stopped_afterwards(resources: str) -> None:
    """The record that is written then says on which node, so its time counts and not its call (3.0.0)."""
    failed = ran("s", "migrate_to=1", "stop").replace('call-id="', 'call-id="10')
    failed = failed.replace('="migrate_to"', '="migrate_to" migrate_source="n2" migrate_target="n3"')
    text = cib(
        properties=NO_FENCING,
        nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/><node id="3" uname="n3"/>',
        resources=resources,
        status=member(1, ran("s", "start")) + member(2, failed) + member(3, ran("s", "stop")),
    )
    assert "stop s@n3" in actions_of(PlanCase("", text, ()))
    assert found(text) == ([("s", "n1")] if resources else [])
