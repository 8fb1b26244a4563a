"""How actions are run and what their failures lead to, by what the configuration says and leaves out."""

import pytest

from haclusterd.model.configuration import Operation
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.operation_settings import (
    OnFail,
    parameters_for,
    recurring_operations,
    resolve_on_fail,
    start_delay_ms,
    timeout_ms,
)
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.settings import Settings, unpack_settings
from tests.unpacked_cibs import NOW, block, found, meta, primitive, unpacked
from tests.written_cibs import cib, pair, read

NO_FENCING = pair("stonith-enabled", "false")


def op(name: str, interval: str = "0", inside: str = "", **more: str) -> str:
    words = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
    return f'<op id="{name}-{interval}-{len(words)}" name="{name}" interval="{interval}"{words}>{inside}</op>'


def made(
    operations: str, *, more: str = "", inside: str = "", agent: str = "ocf:pacemaker:Dummy", properties: str = ""
) -> tuple[Resource, Settings, Node]:
    text = primitive("a", f"{inside}<operations>{operations}</operations>", agent) + primitive("vm")
    inventory, settings = unpacked(read(cib(resources=text, more=more, properties=properties)).cib)
    return found(inventory, "a"), settings, inventory.nodes[0]


def op_defaults(rule: str = "", **pairs: str) -> str:
    return f"<op_defaults>{block('meta_attributes', 'od', rule, **pairs)}</op_defaults>"


FOR_MONITORS = '<rule id="r"><op_expression id="e" name="monitor" interval="10s"/></rule>'


@pytest.mark.parametrize(
    ("operations", "more", "name", "interval_ms", "expected"),
    [
        ("", "", "start", 0, 20_000),
        (op("start", timeout="7s"), "", "start", 0, 7_000),
        (op("start", inside=meta("x", timeout="8s")), "", "start", 0, 8_000),
        (op("start", inside=meta("x", timeout="8s"), timeout="7s"), "", "start", 0, 7_000),
        ("", op_defaults(timeout="9s"), "start", 0, 9_000),
        (op("start", timeout="7s"), op_defaults(timeout="9s"), "start", 0, 7_000),
        ("", op_defaults(FOR_MONITORS, timeout="9s"), "start", 0, 20_000),
        (op("monitor", "10s"), op_defaults(FOR_MONITORS, timeout="9s"), "monitor", 10_000, 9_000),
        (op("monitor", "11s"), op_defaults(FOR_MONITORS, timeout="9s"), "monitor", 11_000, 20_000),
        (op("monitor", "20s", timeout="5s") + op("monitor", "10s", timeout="6s"), "", "monitor", 0, 6_000),
        (op("monitor", "20s", timeout="5s") + op("monitor", "10s", timeout="6s", enabled="false"), "", "monitor", 0,
         5_000),
        (op("monitor", "10s"), op_defaults(timeout="9s"), "monitor", 0, 9_000),
        (op("monitor", "0", timeout="4s") + op("monitor", "10s", timeout="6s"), "", "monitor", 0, 4_000),
        (op("migrate", timeout="3s"), "", "migrate_to", 0, 3_000),
        (op("migrate", timeout="3s") + op("migrate_from", timeout="2s"), "", "migrate_from", 0, 2_000),
    ],
)  # fmt: skip
def test_a_timeout(operations: str, more: str, name: str, interval_ms: int, expected: int) -> None:
    resource, settings, _ = made(operations, more=more)
    assert timeout_ms(resource, name, interval_ms, settings) == expected


@pytest.mark.parametrize(
    ("text", "expected", "own"),
    [
        ("9s", 9_000, 9_000),
        ("2min", 120_000, 120_000),
        ("3 hours", 10_800_000, 10_800_000),
        ("5000us", 5, 5),
        ("1.5s", 1_000, 20_000),
        ("PT1M30S", 20_000, 90_000),
        ("P40S", 20_000, 40_000),
        ("1e3", 20_000, 20_000),
        ("+5", 20_000, 20_000),
        ("-5", 20_000, 20_000),
        ("abc", 20_000, 20_000),
    ],
)
def test_a_timeout_in_a_cib_of_pacemaker_is_read_as_there(text: str, expected: int, own: int) -> None:
    resource, settings, _ = made(op("start", inside=meta("x", timeout=text)))
    assert timeout_ms(resource, "start", 0, settings) == expected
    resource, settings, _ = made("", more=op_defaults(timeout=text))
    assert timeout_ms(resource, "start", 0, settings) == expected
    resource, settings, _ = made("", more=op_defaults(timeout=text))
    ours = unpack_settings(read(cib(more=op_defaults(timeout=text))).cib.configuration, NOW, ScheduleOptions())
    assert timeout_ms(resource, "start", 0, ours) == own


