"""Reading the status of Pacemaker's CIB: what nodes are in it, and what is recorded of resources."""

import pytest

from haclusterd.formats.cib_xml.document import CibReading
from haclusterd.model.cluster import NodeState, TicketState
from haclusterd.model.history import FailCount, PacemakerMark
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from tests.written_cibs import FENCING, MEMBER, NO_FENCING, NOTHING, RUNNING, cib, pair, read, report_lines


@pytest.mark.parametrize(
    ("properties", "state", "inside", "expected", "detail"),
    [
        (FENCING, MEMBER, "", NodeState.ONLINE, ""),
        (FENCING, MEMBER.replace('"true"', '"1700000000"'), "", NodeState.ONLINE, ""),
        (FENCING, MEMBER.replace("online", "offline"), "", NodeState.ONLINE, "peer process is no longer available"),
        (FENCING, MEMBER.replace('"true"', '"false"'), "", NodeState.LOST, "peer is no longer part of the cluster"),
        (FENCING, MEMBER.replace('join="member"', 'join="banned"'), "", NodeState.ONLINE, "peer failed Pacemaker m"),
        (FENCING, MEMBER.replace('join="member"', 'join="pending"'), "", NodeState.ONLINE, ""),
        (FENCING, 'crmd="online" join="member" expected="member"', "", NodeState.LOST, "peer has not been seen"),
        (FENCING, 'in_ccm="false" crmd="offline" join="down" expected="down"', "", NodeState.LEFT, ""),
        (FENCING, 'in_ccm="false" crmd="offline" join="down" expected="down"', RUNNING, NodeState.LEFT, ""),
        (NO_FENCING, MEMBER, "", NodeState.ONLINE, ""),
        (NO_FENCING, MEMBER.replace("online", "offline"), "", NodeState.LOST, "peer is unexpectedly down"),
        (NO_FENCING, 'in_ccm="false" crmd="offline" join="down" expected="down"', RUNNING, NodeState.LEFT, ""),
    ],
)
def test_the_state_of_a_node(properties: str, state: str, inside: str, expected: NodeState, detail: str) -> None:
    status = f'<node_state id="2" uname="n2" {state}>{inside}</node_state>'
    made = read(cib(properties=properties, status=status)).cib.status.nodes["n2"]
    assert made.state is expected
    assert made.detail.startswith(detail)
    assert bool(made.detail) is bool(detail)


@pytest.mark.parametrize(
    ("state", "inside", "flags"),
    [
        (MEMBER, "", set()),
        (MEMBER.replace("online", "offline"), "", {"condemned"}),
        (MEMBER.replace('"true"', '"false"'), "", set()),
        (MEMBER.replace('join="member"', 'join="sideways"'), "", {"condemned"}),
        (MEMBER.replace('join="member"', 'join="down"'), "", {"joining"}),
        (MEMBER, "terminate", {"condemned"}),
        ('in_ccm="false" crmd="offline" join="down" expected="down"', "terminate", set()),
        (MEMBER, "shutdown", {"leaving"}),
        (MEMBER.replace('expected="member"', 'expected="pending"'), "", set()),
        (MEMBER.replace('expected="member"', 'expected=""'), "", set()),
        (MEMBER.replace('expected="member"', 'expected="pending"').replace("online", "offline"), "", {"condemned"}),
        (MEMBER.replace('expected="member"', ""), "", {"joining"}),
        ('in_ccm="1700000000" crmd="offline"', "", {"joining", "since 1700000000000"}),
        ('in_ccm="1700000000" crmd="1700000009" join="down"', "", {"joining"}),
        ('in_ccm="1" crmd="offline"', "", {"joining"}),
        ('in_ccm="false" crmd="online"', "", {"joining"}),
        ('in_ccm="0" crmd="0" expected="down"', "", set()),
    ],
)
def test_how_a_node_takes_part(state: str, inside: str, flags: set[str]) -> None:
    attributes = f'<instance_attributes id="s">{pair(inside, "1")}</instance_attributes>' if inside else ""
    element = f'<node_state id="2" uname="n2" {state}><transient_attributes id="2">{attributes}</transient_attributes>'
    made = read(cib(properties=FENCING, status=f"{element}</node_state>")).cib.status.nodes["n2"]
    found = {"condemned": made.is_condemned, "joining": made.is_joining, "leaving": made.is_leaving}
    since = {f"since {made.since}"} if made.since else set()
    assert {name for name, holds in found.items() if holds} | since == flags


