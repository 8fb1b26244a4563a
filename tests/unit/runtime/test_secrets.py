"""What agents get in the place of references, and what comes back of it."""

import random
from collections.abc import Callable, Mapping

import pytest

from haclusterd.model.agent_calls import REASON_MAX, AgentCall, AgentResult, FenceCall, FenceCallResult
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.records import replace
from haclusterd.model.secrets import Secret, Secrets, masked
from haclusterd.runtime.secrets.values import KEY_WAIT_MS, SecretAgents, SecretFenceAgents, SecretValues
from haclusterd.simulator.hosts.secrets import SimulatedKeeper
from tests.unit.runtime.one_daemon import ByHand, ManualClock

N1 = NodeName("n1")
AGENT = AgentReference("ocf", "test", "web")
DONE = ExecutionStatus.DONE


class Agents:
    """An `AgentRunner` and `FenceAgents` that say what they were given."""

    def __init__(self) -> None:
        self.given: list[Mapping[str, str]] = []
        self.killed: list[str] = []

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        self.given.append(call.parameters)
        words = " ".join(call.parameters.values())
        done(AgentResult(call.key, 0, DONE, words, words, words, 0, 0))

    def call(self, call: FenceCall, done: Callable[[FenceCallResult], None]) -> None:
        self.given.append(call.parameters)
        words = " ".join(call.parameters.values())
        done(FenceCallResult(call.key, 1, timed_out=False, reason=words, output=words))

    def validate(self, question: ValidationQuestion, _timeout_ms: int, done: Callable[[Validation], None]) -> None:
        self.given.append(dict(question.parameters))
        done(Validation(6, " ".join(value for _, value in question.parameters)))

    def kill(self, key: str) -> None:
        self.killed.append(key)

    def waits(self) -> tuple[str, ...]:
        return ("theirs",)



class Bench:
    """One node with a secret `db`, of which it has an earlier value too."""

    def __init__(self, *, has_key: bool = True) -> None:
        self.clock, self.background, self.agents = ManualClock(), ByHand(), Agents()
        self.keeper = SimulatedKeeper(N1, random.Random(1))
        key_id, keys = self.keeper.new_key({N1: self.keeper.public_key()})
        whole = Secrets(1, key_id, keys)
        newest, before = (self.keeper.seal(whole, "db", value) or "" for value in ("newest", "before"))
        self.whole = replace(whole, values={"db": Secret(7, newest, earlier={"5": before})})
        self.secrets = self.whole if has_key else replace(self.whole, keys={})
        values = SecretValues(self.keeper, lambda: self.secrets, self.background)
        self.runner = SecretAgents(self.agents, values, self.clock)
        self.fencing = SecretFenceAgents(self.agents, values, self.clock)
        self.results: list[AgentResult] = []

    def run(self, action: str, **parameters: str) -> None:
        meta = {"interval": "10000" if action == "monitor" else "0"}
        asked = "monitor" if action == "probe" else action
        call = AgentCall(f"{action}-1", ResourceId("web:0"), "web", AGENT, asked, parameters, meta, 1000,
                         Incarnation("b", "p"))  # fmt: skip
        self.runner.run(call, self.results.append)
        self.clock.run()

    def codes(self) -> list[tuple[int, str]]:
        return [(each.exit_code, each.exit_reason) for each in self.results]


def test_an_agent_gets_the_value_of_its_revision_and_its_words_come_back_without_it() -> None:
    bench = Bench()
    bench.run("start", a="secret:db@7", b="secret:db@5", c="newest", port="80", trace_ra="1")
    bench.run("monitor", port="80", trace_ra="1")
    assert bench.agents.given == [
        {"a": "newest", "b": "before", "c": "newest", "port": "80"}, {"port": "80", "trace_ra": "1"},
    ]  # fmt: skip
    words = "*** *** *** 80"
    assert bench.results[0] == AgentResult("start-1", 0, DONE, words, words, words, 0, 0)


@pytest.mark.parametrize("text", ["secret:db@6", "secret:db"])
def test_nothing_begins_by_another_value_than_it_is_recorded_with(text: str) -> None:
    # What runs by a value that no record names is neither found nor ended once the secret is changed again.
    bench = Bench()
    for action in ("start", "migrate_from", "reload-agent", "reload", "probe"):
        bench.run(action, a=text)
    assert bench.codes() == [(ExitCode.NOT_CONFIGURED, "a: secret db was changed since this was decided")] * 5
    assert bench.agents.given == []
    for action in ("monitor", "stop", "demote"):
        bench.run(action, a=text)
    assert bench.agents.given == [{"a": "newest"}] * 3, "what runs is never held up"


