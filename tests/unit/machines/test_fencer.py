"""How a node runs fence agents for orders that name it."""

from collections.abc import Sequence

import pytest

from haclusterd.cib import commands
from haclusterd.cib.codec import encode_envelope
from haclusterd.cib.commands import Envelope
from haclusterd.cib.edits import Delete, PutResource, PutTemplate
from haclusterd.machines.effects import CallFenceAgent, Effect
from haclusterd.machines.fencer import FencerMachine, delay_ms, fence_parameters, host_map
from haclusterd.model.agent_calls import FenceCall, FenceCallResult
from haclusterd.model.configuration import AttributeSet, Template
from haclusterd.model.fence_parameters import RETRY_PAUSE_MS
from haclusterd.model.fencing import FenceAction, FenceOrder, FenceOutcome
from haclusterd.model.ids import AgentReference, FenceKey, RequestId, ResourceId
from haclusterd.model.instants import NEVER, WallTime
from haclusterd.model.records import replace
from haclusterd.ports.store import MAX_ENTRY_BYTES
from tests.unit.situations import (
    N1,
    N2,
    N3,
    TERM,
    Cluster,
    commands_of,
    life,
    moment,
    primitive,
    without_lease,
)

TIMEOUT_MS = 60_000


class Executor:
    """n1, which is to fence n2 with `power`."""

    def __init__(
        self,
        parameters: dict[str, str] | None = None,
        *,
        others: tuple[str, ...] = (),
        agent: str = "stonith:fence_test",
    ) -> None:
        self.cluster = Cluster()
        self.others = tuple(map(ResourceId, others))
        for name in ("power", *others):
            self.cluster.configure(PutResource(primitive(name, agent, parameters)))
        self.cluster.lose(N2)
        self.fencer = FencerMachine(N1, life(N1))
        self.now = 1000
        self.calls: list[FenceCall] = []

    def order(self, key: str = "f1") -> FenceOrder:
        return FenceOrder(
            key=FenceKey(key),
            target=N2,
            target_incarnation=life(N2),
            action=FenceAction.REBOOT,
            device=ResourceId("power"),
            executor=N1,
            executor_incarnation=life(N1),
            dc_term=TERM,
            timeout_ms=TIMEOUT_MS,
            attempt=1,
            issued_at=WallTime(0),
            reason="lost",
            others=self.others,
        )

    def take(self, effects: Sequence[Effect]) -> list[FenceOutcome]:
        """Note the calls; return what is reported."""
        self.calls += [effect.call for effect in effects if isinstance(effect, CallFenceAgent)]
        reported = []
        for command in commands_of(effects):
            assert isinstance(command, commands.RecordFenceAgent)
            reported.append(command.outcome)
        return reported

    def ordered(self, *, has_lease: bool = True) -> list[FenceOutcome]:
        self.cluster.must(commands.IssueFence(self.order()))
        now = moment(self.now) if has_lease else without_lease(self.now)
        return self.take(self.fencer.cib_changed(self.cluster.cib, now))

    def ended(self, exit_code: int, *, timed_out: bool = False, output: str = "") -> list[FenceOutcome]:
        result = FenceCallResult(self.calls[-1].key, exit_code, timed_out=timed_out, reason="", output=output)
        return self.take(self.fencer.agent_finished(result, moment(self.now)))

    def wait(self, span_ms: int) -> list[FenceOutcome]:
        self.now += span_ms
        return self.take(self.fencer.ticked(moment(self.now)))


def test_the_agent_is_called_and_its_success_reported() -> None:
    executor = Executor({"ip": "192.0.2.1"})
    assert executor.ordered() == []
    [call] = executor.calls
    assert (call.agent, call.action, call.timeout_ms) == ("fence_test", "reboot", TIMEOUT_MS)
    assert (call.parameters, call.host) == ({"ip": "192.0.2.1", "nodename": "n2"}, "n2")
    assert executor.fencer.is_fencing
    assert executor.ended(0) == [FenceOutcome.FENCED]
    assert not executor.fencer.is_fencing


