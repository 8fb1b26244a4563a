"""What agents say of parameters (validate-all): asked on one node, told as a warning, bounded."""

from collections.abc import Callable
from functools import partial

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.model.agents import AgentFacts, Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.runtime.agent_validations import ASKED_AT_ONCE, ASKED_MOST, TIMEOUT_MS, AgentValidations
from tests.administered_clusters import NOW, Cluster, formed

SAYS_ALL = AgentFacts(action_timeouts_ms={"start": 20_000, "validate-all": 5000})
SAYS_LESS = AgentFacts(action_timeouts_ms={"start": 20_000})
AGENTS = {"ocf:heartbeat:Filesystem": SAYS_ALL, "ocf:heartbeat:old": SAYS_LESS, "lsb:cups": SAYS_LESS}
CONFIGURED = """
primitive disk ocf:heartbeat:Filesystem params device=/dev/sdb op monitor interval=10s
primitive disk2 ocf:heartbeat:Filesystem params device=/dev/sdc op monitor interval=10s
primitive older ocf:heartbeat:old op monitor interval=10s
primitive absent ocf:other:absent op monitor interval=10s
group g disk disk2
"""


class Agents:
    """Agents that answer what they are to, or not before they are asked to; the part of the port that is used."""

    def __init__(self, *answers: Validation) -> None:
        self.answers = list(answers)
        self.asked: list[ValidationQuestion] = []
        self.waiting: list[Callable[[], None]] = []

    def validate(self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]) -> None:
        assert timeout_ms == TIMEOUT_MS
        self.asked.append(question)
        self.waiting.append(partial(done, self.answers.pop(0) if self.answers else Validation(0, "")))

    def end_one(self) -> None:
        self.waiting.pop(0)()


def validate(cluster: Cluster, agents: Agents, *ids: str) -> Outcome:
    """Ask as the daemon does: run the verb, ask what it looked at, run it again."""
    validations = AgentValidations(agents)
    context = Context(
        cluster.cib, NOW, "root@n1", live=cluster.live, agents=AGENTS, validations=validations
    )  # fmt: skip
    outcome = registry.run("configure.validate_all", {"ids": list(ids)}, context)
    while not validations.is_complete:
        validations.read(lambda: None)
        while agents.waiting:
            agents.end_one()
        outcome = registry.run("configure.validate_all", {"ids": list(ids)}, context)
    return outcome


def configured() -> Cluster:
    cluster = formed()
    context = Context(cluster.cib, NOW, "root@n1", is_forced=True)
    for command in registry.run("configure.load", {"mode": "replace", "text": CONFIGURED}, context).commands:
        cluster.do(command)
    return cluster


def verdicts(outcome: Outcome) -> object:
    assert isinstance(outcome.data, dict)
    return {row["resource"]: (row["verdict"], row["reason"]) for row in outcome.data["validations"]}


def test_the_agents_own_words_are_a_warning_that_names_the_node() -> None:
    agents = Agents(Validation(5, "Couldn't find device [/dev/sdb]. Expected /dev/??? to exist"), Validation(0, ""))
    outcome = validate(configured(), agents, "g")
    assert [each.resource for each in agents.asked] == ["disk", "disk2"]
    assert agents.asked[0].parameters == (("device", "/dev/sdb"),)
    assert verdicts(outcome) == {
        "disk": ("objects", "Couldn't find device [/dev/sdb]. Expected /dev/??? to exist"), "disk2": ("fine", ""),
    }  # fmt: skip
    [warning] = outcome.reports
    assert (warning.code, warning.severity) == (Code.AGENT_OBJECTS, Severity.WARNING)
    assert warning.message.startswith("disk: agent ocf:heartbeat:Filesystem objects on n1: Couldn't find device")
    assert outcome.exit_status == int(ExitStatus.CONFIGURATION)
    assert not outcome.commands


def test_who_cannot_be_asked_or_does_not_answer_objects_to_nothing() -> None:
    agents = Agents(Validation(None, "validate-all did not complete within 6s"))
    outcome = validate(configured(), agents)
    assert verdicts(outcome) == {
        "disk": ("not answered", "validate-all did not complete within 6s"), "disk2": ("fine", ""),
        "older": ("not answered", "it has no action validate-all"),
        "absent": ("not answered", "it is not installed on this node"),
    }  # fmt: skip
    assert outcome.exit_status is None
    assert not outcome.reports


def test_a_resource_that_there_is_not_is_refused_and_offline_nobody_is_asked() -> None:
    cluster = configured()
    assert [each.code for each in validate(cluster, Agents(), "dsik").reports] == [Code.NO_SUCH_RESOURCE]
    outcome = registry.run("configure.validate_all", {}, Context(cluster.cib, NOW, "root@n1"))
    assert [each.code for each in outcome.reports] == [Code.NOT_OFFLINE]


def test_few_are_asked_at_a_time_and_not_too_many_at_all() -> None:
    validations = AgentValidations(agents := Agents())
    questions = [question(number) for number in range(ASKED_MOST + 2)]
    assert sum(validations.answer(each) is None for each in questions) == ASKED_MOST
    ended: list[bool] = []
    validations.read(lambda: ended.append(True))
    assert len(agents.asked) == ASKED_AT_ONCE
    while agents.waiting:
        assert not ended
        agents.end_one()
    assert len(agents.asked) == ASKED_MOST
    assert all(validations.answer(each) is not None for each in questions)
    assert validations.is_complete


def test_what_was_looked_at_apart_from_the_main_loop_is_asked_there() -> None:
    there, here = AgentValidations(Agents()), AgentValidations(agents := Agents())
    there.answer(question(1))
    here.note(there.noted())
    here.read(lambda: None)
    assert agents.asked == [question(1)]


def question(number: int) -> ValidationQuestion:
    agent = AgentReference("ocf", "heartbeat", "Filesystem")
    return ValidationQuestion(ResourceId(f"r{number:02}"), agent, (("device", f"/dev/{number}"),))