def test_remote_and_guest_nodes_need_no_entry() -> None:
    guest = f'<meta_attributes id="m">{pair("remote-node", "vm1")}</meta_attributes>'
    status = (
        '<node_state remote_node="true" id="far" uname="far" node_fenced="1" node_in_maintenance="1"/>'
        '<node_state id="vm1" uname="vm1"/><node_state id="b-0" uname="b-0"/><node_state id="x" uname="x"/>'
    )
    resources = (
        '<primitive id="far" class="ocf" provider="pacemaker" type="remote"/>'
        f'<primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain">{guest}</primitive>'
        '<bundle id="b"><podman image="i"/></bundle>'
    )
    made = read(cib(resources=resources, status=status))
    nodes = made.cib.status.nodes
    assert {"far", "vm1", "b-0"} <= nodes.keys()
    assert nodes["far"].is_remote_fenced
    assert nodes["far"].is_remote_maintenance
    assert "x" not in nodes
    assert report_lines(made) == ["warning cib.xml:9: <node_state>: there is no node x"]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (FENCING, NodeState.LOST),
        (FENCING + pair("startup-fencing", "false"), NodeState.LEFT),
        (NO_FENCING, NodeState.LEFT),
    ],
)
def test_a_node_without_any_state_has_not_been_seen(properties: str, expected: NodeState) -> None:
    assert read(cib(properties=properties)).cib.status.nodes["n1"].state is expected


def test_a_leaving_node_and_its_attributes() -> None:
    attributes = (
        '<transient_attributes id="1"><instance_attributes id="s">'
        + pair("shutdown", "1700000000")
        + pair("standby", "true")
        + pair("fail-count-web#monitor_10000", "INFINITY")
        + pair("last-failure-web#monitor_10000", "1700000001")
        + pair("fail-count-old", "3")
        + "</instance_attributes></transient_attributes>"
    )
    made = read(cib(status=f'<node_state id="1" uname="N1" {MEMBER}>{attributes}</node_state>'))
    status = made.cib.status.nodes["n1"]
    assert status.is_leaving
    assert status.attributes == {"shutdown": "1700000000", "standby": "true"}
    count = FailCount("monitor", 10_000, 1_000_000, 1_700_000_001_000)
    assert status.histories["web"].fail_counts == {"monitor_10000": count}
    assert status.histories["old"].fail_counts == {"_0": FailCount("", 0, 3, 0)}
    assert report_lines(made) == []


def test_tickets_and_transient_capacities() -> None:
    capacity = f'<utilization id="u">{pair("cpu", "2")}</utilization>'
    made = read(
        cib(
            status='<tickets><ticket_state id="t" granted="true" standby="1" last-granted="1700000000" owner="me"/>'
            '<ticket_state id="u"/></tickets>'
            f'<node_state id="1" uname="n1" {MEMBER}><transient_attributes id="1">{capacity}</transient_attributes>'
            "</node_state>"
        )
    )
    assert list(made.cib.status.tickets.values()) == [
        TicketState("t", is_granted=True, is_standby=True, last_granted=1_700_000_000_000, attributes={"owner": "me"}),
        TicketState("u"),
    ]
    assert made.cib.status.nodes["n1"].utilization == {"cpu": "2"}
    assert report_lines(made) == []


def operation(id_: str, more: str, *, rc: int = 0, status: int = 0) -> str:
    plan = "2" if status == -1 else "1"
    magic = "" if "magic" in more else f'transition-magic="{status}:{rc};4:{plan}:0:u"'
    return f'<lrm_rsc_op id="{id_}" rc-code="{rc}" op-status="{status}" transition-key="4:1:0:u" {magic} {more}/>'


def history(*operations: str, parameters: str = "") -> CibReading:
    resource = f'<primitive id="web" class="ocf" provider="pacemaker" type="Dummy">{parameters}</primitive>'
    inside = "".join(operations)
    return read(
        cib(
            resources=resource,
            status=f'<node_state id="1" uname="n1" {MEMBER}><lrm id="1"><lrm_resources><lrm_resource id="web" '
            f'class="ocf" provider="pacemaker" type="Dummy">{inside}</lrm_resource></lrm_resources></lrm></node_state>',
        )
    )