@pytest.mark.parametrize("exit_code", [0, 1])
@pytest.mark.parametrize("letter", ["x", '"', "\x00", "\u6f22"])
def test_an_agent_that_says_very_much_is_answered_for(letter: str, exit_code: int) -> None:
    """A library's answer as one line of JSON; an answer that fits in no entry of the log would never be recorded."""
    others = tuple(f"power{number}" for number in range(2, 7))
    executor = Executor({"pcmk_off_retries": "1", "pcmk_on_retries": "1"}, others=others)
    executor.ordered()
    answers: list[commands.Command] = []
    while not answers and len(executor.calls) < 20:
        result = FenceCallResult(executor.calls[-1].key, exit_code, timed_out=False, reason=letter * 65_000, output="")
        effects = executor.fencer.agent_finished(result, moment(executor.now))
        executor.take(effects)
        answers = commands_of(effects)
        assert executor.calls[-1].key != result.key or answers, "the next call, or the answer"
    [answer] = answers
    assert isinstance(answer, commands.RecordFenceAgent)
    assert letter in answer.detail
    envelope = Envelope(RequestId("n1:token:1"), N1, WallTime(0), answer)
    assert len(encode_envelope(envelope)) < MAX_ENTRY_BYTES


def test_a_success_of_many_devices_that_all_talk_can_be_recorded() -> None:
    executor = Executor(others=tuple(f"power{number}" for number in range(30)))
    executor.ordered()
    answers: list[commands.Command] = []
    while not answers:
        result = FenceCallResult(executor.calls[-1].key, 0, timed_out=False, reason="\x1b" * 500, output="")
        effects = executor.fencer.agent_finished(result, moment(executor.now))
        executor.take(effects)
        answers = commands_of(effects)
    envelope = Envelope(RequestId("n1:token:1"), N1, WallTime(0), answers[0])
    assert len(encode_envelope(envelope)) < MAX_ENTRY_BYTES


def test_an_order_is_begun_once() -> None:
    executor = Executor()
    executor.ordered()
    executor.take(executor.fencer.cib_changed(executor.cluster.cib, moment(2000)))
    executor.ended(0)
    executor.take(executor.fencer.cib_changed(executor.cluster.cib, moment(3000)))
    assert len(executor.calls) == 1


def test_an_order_for_another_or_for_an_older_life_is_not_begun() -> None:
    executor = Executor()
    executor.cluster.must(commands.IssueFence(executor.order()))
    for fencer in (FencerMachine(N3, life(N3)), FencerMachine(N1, life(N1, token=2))):
        assert fencer.cib_changed(executor.cluster.cib, moment(1000)) == []


@pytest.mark.parametrize("parameters", [{}, {"pcmk_delay_base": "5s"}])
def test_without_a_lease_nobody_is_shot(parameters: dict[str, str]) -> None:
    """It says so at once, so that another node is asked."""
    executor = Executor(parameters)
    assert executor.ordered(has_lease=False) == [FenceOutcome.FAILED]
    assert executor.calls == []


def test_a_device_that_is_not_configured_fails_at_once() -> None:
    executor = Executor()
    executor.cluster.configure(Delete("resource", "power"))
    assert executor.ordered() == [FenceOutcome.FAILED]


def test_a_failed_agent_is_called_again_after_a_pause_with_the_time_that_is_left() -> None:
    executor = Executor()
    executor.ordered()
    executor.now += 5000
    assert executor.ended(1) == []
    assert executor.fencer.is_fencing
    assert executor.fencer.deadline() == executor.now + RETRY_PAUSE_MS
    executor.wait(RETRY_PAUSE_MS - 1)
    assert len(executor.calls) == 1
    executor.wait(1)
    assert [call.key for call in executor.calls] == ["f1/1", "f1/2"]
    assert executor.calls[1].timeout_ms == TIMEOUT_MS - 6000
    assert executor.fencer.deadline() == NEVER
    assert executor.ended(1) == [FenceOutcome.FAILED]


def test_a_timeout_is_a_failure_and_is_not_retried() -> None:
    executor = Executor()
    executor.ordered()
    assert executor.ended(0, timed_out=True) == [FenceOutcome.TIMEOUT]


def test_there_is_no_retry_late_in_the_timeout() -> None:
    executor = Executor()
    executor.ordered()
    executor.now += TIMEOUT_MS * 7 // 10
    assert executor.ended(1) == [FenceOutcome.FAILED]


