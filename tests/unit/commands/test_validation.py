"""What agents say of parameters (validate-all): asked on one node, shown as a warning, bounded."""

from collections.abc import Callable, Mapping
from functools import partial

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.model.agents import AgentFacts, ParameterFacts, Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.runtime.requests.agent_catalogue import (
    ASKED_AT_ONCE,
    BESIDE_A_CHANGE,
    THOROUGH,
    AgentValidations,
    Limits,
)
from tests.administered_clusters import NOW, Cluster, formed

SAYS_ALL = AgentFacts(
    parameters={"device": ParameterFacts()}, action_timeouts_ms={"start": 20_000, "validate-all": 5000}
)
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

    def __init__(self, *answers: Validation, limits: Limits = THOROUGH) -> None:
        self.answers = list(answers)
        self.limits = limits
        self.asked: list[ValidationQuestion] = []
        self.waiting: list[Callable[[], None]] = []

    def validate(self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]) -> None:
        assert timeout_ms == self.limits.timeout_ms
        self.asked.append(question)
        self.waiting.append(partial(done, self.answers.pop(0) if self.answers else Validation(0, "")))

    def end_one(self) -> None:
        self.waiting.pop(0)()


def validate(cluster: Cluster, agents: Agents, *ids: str) -> Outcome:
    return ask(cluster, agents, "configure.validate_all", {"ids": list(ids)})


def ask(
    cluster: Cluster, agents: Agents, verb: str, arguments: Mapping[str, Json], *, no_validate: bool = False
) -> Outcome:
    """Ask as the daemon does: run the verb, ask what it looked at, run it again."""
    validations = AgentValidations(agents, agents.limits)
    context = Context(
        cluster.cib, NOW, "root@n1", live=cluster.live, agents=AGENTS, validations=validations, is_forced=True,
        no_validate=no_validate,
    )  # fmt: skip
    outcome = registry.run(verb, arguments, context)
    while not validations.is_complete:
        validations.read(lambda: None)
        while agents.waiting:
            agents.end_one()
        outcome = registry.run(verb, arguments, context)
    return outcome


def load(cluster: Cluster, agents: Agents, text: str, *, no_validate: bool = False) -> Outcome:
    arguments: Mapping[str, Json] = {"mode": "update", "text": text, "source": "new.crm"}
    return ask(cluster, agents, "configure.load", arguments, no_validate=no_validate)


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


SAME = "primitive disk2 ocf:heartbeat:Filesystem params device=/dev/sdc op monitor interval=20s"
OTHER = "primitive disk ocf:heartbeat:Filesystem params device=/dev/sdx op monitor interval=10s"


def test_a_change_asks_the_agents_of_the_parameters_that_it_brings_in_and_is_made_all_the_same() -> None:
    agents = Agents(Validation(5, "Couldn't find device [/dev/sdx]"), limits=BESIDE_A_CHANGE)
    outcome = load(configured(), agents, f"{SAME}\n{OTHER}")
    assert [(each.resource, each.parameters) for each in agents.asked] == [("disk", (("device", "/dev/sdx"),))]
    [warning] = [each for each in outcome.reports if each.severity is Severity.WARNING]
    assert warning.message == "disk: agent ocf:heartbeat:Filesystem objects on n1: Couldn't find device [/dev/sdx]"
    assert str(warning.place).startswith("new.crm:2:")
    assert outcome.commands


def test_a_change_of_a_template_asks_for_those_that_are_made_of_it() -> None:
    cluster = configured()
    made = load(cluster, Agents(), "rsc_template t ocf:heartbeat:Filesystem params device=/dev/sdy\nprimitive d @t")
    (command,) = made.commands
    cluster.do(command)
    agents = Agents(limits=BESIDE_A_CHANGE)
    load(cluster, agents, "rsc_template t ocf:heartbeat:Filesystem params device=/dev/sdz")
    assert [(each.resource, each.parameters) for each in agents.asked] == [("d", (("device", "/dev/sdz"),))]


def test_nobody_is_asked_who_need_not_be() -> None:
    agents = Agents(limits=BESIDE_A_CHANGE)
    assert load(configured(), agents, OTHER, no_validate=True).commands
    assert load(configured(), agents, f"{OTHER} params 2: rule #uname eq n2 device=/dev/sdz").commands
    assert load(configured(), agents, "primitive new ocf:heartbeat:old op monitor interval=10s").commands
    assert agents.asked == []


def test_who_does_not_answer_a_change_in_time_is_named() -> None:
    text = "\n".join(f"primitive d{number} ocf:heartbeat:Filesystem params device=x" for number in range(20))
    agents = Agents(Validation(None, "validate-all did not complete within 2s"), limits=BESIDE_A_CHANGE)
    outcome = load(configured(), agents, text)
    assert len(agents.asked) == BESIDE_A_CHANGE.most
    [line] = [each for each in outcome.reports if each.code is Code.AGENTS_SILENT]
    assert line.severity is Severity.INFO
    assert line.message == (
        "agents of n1 gave no answer about the parameters of d0, d8, d9, d10, d11, d12, d13, d14 and 5 more"
    )
    assert outcome.commands


def test_a_resource_that_there_is_not_is_refused_and_offline_nobody_is_asked() -> None:
    cluster = configured()
    assert [each.code for each in validate(cluster, Agents(), "dsik").reports] == [Code.NO_SUCH_RESOURCE]
    outcome = registry.run("configure.validate_all", {}, Context(cluster.cib, NOW, "root@n1"))
    assert [each.code for each in outcome.reports] == [Code.NOT_OFFLINE]


def test_few_are_asked_at_a_time_and_not_too_many_at_all() -> None:
    validations = AgentValidations(agents := Agents())
    questions = [question(number) for number in range(THOROUGH.most + 2)]
    assert sum(validations.answer(each) is None for each in questions) == THOROUGH.most
    ended: list[bool] = []
    validations.read(lambda: ended.append(True))
    assert len(agents.asked) == ASKED_AT_ONCE
    while agents.waiting:
        assert not ended
        agents.end_one()
    assert len(agents.asked) == THOROUGH.most
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