def test_what_stands_behind_the_unit_of_a_default_timeout_says_nothing_in_a_cib_of_pacemaker() -> None:
    resource, settings, _ = made("", more=op_defaults(timeout="2m 3s"))
    assert timeout_ms(resource, "start", 0, settings) == 120_000


def test_a_fence_device_is_started_and_asked_with_its_own_timeout() -> None:
    inside = block("instance_attributes", "p", pcmk_monitor_timeout="44s")
    resource, settings, _ = made(op("start", timeout="7s"), inside=inside, agent="stonith:fence_dummy")
    asked = [timeout_ms(resource, name, interval, settings) for name, interval in (("start", 0), ("monitor", 0))]
    assert asked == [44_000, 44_000]
    assert timeout_ms(resource, "stop", 0, settings) == 20_000


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (op("monitor", "60s"), 0),
        (op("monitor", "60s", start_delay="5s"), 5_000),
        (op("monitor", "60s", interval_origin="2026-01-01T11:59:40Z"), 40_000),
        (op("monitor", "60s", interval_origin="2026-01-01T12:00:10Z"), 10_000),
        (op("monitor", "60s", interval_origin="2026-01-01T12:00:00Z"), 0),
        (op("monitor", "60s", interval_origin="2026-01-01T12:00:10Z", start_delay="5s"), 5_000),
        (op("monitor", "60s", interval_origin="some day"), 0),
        (op("monitor", "60s", inside=meta("x", **{"start-delay": "6s"})), 6_000),
        (op("monitor", "60s", interval_origin="2026-01-01T12:00:10Z", start_delay="0"), 0),
        (op("monitor", "60s", interval_origin="2026-01-01T12:00:10Z", inside=meta("x", **{"start-delay": "0"})), 0),
    ],
)
def test_a_delay(operation: str, expected: int) -> None:
    assert WallTime(1_767_268_800_000) == NOW, "2026-01-01T12:00:00Z"
    resource, settings, _ = made(operation)
    assert start_delay_ms(resource, "monitor", 60_000, settings) == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (op("monitor", "60s"), 7_000),
        (op("monitor", "60s", interval_origin="2026-01-01T12:00:10Z"), 7_000),
        (op("monitor", "60s", start_delay="0"), 0),
        (op("monitor", "60s", start_delay="0s", inside=meta("x", **{"start-delay": "4"})), 0),
        (op("monitor", "60s", start_delay="3s", inside=meta("x", **{"start-delay": "0"})), 3_000),
        (op("monitor", "60s", start_delay="-5"), 0),
        (op("monitor", "60s", start_delay="soon"), 0),
        (op("monitor", "60s", inside=meta("x", **{"start-delay": "0"})), 0),
    ],
)
def test_the_nearest_delay_counts_and_so_does_one_of_nothing(operation: str, expected: int) -> None:
    """Seen with crm_simulate 2.1.5."""
    resource, settings, _ = made(operation, more=op_defaults(**{"start-delay": "7s"}))
    assert start_delay_ms(resource, "monitor", 60_000, settings) == expected


PROMOTED_MONITOR = op("monitor", "10s", role="Promoted", on_fail="block")


@pytest.mark.parametrize(
    ("operations", "name", "interval_ms", "properties", "expected"),
    [
        ("", "start", 0, "", OnFail.RESTART),
        ("", "stop", 0, "", OnFail.FENCE),
        ("", "stop", 0, NO_FENCING, OnFail.BLOCK),
        ("", "lrm_delete", 0, "", OnFail.IGNORE),
        (op("start", on_fail="ignore"), "start", 0, "", OnFail.IGNORE),
        (op("start", on_fail="nothing"), "start", 0, "", OnFail.IGNORE),
        (op("start", on_fail="migrate"), "start", 0, "", OnFail.BAN),
        (op("start", on_fail="standby"), "start", 0, "", OnFail.STANDBY),
        (op("start", on_fail="fence"), "start", 0, "", OnFail.FENCE),
        (op("start", on_fail="fence"), "start", 0, NO_FENCING, OnFail.STOP),
        (op("start", on_fail="restart-container"), "start", 0, "", OnFail.RESTART),
        (op("stop", on_fail="standby"), "stop", 0, "", OnFail.FENCE),
        (op("stop", on_fail="ignore"), "stop", 0, "", OnFail.IGNORE),
        (op("promote", on_fail="demote"), "promote", 0, "", OnFail.DEMOTE),
        (op("start", on_fail="demote"), "start", 0, "", OnFail.RESTART),
        (op("monitor", "10s", on_fail="demote"), "monitor", 10_000, "", OnFail.RESTART),
        (op("monitor", "10s", on_fail="demote", role="Promoted"), "monitor", 10_000, "", OnFail.DEMOTE),
        (op("monitor", "10s", on_fail="demote", role="Master"), "monitor", 10_000, "", OnFail.DEMOTE),
        (PROMOTED_MONITOR, "demote", 0, "", OnFail.BLOCK),
        (PROMOTED_MONITOR + op("monitor", "11s", role="Promoted", on_fail="ignore"), "demote", 0, "", OnFail.IGNORE),
        (PROMOTED_MONITOR + op("monitor", "11s", role="Promoted", on_fail="demote"), "demote", 0, "", OnFail.BLOCK),
        (PROMOTED_MONITOR + op("demote", on_fail="standby"), "demote", 0, "", OnFail.STANDBY),
    ],
)
def test_on_fail(operations: str, name: str, interval_ms: int, properties: str, expected: OnFail) -> None:
    resource, settings, node = made(operations, properties=properties)
    assert resolve_on_fail(resource, name, interval_ms, node, settings) is expected


