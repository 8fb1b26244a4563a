"""What the agents themselves say of what is configured: action validate-all (OCF Resource Agent API 1.1).

An agent looks at the machine that it runs on: a file or an address that is not on this node may well be on the one
that is to run the resource. So its objection is a warning, with the name of the node, and nothing is refused for it.

A change of the configuration asks of itself about the primitives whose agent or parameters it brings in; the daemon
bounds how many and how long (`runtime.requests.agent_catalogue`), and what was not answered is named.
"""

from collections.abc import Iterator

from haclusterd.commands.context import Context
from haclusterd.commands.names import find_resources, primitives_of
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.agents import AgentFacts, Validation, ValidationQuestion
from haclusterd.model.configuration import Configuration, Primitive, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.reports.items import ReportItem, has_errors, report
from haclusterd.reports.places import Places
from haclusterd.verbs.answers.configuration import AgentVerdict, AgentVerdicts
from haclusterd.verbs.arguments import Arguments

VALIDATE = "validate-all"
NAMED_MOST = 8
"""Of those that gave no answer."""


VALIDATES = "configure.validate_all"
"""The verb that is there to ask."""


def validate_all(context: Context, arguments: Arguments) -> Outcome[AgentVerdicts]:
    """Answer what the agents of this node say of their resources' parameters (schema `haclusterd.validate-all/1`)."""
    if context.validations is None or context.live is None:
        return Outcome((report(Code.NOT_OFFLINE, what="asking agents"),))
    configuration = context.cib.in_force
    named, reports = find_resources(context, arguments.words("ids"))
    if has_errors(reports):
        return Outcome(reports)
    wanted = named or tuple(each.id for each in configuration.primitives())
    rows: list[AgentVerdict] = []
    for resource in dict.fromkeys(name for each in wanted for name in primitives_of(configuration, each)):
        found = configuration.resources[resource]
        assert isinstance(found, Primitive)
        primitive = expanded(found, configuration)
        answer = _answer(context, primitive)
        if answer is not None:
            rows.append(_row(primitive, answer))
            if answer.exit_code:
                reports = (*reports, _objection(primitive, answer, context.live.node))
    verdicts = AgentVerdicts(context.live.node, tuple(rows))
    is_fine = not any(item.code is Code.AGENT_OBJECTS for item in reports)
    return Outcome(reports, answer=verdicts, exit_status=None if is_fine else int(ExitStatus.CONFIGURATION))


def _answer(context: Context, primitive: Primitive) -> Validation | None:
    """Return what the agent says, or why it cannot be asked; None: it must be asked first."""
    facts = (context.agents or {}).get(str(primitive.agent))
    problem = _cannot_be_asked(primitive, facts)
    if problem:
        return Validation(None, problem)
    if facts is None or not facts.action_timeouts_ms:
        return None  # Its meta-data is read first.
    assert context.validations is not None
    parameters = tuple(sorted(effective(primitive.parameters).items()))
    return context.validations.answer(ValidationQuestion(ResourceId(primitive.id), primitive.agent, parameters))


def _cannot_be_asked(primitive: Primitive, facts: AgentFacts | None) -> str:
    """Say why an agent cannot be asked; empty: it can."""
    if facts is None:
        return "it is not installed on this node"
    if primitive.agent.standard != "ocf" or (facts.action_timeouts_ms and VALIDATE not in facts.action_timeouts_ms):
        return "it has no action validate-all"
    if any(block.rule is not None for block in primitive.parameters):
        return "its parameters depend on rules"
    return ""


def objections(context: Context, new: Configuration, places: Places) -> Iterator[ReportItem]:
    """Yield what agents of this node say of the parameters that a change brings in, and who said nothing."""
    if context.validations is None or context.live is None or context.no_validate:
        return
    silent: list[str] = []
    for primitive in _brought_in(context.cib.configuration, new):
        if _cannot_be_asked(primitive, (context.agents or {}).get(str(primitive.agent))):
            continue
        answer = _answer(context, primitive)
        if answer is not None and answer.exit_code:
            item = _objection(primitive, answer, context.live.node)
            yield replace(item, place=places.find("resource", primitive.id, "params"))
        elif answer is not None and answer.exit_code is None:
            silent.append(primitive.id)
    if silent:
        more = f" and {len(silent) - NAMED_MOST} more" if len(silent) > NAMED_MOST else ""
        yield report(Code.AGENTS_SILENT, node=context.live.node, ids=", ".join(silent[:NAMED_MOST]) + more)


def _brought_in(old: Configuration, new: Configuration) -> Iterator[Primitive]:
    """Yield the primitives, with what their templates say, whose agent or parameters are not as they were."""
    for primitive in new.primitives():
        known = old.resources.get(primitive.id)
        whole = expanded(primitive, new)
        before = expanded(known, old) if isinstance(known, Primitive) else None
        if before is None or (before.agent, before.parameters) != (whole.agent, whole.parameters):
            yield whole


def _objection(primitive: Primitive, answer: Validation, node: NodeName) -> ReportItem:
    words = answer.reason or f"exit code {answer.exit_code}, without a reason"
    return report(Code.AGENT_OBJECTS, where=f"{primitive.id}: agent {primitive.agent}", node=node, words=words)


def _row(primitive: Primitive, answer: Validation) -> AgentVerdict:
    verdict = {None: "not answered", 0: "fine"}.get(answer.exit_code, "objects")
    return AgentVerdict(
        resource=primitive.id,
        agent=str(primitive.agent),
        verdict=verdict,
        exit_code=answer.exit_code,
        reason=answer.reason,
    )


VERBS = (carry_out_by(VALIDATES, validate_all, answers(AgentVerdicts)),)