def test_the_answer_for_an_older_call_counts_for_nothing() -> None:
    executor = Executor()
    executor.ordered()
    executor.ended(0)
    again = FenceCallResult("f1/1", 0, timed_out=False, reason="", output="")
    assert executor.take(executor.fencer.agent_finished(again, moment(2000))) == []


@pytest.mark.parametrize(
    ("parameters", "seen"),
    [
        ({"pcmk_reboot_action": "off"}, ("off", 60_000)),
        ({"pcmk_reboot_timeout": "5s"}, ("reboot", 5000)),
        ({"pcmk_reboot_timeout": "nonsense"}, ("reboot", 60_000)),
    ],
)
def test_the_devices_own_wishes_are_honoured(parameters: dict[str, str], seen: tuple[str, int]) -> None:
    executor = Executor(parameters)
    executor.ordered()
    assert (executor.calls[0].action, executor.calls[0].timeout_ms) == seen


def test_how_often_it_is_tried_is_configured() -> None:
    executor = Executor({"pcmk_reboot_retries": "1"})
    executor.ordered()
    assert executor.ended(1) == [FenceOutcome.FAILED]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, ({}, "n2")),
        ({"pcmk_host_argument": "plug"}, ({"plug": "n2"}, None)),
        ({"pcmk_host_argument": "none"}, ({}, None)),
        ({"port": "7"}, ({"port": "7"}, "n2")),
        ({"pcmk_host_argument": "port", "port": "7"}, ({"port": "7"}, None)),
        ({"pcmk_host_argument": "port", "port": "dynamic"}, ({"port": "n2"}, None)),
        ({"pcmk_host_map": "n1:1;n2:2"}, ({}, "2")),
        ({"pcmk_host_list": "n1 n2", "provides": "x", "action": "off", "CRM_meta_a": "1"}, ({}, "n2")),
    ],
)
def test_what_the_agent_reads(parameters: dict[str, str], expected: tuple[dict[str, str], str | None]) -> None:
    plain, host = expected
    assert fence_parameters(parameters, N2) == ({**plain, "nodename": "n2"}, host)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n1:1;n2:2", {"n1": "1", "n2": "2"}),
        ("n1=1 N2=2\tn3:3", {"n1": "1", "n2": "2", "n3": "3"}),
        ("n1:fe80::1", {"n1": "fe80::1"}),
        ("n1; :2; n3:", {}),
        ("", {}),
    ],
)
def test_host_maps(text: str, expected: dict[str, str]) -> None:
    assert host_map(text) == expected


def actions(executor: Executor) -> list[str]:
    return [call.action for call in executor.calls]


def test_a_reset_with_two_supplies_is_off_on_both_and_then_on_on_both() -> None:
    executor = Executor(others=("power2",))
    executor.ordered()
    for _ in range(3):
        assert executor.ended(0) == []
    assert actions(executor) == ["off", "off", "on", "on"]
    assert executor.ended(1) == []
    assert executor.wait(RETRY_PAUSE_MS) == []
    assert executor.ended(1) == [FenceOutcome.FENCED]


def test_devices_that_let_nodes_in_are_not_asked_for_it_by_a_fencing() -> None:
    """The node may live: it would get at what other nodes use by then."""
    executor = Executor(others=("san2",))
    provides = (AttributeSet("provides", (("provides", "unfencing"),)),)
    for name in ("power", "san2"):
        device = replace(primitive(name, "stonith:fence_test", None), meta=provides)
        executor.cluster.configure(PutResource(device))
    executor.ordered()
    assert executor.ended(0) == []
    assert executor.ended(0) == [FenceOutcome.FENCED]
    assert actions(executor) == ["off", "off"]


def test_nor_when_they_are_configured_otherwise_before_the_order_is_seen() -> None:
    executor = Executor(others=("san2",))
    provides = (AttributeSet("provides", (("provides", "unfencing"),)),)
    plain = primitive("san2", "stonith:fence_test", None)
    executor.cluster.configure(PutResource(replace(plain, meta=provides)))
    executor.cluster.must(commands.IssueFence(executor.order()))
    executor.cluster.configure(PutResource(plain))
    executor.take(executor.fencer.cib_changed(executor.cluster.cib, moment(executor.now)))
    executor.ended(0)
    executor.ended(0)
    assert executor.ended(0) == [FenceOutcome.FENCED]
    assert actions(executor) == ["off", "off", "on"]