def test_on_fail_by_default_and_by_rule() -> None:
    resource, settings, node = made(op("monitor", "10s"), more=op_defaults(FOR_MONITORS, **{"on-fail": "block"}))
    chosen = [resolve_on_fail(resource, "monitor", interval, node, settings) for interval in (10_000, 11_000)]
    assert chosen == [OnFail.BLOCK, OnFail.RESTART]


def test_what_runs_inside_another_restarts_it() -> None:
    resource, settings, node = made(op("start", on_fail="ignore"), inside=meta("a", container="vm"))
    assert resolve_on_fail(resource, "monitor", 10_000, node, settings) is OnFail.RESTART_CONTAINER
    assert resolve_on_fail(resource, "start", 0, node, settings) is OnFail.IGNORE


@pytest.mark.parametrize(
    ("written", "name", "interval_ms", "expected"),
    [
        ("", "monitor", 30_000, OnFail.RESET_REMOTE),
        ("", "stop", 0, OnFail.RESET_REMOTE),
        ("", "start", 0, OnFail.RESTART),
        ("", "monitor", 0, OnFail.RESTART),
        (meta("a", **{"is-managed": "false"}), "monitor", 30_000, OnFail.STOP),
        (meta("a", **{"is-managed": "false"}), "monitor", 60_000, OnFail.STOP),
    ],
)
def test_a_lost_connection_resets_the_remote_node(written: str, name: str, interval_ms: int, expected: OnFail) -> None:
    operations = op("monitor", "60s", on_fail="ignore")
    resource, settings, node = made(operations, inside=written, agent="ocf:pacemaker:remote")
    assert resolve_on_fail(resource, name, interval_ms, node, settings) is expected


def test_an_operation_may_have_parameters_of_its_own() -> None:
    own = block("instance_attributes", "o", OCF_CHECK_LEVEL="20", fake="op")
    inside = block("instance_attributes", "p", fake="all", state="s")
    resource, settings, _ = made(op("monitor", "10s", own), inside=inside)
    assert parameters_for(resource, "monitor", 10_000, settings) == {
        "fake": "op", "state": "s", "OCF_CHECK_LEVEL": "20",
    }  # fmt: skip
    assert parameters_for(resource, "start", 0, settings) == {"fake": "all", "state": "s"}


def test_parameters_may_depend_on_the_node() -> None:
    rule = '<rule id="r"><expression id="e" attribute="#uname" operation="eq" value="n1"/></rule>'
    inside = block("instance_attributes", "p", rule, "5", fake="n1") + block("instance_attributes", "q", fake="all")
    resource, settings, node = made("", inside=inside)
    assert parameters_for(resource, "start", 0, settings, node)["fake"] == "n1"
    assert parameters_for(resource, "start", 0, settings)["fake"] == "all"


def _named(operations: list[Operation]) -> list[tuple[str, int]]:
    return [(operation.name, operation.interval_ms) for operation in operations]


def test_what_runs_again_and_again() -> None:
    operations = "".join((
        op("monitor", "10s"), op("monitor", "10s", timeout="5s"), op("monitor", "11s", enabled="false"),
        op("monitor", "12s"), op("start", "13s"), op("status", "14s"), op("monitor"),
    ))  # fmt: skip
    resource, settings, _ = made(operations)
    assert _named(recurring_operations(resource, settings)) == [(ActionName.MONITOR, 12_000), ("status", 14_000)]
