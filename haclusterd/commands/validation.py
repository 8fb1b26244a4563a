"""What the agents themselves say of what is configured: action validate-all (OCF Resource Agent API 1.1).

An agent looks at the machine that it runs on: a file or an address that is not on this node may well be on the one
that is to run the resource. So its objection is a warning, with the name of the node, and nothing is refused for it.
"""

from haclusterd.commands.arguments import Argument, Arguments, Kind
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_resources, primitives_of
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.verb import Permission, Verb
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.ids import ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.reports.items import has_errors, report

VALIDATE = "validate-all"


def validate_all(context: Context, arguments: Arguments) -> Outcome:
    """Answer what the agents of this node say of their resources' parameters (schema `haclusterd.validate-all/1`)."""
    if context.validations is None or context.live is None:
        return Outcome((report(Code.NOT_OFFLINE, what="asking agents"),))
    configuration = context.cib.in_force
    named, reports = find_resources(context, arguments.words("ids"))
    if has_errors(reports):
        return Outcome(reports)
    wanted = named or tuple(each.id for each in configuration.primitives())
    rows: list[Json] = []
    for resource in dict.fromkeys(name for each in wanted for name in primitives_of(configuration, each)):
        found = configuration.resources[resource]
        assert isinstance(found, Primitive)
        primitive = expanded(found, configuration)
        answer = _answer(context, primitive)
        if answer is not None:
            rows.append(_row(primitive, answer))
            if answer.exit_code:
                words = answer.reason or f"exit code {answer.exit_code}, without a reason"
                where = f"{resource}: agent {primitive.agent}"
                item = report(Code.AGENT_OBJECTS, where=where, node=context.live.node, words=words)
                reports = (*reports, item)
    data: Json = {"schema": "haclusterd.validate-all/1", "node": context.live.node, "validations": rows}
    is_fine = not any(item.code is Code.AGENT_OBJECTS for item in reports)
    return Outcome(reports, data=data, exit_status=None if is_fine else int(ExitStatus.CONFIGURATION))


def _answer(context: Context, primitive: Primitive) -> Validation | None:
    """Return what the agent says, or why it cannot be asked; None: it must be asked first."""
    facts = (context.agents or {}).get(str(primitive.agent))
    if facts is None:
        return Validation(None, "it is not installed on this node")
    if primitive.agent.standard != "ocf" or (facts.action_timeouts_ms and VALIDATE not in facts.action_timeouts_ms):
        return Validation(None, "it has no action validate-all")
    if not facts.action_timeouts_ms:
        return None  # Its meta-data is read first.
    assert context.validations is not None
    parameters = tuple(sorted(effective(primitive.parameters).items()))
    return context.validations.answer(ValidationQuestion(ResourceId(primitive.id), primitive.agent, parameters))


def _row(primitive: Primitive, answer: Validation) -> Json:
    verdict = {None: "not answered", 0: "fine"}.get(answer.exit_code, "objects")
    return {
        "resource": primitive.id,
        "agent": str(primitive.agent),
        "verdict": verdict,
        "exit_code": answer.exit_code,
        "reason": answer.reason,
    }


VERBS = (
    Verb("configure.validate_all", validate_all, Permission.ADMINISTER, "Ask the agents what they say of parameters", (
        Argument("ids", Kind.WORDS, "which resources; left out: all"),
    )),
)  # fmt: skip