def test_what_needs_a_secret_that_there_is_not_says_so_but_a_stop_is_made() -> None:
    bench = Bench()
    for action in ("start", "monitor", "promote"):
        bench.run(action, a="secret:none@7", port="80")
    assert bench.codes() == [(ExitCode.NOT_CONFIGURED, "a: there is no secret none")] * 3
    bench.run("stop", a="secret:none@7", port="80")
    assert bench.agents.given == [{"port": "80"}]


def test_an_action_waits_for_the_key_and_fails_on_this_node_alone_without_it() -> None:
    bench = Bench(has_key=False)
    bench.run("start", a="secret:db@7")
    assert (bench.codes(), bench.runner.waits()) == (
        [], ("start of web:0 waits for the key of the secrets", "theirs"),
    )  # fmt: skip
    bench.runner.look_again()
    bench.clock.run(KEY_WAIT_MS - 1)
    assert bench.results == []
    bench.secrets = bench.whole
    bench.runner.look_again()
    bench.clock.run()
    assert bench.agents.given == [{"a": "newest"}]

    late = Bench(has_key=False)
    for action in ("start", "stop"):
        late.run(action, a="secret:db@7")
    late.clock.run(KEY_WAIT_MS)
    assert late.codes() == [(ExitCode.ARGUMENTS, "a: this node cannot open secret db")] * 2
    assert late.agents.given == [], "a stop without the value finds nothing, and says that all has ended"
    assert late.agents.given == []


def test_what_waits_for_the_key_can_be_ended() -> None:
    bench = Bench(has_key=False)
    bench.run("start", a="secret:db@7")
    bench.runner.kill("start-1")
    bench.runner.kill("other")
    bench.clock.run(KEY_WAIT_MS)
    assert [each.status for each in bench.results] == [ExecutionStatus.CANCELLED]
    assert bench.agents.killed == ["other"]


def test_a_fence_device_gets_values_too_and_is_not_called_without_them() -> None:
    bench = Bench()
    results: list[FenceCallResult] = []
    bench.fencing.call(FenceCall("f1", "fence_test", "off", {"password": "secret:db"}, 1000), results.append)
    bench.fencing.call(FenceCall("f2", "fence_test", "off", {"password": "secret:none"}, 1000), results.append)
    bench.clock.run()
    assert bench.agents.given == [{"password": "newest"}]
    assert [(each.exit_code, each.reason) for each in results] == [
        (1, "***"), (1, "password: there is no secret none"),
    ]  # fmt: skip


def test_agents_are_asked_about_values_not_about_references() -> None:
    bench = Bench()
    said: list[Validation] = []
    for text in ("secret:db", "secret:none"):
        question = ValidationQuestion(ResourceId("web"), AGENT, (("password", text),))
        bench.runner.validate(question, 1000, said.append)
    bench.clock.run()
    assert bench.agents.given == [{"password": "newest"}]
    assert said == [Validation(6, "***"), Validation(None, "password: there is no secret none")]


def test_values_that_cibsecret_keeps_are_read_beside_the_loop() -> None:
    bench = Bench()
    bench.keeper.read_pacemakers = lambda resource, name: f"{resource}/{name}"
    bench.background.is_held = True
    bench.run("start", passwd="lrm://")
    assert bench.agents.given == []
    bench.background.held.pop()()
    bench.clock.run()
    assert bench.agents.given == [{"passwd": "web/passwd"}]
    bench.run("start", passwd="lrm://")
    bench.runner.kill("start-1")
    bench.background.held.pop()()
    bench.clock.run()
    assert bench.results[-1].status is ExecutionStatus.CANCELLED
    assert len(bench.agents.given) == 1


def test_a_long_reason_is_shortened_after_the_values_are_taken_out() -> None:
    bench = Bench()
    words = "secret:db " * 200
    bench.run("start", a="secret:db@7", b=words)
    ((_, reason),) = bench.codes()
    assert "newest" not in reason
    assert reason == f"*** {words}"[:REASON_MAX]


@pytest.mark.parametrize("text", ["password= two words ", "password= two words", "two words", "two words "])
def test_spaces_at_the_ends_of_a_value_may_be_missing_in_what_an_agent_says(text: str) -> None:
    assert "two" not in masked(text, {" two words "})