def test_nor_when_they_are_configured_so_only_after_the_order_was_given() -> None:
    executor = Executor(others=("san2",))
    executor.cluster.must(commands.IssueFence(executor.order()))
    provides = (AttributeSet("provides", (("provides", "unfencing"),)),)
    executor.cluster.configure(
        PutResource(replace(primitive("san2", "stonith:fence_test", None), meta=provides))
    )
    executor.take(executor.fencer.cib_changed(executor.cluster.cib, moment(executor.now)))
    executor.ended(0)
    executor.ended(0)
    assert executor.ended(0) == [FenceOutcome.FENCED]
    assert actions(executor) == ["off", "off", "on"]


def test_without_a_lease_nothing_is_asked_again() -> None:
    executor = Executor()
    executor.ordered()
    assert executor.ended(1) == []
    later = executor.now + RETRY_PAUSE_MS
    assert executor.take(executor.fencer.ticked(without_lease(later))) == [FenceOutcome.FAILED]
    assert len(executor.calls) == 1


def test_without_a_lease_the_power_of_a_node_that_is_off_is_switched_on() -> None:
    executor = Executor(others=("power2",))
    executor.ordered()
    executor.ended(0)
    result = FenceCallResult(executor.calls[-1].key, 0, timed_out=False, reason="", output="")
    executor.take(executor.fencer.agent_finished(result, without_lease(executor.now)))
    assert actions(executor) == ["off", "off", "on"]
    assert [call.needs_lease for call in executor.calls] == [True, True, False]


def test_no_call_takes_longer_than_its_order_says() -> None:
    executor = Executor({"pcmk_reboot_timeout": "90s"})
    executor.ordered()
    assert executor.calls[0].timeout_ms == TIMEOUT_MS


def test_one_supply_that_stays_on_is_no_fencing() -> None:
    executor = Executor({"pcmk_off_retries": "1"}, others=("power2",))
    executor.ordered()
    assert executor.ended(0) == []
    assert executor.ended(1) == [FenceOutcome.FAILED]
    assert actions(executor) == ["off", "off"]


@pytest.mark.parametrize(
    ("parameters", "at_least_ms", "at_most_ms"),
    [
        ({"pcmk_delay_base": "5s"}, 5000, 5000),
        ({"pcmk_delay_base": "n1:9s;n2:2s"}, 2000, 2000),
        ({"pcmk_delay_base": "n1:9s"}, 0, 0),
        ({"pcmk_delay_max": "10s"}, 0, 10_000),
        ({"pcmk_delay_base": "3s", "pcmk_delay_max": "10s"}, 3000, 10_000),
        ({"pcmk_delay_base": "30s", "pcmk_delay_max": "10s"}, 30_000, 30_000),
    ],
)
def test_off_and_reset_wait(parameters: dict[str, str], at_least_ms: int, at_most_ms: int) -> None:
    executor = Executor(parameters)
    executor.ordered()
    waits = executor.fencer.deadline() - executor.now if not executor.calls else 0
    assert at_least_ms <= waits <= at_most_ms
    executor.wait(waits)
    assert len(executor.calls) == 1


def test_the_delay_of_an_order_comes_on_top_once() -> None:
    executor = Executor({"pcmk_delay_base": "2s"}, others=("backup",))
    executor.cluster.must(commands.IssueFence(replace(executor.order(), delay_ms=5000)))
    executor.take(executor.fencer.cib_changed(executor.cluster.cib, moment(executor.now)))
    waits = []
    for _ in ("power", "backup"):
        waits.append(executor.fencer.deadline() - executor.now)
        executor.wait(waits[-1])
        executor.ended(0)
    assert waits == [7000, 2000]


def test_a_delay_is_the_same_each_time_it_is_looked_at_and_another_for_another_order() -> None:
    executor = Executor()
    drawn = [delay_ms({"pcmk_delay_max": "60s"}, executor.order(f"f{number}")) for number in range(20)]
    assert drawn == [delay_ms({"pcmk_delay_max": "60s"}, executor.order(f"f{number}")) for number in range(20)]
    assert len(set(drawn)) > 10


