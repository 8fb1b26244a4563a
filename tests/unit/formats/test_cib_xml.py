"""Reading the status of Pacemaker's CIB: what nodes are in it, and what is recorded of resources."""

import pytest

from haclusterd.formats.cib_xml import CibReading
from haclusterd.formats.cib_xml_digests import digest
from haclusterd.model.cluster import NodeState
from haclusterd.model.history import FailCount
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from tests.written_cibs import FENCING, MEMBER, NO_FENCING, NOTHING, RUNNING, cib, pair, read, told


@pytest.mark.parametrize(
    ("properties", "state", "inside", "expected", "detail"),
    [
        (FENCING, MEMBER, "", NodeState.ONLINE, ""),
        (FENCING, MEMBER.replace('"true"', '"1700000000"'), "", NodeState.ONLINE, ""),
        (FENCING, MEMBER.replace("online", "offline"), "", NodeState.LOST, "peer process is no longer available"),
        (FENCING, MEMBER.replace('"true"', '"false"'), "", NodeState.LOST, "peer is no longer part of the cluster"),
        (FENCING, MEMBER.replace('join="member"', 'join="banned"'), "", NodeState.LOST, "peer failed Pacemaker m"),
        (FENCING, MEMBER.replace('join="member"', 'join="pending"'), "", NodeState.LEFT, ""),
        (FENCING, 'crmd="online" join="member" expected="member"', "", NodeState.LOST, "peer has not been seen"),
        (FENCING, 'in_ccm="false" crmd="offline" join="down" expected="down"', "", NodeState.LEFT, ""),
        (FENCING, 'in_ccm="false" crmd="offline" join="down" expected="down"', RUNNING, NodeState.LOST, "web is thou"),
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
    assert told(made) == ["warning cib.xml:9: the old attribute fail-count-old is not supported yet"]


def operation(id_: str, more: str, *, rc: int = 0, status: int = 0) -> str:
    return f'<lrm_rsc_op id="{id_}" rc-code="{rc}" op-status="{status}" transition-key="4:1:0:u" {more}/>'


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
    assert set(found.records) == {"start_0", "stop_0"}
    assert found.records["stop_0"].call_id == 8
    assert found.records["stop_0"].status is ExecutionStatus.PENDING
    failure = found.last_failure
    assert failure is not None
    assert (failure.exit_code, failure.status, failure.target_exit_code) == (ExitCode.ERROR, "timeout", ExitCode.OK)
    assert (failure.changed_at, failure.exit_reason) == (1_700_000_000_000, "why")
    assert told(made) == []


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('operation="migrate_to" interval="0"', "the record of a live migration is not supported yet"),
        ('operation="start" interval="many"', "<lrm_rsc_op interval>: 'many' is not a whole number"),
        ('operation="start" interval="99999999999999999999"', "<lrm_rsc_op interval>: 99999999999999999999 is out"),
        ('interval="0"', "<lrm_rsc_op>: operation is missing"),
    ],
)
def test_records_that_cannot_be_held(attributes: str, expected: str) -> None:
    messages = [item.message for item in history(operation("x", attributes)).reports]
    assert len(messages) == 1
    assert messages[0].startswith(expected)


@pytest.mark.parametrize(
    ("recorded", "kept"),
    [
        (f'op-digest="{digest({"ip": "10.0.0.1", "passwd": "****"})}"', ""),
        (f'op-digest="{NOTHING}"', NOTHING),
        ("", "not-recorded"),
        (
            f'op-digest="{NOTHING}" op-secure-params=" passwd " op-secure-digest="{digest({"ip": "10.0.0.1"})}"',
            "",
        ),
    ],
    ids=["the same parameters", "other parameters", "no digest", "only private ones differ"],
)
def test_a_digest_is_kept_only_when_it_says_that_parameters_changed(recorded: str, kept: str) -> None:
    block = f'<instance_attributes id="i">{pair("passwd", "****")}{pair("ip", "10.0.0.1")}</instance_attributes>'
    made = history(operation("web_last_0", f'operation="start" interval="0" {recorded}'), parameters=block)
    assert made.cib.status.nodes["n1"].histories["web"].records["start_0"].digest == kept


def test_the_digest_of_nothing_is_pacemakers() -> None:
    assert digest({}) == NOTHING


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