def test_records_of_operations() -> None:
    made = history(
        operation("web_last_0", f'operation="start" interval="0" call-id="5" op-digest="{NOTHING}"'),
        operation(
            "web_last_failure_0",
            'operation="monitor" interval="10000" call-id="7" last-rc-change="1700000000" exit-reason="why"',
            rc=1,
            status=2,
        ),
        operation("web_stop_0", 'operation="stop" interval="0" call-id="-1"', rc=193, status=-1),
    )
    found = made.cib.status.nodes["n1"].histories["web"]
    assert list(found.records) == ["start_0", "monitor_10000", "stop_0"]
    assert [record.sequence for record in found.records.values()] == [1, 2, 3]
    assert found.records["stop_0"].call_id == -1
    assert found.records["stop_0"].status is ExecutionStatus.PENDING
    failure = found.last_failure
    assert failure is found.records["monitor_10000"]
    assert (failure.exit_code, failure.status, failure.target_exit_code) == (ExitCode.ERROR, "timeout", ExitCode.OK)
    assert (failure.changed_at, failure.exit_reason) == (1_700_000_000_000, "why")
    assert report_lines(made) == []


def test_a_failure_and_its_success_afterwards_are_both_kept() -> None:
    made = history(
        operation("web_last_failure_0", 'operation="start" interval="0" call-id="5"', rc=1),
        operation("web_last_0", 'operation="start" interval="0" call-id="9"'),
    )
    found = made.cib.status.nodes["n1"].histories["web"]
    assert [(key, record.call_id) for key, record in found.records.items()] == [("start_0 1", 5), ("start_0", 9)]
    assert found.last_failure is found.records["start_0 1"]


def test_the_record_of_a_live_migration_and_its_digests() -> None:
    made = history(
        operation(
            "web_migrate_to_0",
            'operation="migrate_to" interval="0" call-id="5" migrate_source="n1" migrate_target="n2" on_node="n1"'
            ' transition-magic="0:0;4:1:0:u" op-digest="d" op-restart-digest="r" op-force-restart=" ip  nic "'
            ' op-secure-digest="s" op-secure-params=" passwd "',
        )
    )
    found = made.cib.status.nodes["n1"].histories["web"].records["migrate_to_0"]
    assert (found.migrate_source, found.migrate_target) == ("n1", "n2")
    assert (found.digest, found.restart_digest, found.restart_parameters) == ("d", "r", ("ip", "nic"))
    assert found.pacemaker == PacemakerMark("web_migrate_to_0", "n1", "0:0;4:1:0:u", "s", ("passwd",))


def test_a_shutdown_lock_and_what_is_inside_of_another() -> None:
    status = (
        f'<node_state id="1" uname="n1" {MEMBER}><lrm id="1"><lrm_resources><lrm_resource id="web" class="ocf"'
        ' provider="pacemaker" type="Dummy" shutdown-lock="1700000000" container="vm"/></lrm_resources></lrm>'
        "</node_state>"
    )
    node = read(cib(status=status)).cib.status.nodes["n1"]
    assert node.locks == {"web": 1_700_000_000_000}
    found = node.histories["web"]
    assert (found.launcher, found.records) == ("vm", {})


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('operation="start" interval="many"', "<lrm_rsc_op interval>: 'many' is not a whole number"),
        ('operation="start" interval="99999999999999999999"', "<lrm_rsc_op interval>: 99999999999999999999 is out"),
        ('interval="0"', "<lrm_rsc_op>: operation is missing"),
    ],
)
def test_records_that_cannot_be_held(attributes: str, expected: str) -> None:
    messages = [item.message for item in history(operation("x", attributes)).reports]
    assert len(messages) == 1
    assert messages[0].startswith(expected)


@pytest.mark.parametrize(("rc", "status"), [(256, 0), (-1, 0), (0, 12), (0, -2)])
def test_records_with_codes_that_mean_nothing_are_left_out(rc: int, status: int) -> None:
    made = history(operation("x", 'operation="start" interval="0"', rc=rc, status=status))
    assert made.cib.status.nodes["n1"].histories["web"].records == {}


@pytest.mark.parametrize(
    ("root", "expected"),
    [('have-quorum="1"', True), ('have-quorum="0"', False), ('have-quorum="false"', False), ("", False)],
)
def test_quorum(root: str, expected: bool) -> None:
    assert read(cib(root=root)).has_quorum is expected


def test_a_partition_without_quorum_may_be_allowed_to_fence() -> None:
    assert read(cib(root='have-quorum="0" no-quorum-panic="1"')).may_fence_without_quorum
    assert not read(cib(root='have-quorum="0"')).may_fence_without_quorum


def test_the_moment_of_the_document() -> None:
    assert read(cib(root='execution-date="1700000000"')).execution_date == 1_700_000_000_000
