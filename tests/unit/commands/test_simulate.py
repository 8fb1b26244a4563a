"""`simulate`: the document says what the plan says, in the words that administrators use."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context, LiveView
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from tests.unit.commands.written_operations import ABSENT, CLONED, FENCE, LOST, NOW, STARTED, WEB, changes, on, record
from tests.written_cibs import FENCING, MEMBER, NO_FENCING, NOTHING, cib, pair


def simulated(text: str, *, date: str = "", is_forced: bool = False) -> Json:
    arguments: dict[str, Json] = {"text": text, "source": "cib.xml"}
    if date:
        arguments["date"] = date
    outcome = registry.run("simulate", arguments, Context(Cib(), NOW, "tests", is_forced=is_forced))
    assert not outcome.is_refused, outcome.reports
    return outcome.data


@pytest.mark.parametrize(
    ("properties", "status", "expected"),
    [
        (NO_FENCING, on(1, ABSENT) + on(2, ABSENT), ["start web n1"]),
        (NO_FENCING, on(1, STARTED) + on(2, ABSENT), []),
        (NO_FENCING, on(1, STARTED, attributes=pair("standby", "on")) + on(2, ABSENT), ["move web n1 n2"]),
        (NO_FENCING, on(1, STARTED) + on(2, STARTED), ["restart web n1 n1"]),
        (
            NO_FENCING,
            on(1, STARTED, record("web_monitor_10000", "monitor", 4, rc=1, interval=10_000)) + on(2, ABSENT),
            ["recover web n1 n1"],
        ),
        (NO_FENCING + pair("stop-all-resources", "true"), on(1, STARTED) + on(2, ABSENT), ["stop web n1"]),
        (FENCING, on(1, ABSENT) + on(2, STARTED, state=LOST), ["fence n2 reboot", "move web n2 n1"]),
    ],
    ids=["start", "nothing", "move", "restart", "recover", "stop", "fence"],
)
def test_the_summary(properties: str, status: str, expected: list[str]) -> None:
    resources = WEB + FENCE if properties == FENCING else WEB
    found = changes(simulated(cib(properties=properties, resources=resources, status=status)))
    assert [change for change in found if " power " not in change] == expected


def test_without_quorum_what_should_start_is_blocked() -> None:
    text = cib(properties=NO_FENCING, resources=WEB, status=on(1, ABSENT) + on(2, ABSENT), root='have-quorum="0"')
    assert changes(simulated(text)) == ["start web n1 True"]


def test_the_graph_and_what_is_so_afterwards() -> None:
    data = simulated(cib(properties=NO_FENCING, resources=WEB, status=on(1, ABSENT) + on(2, ABSENT)))
    assert data["format"] == "simulate/1"
    assert data["date"] == "2023-11-14T22:13:20Z"
    assert data["before"]["resources"] == [{"resource": "web", "role": "Stopped", "flags": []}]
    assert data["after"] == {
        "nodes": {"n1": "online", "n2": "online"},
        "resources": [{"resource": "web", "role": "Started", "node": "n1", "flags": []}],
    }
    names = ("task", "node", "interval", "timeout", "after")
    shown = [{name: each.get(name) for name in names} for each in data["actions"]]
    assert shown == [
        {"task": "start", "node": "n1", "interval": None, "timeout": 20_000, "after": []},
        {"task": "monitor", "node": "n1", "interval": 10_000, "timeout": 5000, "after": [1]},
    ]


def test_a_node_that_is_left_shuts_down_when_it_is_empty() -> None:
    status = on(1, STARTED, attributes=pair("shutdown", "1699999999")) + on(2, ABSENT)
    data = simulated(cib(properties=NO_FENCING, resources=WEB, status=status))
    stops = [each["id"] for each in data["actions"] if each["task"] == "stop"]
    left = [each for each in data["actions"] if each["kind"] == "cluster"]
    assert [(each["task"], each["node"], each["after"]) for each in left] == [("do_shutdown", "n1", stops)]
    assert data["before"]["nodes"]["n1"] == "leaving"


@pytest.mark.parametrize(
    "date", ["2023-11-14T22:13:20Z", "2023-11-14T22:13:20", "2023-11-14T23:13:20+01:00", "1700000000"]
)
def test_dates(date: str) -> None:
    assert simulated(cib(properties=NO_FENCING), date=date)["date"] == "2023-11-14T22:13:20Z"


def test_a_wrong_date_is_refused() -> None:
    outcome = registry.run("simulate", {"date": "tomorrow"}, Context(Cib(), NOW, "tests"))
    assert [item.code for item in outcome.reports] == ["BAD_ARGUMENT"]


def test_what_cannot_be_held_refuses_the_plan() -> None:
    outcome = registry.run("simulate", {"text": CLONED, "source": "cib.xml"}, Context(Cib(), NOW, "tests"))
    assert [(item.code, item.severity) for item in outcome.reports] == [("BAD_VALUE", "error")]
    assert outcome.data is None


def test_forced_it_is_left_out() -> None:
    context = Context(Cib(), NOW, "tests", is_forced=True)
    outcome = registry.run("simulate", {"text": CLONED, "source": "cib.xml"}, context)
    assert [(item.code, item.severity) for item in outcome.reports] == [("LEFT_OUT", "warning")]
    assert changes(outcome.data) == ["start web n1"]


def test_a_daemon_plans_for_its_own_cluster_only() -> None:
    context = Context(Cib(), NOW, "tests", live=LiveView(NodeName("n1")))
    outcome = registry.run("simulate", {"text": CLONED, "source": "cib.xml"}, context)
    assert [item.code for item in outcome.reports] == ["BAD_ARGUMENT"]
    assert registry.run("simulate", {}, context).data is not None


def test_the_own_cib_is_planned_for_when_none_is_given() -> None:
    outcome = registry.run("simulate", {}, Context(Cib(), NOW, "tests"))
    assert outcome.data["summary"] == []


def test_a_value_that_cannot_be_read_is_named_with_what_counts_instead() -> None:
    text = cib(properties=pair("batch-limit", "many") + pair("no-quorum-policy", "Freeze"), status=on(1, ABSENT))
    outcome = registry.run("simulate", {"text": text, "source": "cib.xml"}, Context(Cib(), NOW, "tests"))
    assert [f"{each.severity} {each.place}: {each.message}" for each in outcome.reports] == [
        "warning cib.xml:3: batch-limit: not a whole number: 'many'; 0 counts instead, as in Pacemaker"
    ]


GROUPED = (
    '<clone id="cl"><meta_attributes id="cm">{meta}</meta_attributes><group id="g">'
    '<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"/>'
    '<primitive id="plain" class="lsb" type="plain"/></group></clone>'
)


def printed(data: Json, part: str) -> list[str]:
    rows = data[part]["resources"]
    return sorted(f"{row['resource']} {row['role']} {row['node']}" for row in rows if row.get("node"))


def test_the_compared_status_only_informs_of_a_clone_that_is_held_to_unpromoted() -> None:
    """crm_simulate prints `Unpromoted (target-role): [ n1 ]`, which the format does not count; the row names n1."""
    meta = pair("promotable", "true") + pair("target-role", "Unpromoted")
    data = simulated(cib(resources=GROUPED.format(meta=meta), status=on(1, STARTED), properties=NO_FENCING))
    assert data["status"]["resources"] == [
        {"resource": "web", "role": "Unpromoted", "nodes": ["n1"], "flags": ["target-role"]}
    ]
    assert len(printed(data, "after")) == 1


def test_the_compared_status_marks_the_member_of_a_cloned_group_that_does_not_run() -> None:
    """Pacemaker prints `Unpromoted: [ n1 ]` for the whole clone, and leaves out the member that cannot be promoted."""
    meta = pair("promotable", "true") + pair("promoted-max", "0")
    data = simulated(cib(resources=GROUPED.format(meta=meta), status=on(1, STARTED), properties=NO_FENCING))
    assert data["status"]["resources"] == [
        {"resource": "web", "role": "Unpromoted", "node": "n1"},
        {"resource": "plain", "role": "Unpromoted", "node": "n1", "flags": ["left-out"]},
    ]
    assert [row.split()[0].partition(":")[0] for row in printed(data, "after")] == ["web"]


def test_a_stop_is_recorded_where_old_releases_numbered_the_instance() -> None:
    """What runs under the name of an instance is stopped under that name, and does not count as active afterwards."""
    meta = pair("target-role", "Stopped")
    clone = '<clone id="cl"><meta_attributes id="cm">' + meta + "</meta_attributes>" + WEB + "</clone>"
    started = record("web:0_start_0", "start", 3).replace("<lrm_rsc_op", '<lrm_rsc_op last-rc-change="1700000000"')
    status = on(1, started).replace('lrm_resource id="web"', 'lrm_resource id="web:0"')
    data = simulated(cib(resources=clone, status=status, properties=NO_FENCING))
    assert changes(data) == ["stop web:0 n1"]
    assert printed(data, "status") == []


def test_what_waits_for_something_that_cannot_be_done_is_not_executed() -> None:
    """Without quorum everything stops; the stop of b comes after that of a, whose node is lost and cannot be fenced."""
    resources = "".join(WEB.replace('"web"', f'"{name}"').replace('"m"', f'"m-{name}"') for name in "ab")
    order = '<rsc_order id="o" first="a" first-action="stop" then="b" then-action="stop" kind="Serialize"/>'
    lost = MEMBER.replace('in_ccm="true"', 'in_ccm="false"')
    status = on(1, STARTED, state=lost).replace('"web"', '"a"') + on(2, STARTED).replace('"web"', '"b"')
    root = 'have-quorum="0"'
    data = simulated(cib(resources=resources + FENCE, constraints=order, status=status, properties=FENCING, root=root))
    assert "stop b n2" in changes(data)
    assert printed(data, "status") == ["a Started n1", "b Started n2"]
    assert printed(data, "after") == ["a Started n1"]


@pytest.mark.parametrize(("box", "blocked"), [("box", ["start web:0 box-0 True"]), ("zone", [])])
def test_without_its_ticket_a_bundle_has_no_containers_and_what_is_in_it_waits_for_them(
    box: str, blocked: list[str]
) -> None:
    """The ticket keeps the containers away; the primitive has no place but its container, so its start is blocked.

    In Pacemaker it has none where a node's name (n1) comes before the containers' names.
    """
    bundle = (
        f'<bundle id="{box}"><podman image="i" replicas="1"/><network control-port="9999"/>'
        '<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"/></bundle>'
    )
    ticket = f'<rsc_ticket id="t" rsc="{box}" ticket="T" loss-policy="stop"/>'
    status = on(1).replace('id="web"', 'id="other"')
    data = simulated(cib(resources=bundle, constraints=ticket, status=status, properties=NO_FENCING))
    assert changes(data) == blocked
    assert printed(data, "after") == []


def test_inside_a_container_that_goes_nowhere_nothing_is_to_start() -> None:
    """The second container has none of the other bundle to be with, so neither has what would run in it."""
    bundle = (
        '<bundle id="{id}"><podman image="i" replicas="{count}" promoted-max="1"/><network control-port="{port}" '
        'ip-range-start="10.0.{port}.1"/><primitive id="{id}-web" class="ocf" provider="pacemaker" type="Stateful"/>'
        "</bundle>"
    )
    resources = bundle.format(id="box", count=2, port=1) + bundle.format(id="other", count=1, port=2)
    together = '<rsc_colocation id="c" rsc="box" with-rsc="other" score="INFINITY"/>'
    status = on(1).replace('id="web"', 'id="x"') + on(2).replace('id="web"', 'id="x"')
    data = simulated(cib(resources=resources, constraints=together, status=status, properties=NO_FENCING))
    assert [line for line in changes(data) if line.endswith("True")] == ["start box-1 n2 True"]


def test_members_that_need_not_be_together_are_once_on_each_node() -> None:
    """Of a clone of a group with collocated=false: also where the first member runs on one node already."""
    with_meta = f'<group id="g"><meta_attributes id="gm">{pair("collocated", "false")}</meta_attributes>'
    apart = GROUPED.format(meta="").replace('<group id="g">', with_meta)
    status = on(1, STARTED) + on(2, ABSENT)
    data = simulated(cib(resources=apart, status=status, properties=NO_FENCING))
    rows = [line.replace(":0", "").replace(":1", "") for line in printed(data, "after")]
    assert sorted(rows) == ["plain Started n1", "plain Started n2", "web Started n1", "web Started n2"]


def test_more_instances_of_a_group_than_can_be_planned_in_time_are_left_out() -> None:
    many = GROUPED.format(meta=pair("clone-max", "501"))
    data = simulated(cib(resources=many, status=on(1) + on(2), properties=NO_FENCING))
    assert data["actions"] == []
    assert any("it asks for 501 instances of 2 members, more than 1000" in each for each in data["warnings"])


GUESTS = (
    '<primitive id="vm" class="ocf" provider="pacemaker" type="Dummy"><meta_attributes id="vm-m">'
    + pair("remote-node", "guest")
    + "</meta_attributes></primitive>"
)


def guest_left_alone() -> Json:
    """A guest node whose connection failed on a node in maintenance: nobody connects or disconnects it."""
    next_history = '</lrm_resource><lrm_resource id="guest" class="ocf" provider="pacemaker" type="remote">'
    up = (record("vm_last_0", "start", 3), record("guest_last_0", "start", 3))
    failed = (ABSENT.replace("web_", "vm_"), record("guest_last_0", "monitor", 3, rc=9, expected=7))
    status = on(1, up[0], next_history, up[1])
    status += on(2, failed[0], next_history, failed[1], attributes=pair("maintenance", "true"))
    return simulated(cib(resources=GUESTS + WEB, status=status.replace('"web"', '"vm"'), properties=NO_FENCING))


def test_no_agent_is_called_on_a_guest_node_that_is_away_and_stays_so() -> None:
    """Pacemaker 3 simulates nothing there: neither the probe, nor the start that waits for it."""
    data = guest_left_alone()
    assert "start web guest" in changes(data)
    assert printed(data, "status") == ["vm Started n1"]


def test_a_guest_node_never_runs_the_machine_that_it_is() -> None:
    assert "restart vm n1 n1" in changes(guest_left_alone())


@pytest.mark.parametrize(("quorum", "expected"), [("1", ["restart web n1 n1"]), ("0", ["stop web n1"])])
def test_frozen_without_quorum_what_has_changed_stops_and_does_not_start(quorum: str, expected: list[str]) -> None:
    """Source: Pacemaker Explained, "Cluster Options" (no-quorum-policy=freeze); crm_simulate decides so."""
    changed = STARTED.replace(NOTHING, "0" * 32)
    properties = NO_FENCING + pair("no-quorum-policy", "freeze")
    status = on(1, changed) + on(2, ABSENT)
    data = simulated(cib(properties=properties, status=status, root=f'have-quorum="{quorum}"'))
    assert changes(data) == expected


def test_of_several_stops_the_one_that_a_failure_demands_says_whether_the_change_can_be_done() -> None:
    """It runs on a lost node and a probe failed on another: what stops there first can stop (crm_simulate says so)."""
    lost = MEMBER.replace('in_ccm="true"', 'in_ccm="false"')
    status = on(1, STARTED, state=lost) + on(2, record("web_last_0", "monitor", 3, rc=1, expected=7))
    data = simulated(cib(resources=WEB + FENCE, status=status, properties=FENCING, root='have-quorum="0"'))
    assert "stop web n1" in changes(data)