@pytest.mark.parametrize(
    ("check", "exit_code", "output", "is_fenced"),
    [
        ("dynamic-list", 0, "n1,one\nn2,two\n", True),
        ("dynamic-list", 0, "7,N2\n", True),
        ("dynamic-list", 0, "n1,one\n", False),
        ("status", 0, "", True),
        ("status", 2, "", True),
        ("status", 1, "", False),
    ],
)
def test_a_device_is_asked_first_whether_it_knows_the_node(
    check: str, exit_code: int, output: str, is_fenced: bool
) -> None:
    executor = Executor({"pcmk_host_check": check, "pcmk_status_retries": "1", "pcmk_list_retries": "1"})
    executor.ordered()
    reported = executor.ended(exit_code, output=output)
    if is_fenced:
        assert reported == []
        assert actions(executor) == ["list" if check == "dynamic-list" else "status", "reboot"]
    else:
        assert reported == [FenceOutcome.FAILED]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, ["list", "reboot"]),
        ({"hostlist": "n2"}, ["list", "reboot"]),
        ({"pcmk_host_list": "n1 n2"}, ["reboot"]),
        ({"pcmk_host_map": "n2:alias"}, ["reboot"]),
        ({"pcmk_host_check": "none"}, ["reboot"]),
        ({"pcmk_host_check": "static-list"}, ["reboot"]),
        ({"pcmk_host_check": "status"}, ["status", "reboot"]),
        ({"pcmk_host_check": "dynamic-list", "pcmk_host_list": "n2"}, ["list", "reboot"]),
    ],
)
def test_a_plugin_of_cluster_glue_is_asked_for_its_hosts_unless_they_are_listed(
    parameters: dict[str, str], expected: list[str]
) -> None:
    executor = Executor(parameters, agent="stonith:external/x")
    reported = executor.ordered()
    while not reported:
        reported = executor.ended(0, output="n1\nN2\n")
    assert (actions(executor), reported) == (expected, [FenceOutcome.FENCED])


def test_a_plugin_that_does_not_list_the_node_is_not_used_and_not_asked_again() -> None:
    executor = Executor(agent="stonith:external/x")
    executor.ordered()
    assert executor.ended(0, output="n1\nn22\n") == [FenceOutcome.FAILED]
    assert actions(executor) == ["list"]


def test_a_plugin_that_could_not_list_its_hosts_is_asked_again() -> None:
    executor = Executor(agent="stonith:external/x")
    executor.ordered()
    assert executor.ended(1) == []
    executor.wait(RETRY_PAUSE_MS)
    assert executor.ended(0, output="n2\n") == []
    assert actions(executor) == ["list", "list", "reboot"]


@pytest.mark.parametrize(("configured", "asked"), [({}, None), ({"nodename": "blade7"}, "blade7")])
def test_a_list_of_hosts_is_about_no_node(configured: dict[str, str], asked: str | None) -> None:
    executor = Executor({"pcmk_host_check": "dynamic-list", **configured})
    executor.ordered()
    executor.ended(0, output="n2\n")
    assert [call.parameters.get("nodename") for call in executor.calls] == [asked, "n2"]


def test_a_device_does_one_thing_at_a_time() -> None:
    executor = Executor()
    executor.cluster.lose(N3)
    executor.ordered()
    second = replace(executor.order("f2"), target=N3, target_incarnation=life(N3))
    executor.cluster.must(commands.IssueFence(second))
    executor.take(executor.fencer.cib_changed(executor.cluster.cib, moment(executor.now)))
    assert len(executor.calls) == 1
    assert executor.ended(0) == [FenceOutcome.FENCED]
    assert [call.host for call in executor.calls] == ["n2", "n3"]


def test_a_device_made_from_a_template_is_called_with_its_words() -> None:
    executor = Executor({"port": "7"})
    parameters = AttributeSet("t-params", (("ip", "10.0.0.9"), ("port", "1")))
    agent = AgentReference("stonith", None, "fence_test")
    executor.cluster.configure(PutTemplate(Template(ResourceId("t"), agent, (parameters,))))
    power = replace(primitive("power", "stonith:fence_test", {"port": "7"}), template=ResourceId("t"))
    executor.cluster.configure(PutResource(power))
    executor.ordered()
    assert {**executor.calls[-1].parameters, "ip": "10.0.0.9", "port": "7"} == executor.calls[-1].parameters
