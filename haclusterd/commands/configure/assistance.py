"""Configuration for what people often want: resources that run together without depending on each other; one template.

Source: crmsh 4.4, "assist".
"""

from collections.abc import Container
from itertools import count

from haclusterd.commands.configure.change import change
from haclusterd.commands.configure.script import every_error, read_script
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_resources
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.configuration import Primitive, Template
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import has_errors, report
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.arguments import Arguments

PLACE = "ocf:haclusterd:dummy"
"""The agent of what only marks a place."""


def weak_bond(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Place resources with a dummy, as a set without an order: none is restarted for another."""
    found, unknown = find_resources(context, arguments.words("resources"))
    if unknown:
        return refusal(*unknown)
    if len(found) < 2:
        return refusal(report(Code.BAD_ARGUMENT, name="resources", problem="a bond needs two resources or more"))
    configuration = context.cib.configuration
    taken = (*configuration.resources, *configuration.constraints, *configuration.templates)
    id_ = arguments.word("id") or _free("place-constraint", taken)
    place = _free("place-dummy", taken)
    text = f"primitive {place} {PLACE}\ncolocation {id_} inf: ( {' '.join(found)} ) {place}\n"
    made = read_script(context, text, "weak-bond")
    if has_errors(made.reports):
        return Outcome(every_error(context, made))
    done = f"{', '.join(found)} run together, with {place}; none is restarted for another"
    return change(context, made.configuration, done=done, reports=made.reports, places=made.places)


def template(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Make a template of the agent that primitives share, and make them of it; what they say stays theirs."""
    found, unknown = find_resources(context, arguments.words("resources"))
    if unknown:
        return refusal(*unknown)
    configuration = context.cib.configuration
    primitives = [each for name in found if isinstance(each := configuration.resources[name], Primitive)]
    agents = {each.agent for each in primitives}
    has_template = [each.id for each in primitives if each.template is not None]
    if len(primitives) < len(found) or len(agents) != 1:
        problem = "primitives of one agent are needed"
        return refusal(report(Code.BAD_ARGUMENT, name="resources", problem=problem))
    if has_template:
        problem = f"{', '.join(has_template)}: made of a template already"
        return refusal(report(Code.BAD_ARGUMENT, name="resources", problem=problem))
    taken = (*configuration.resources, *configuration.constraints, *configuration.templates, *configuration.tags,
             *configuration.alerts)
    (agent,) = agents
    id_ = ResourceId(arguments.word("id") or _free(f"template-{agent.type.lower()}", taken))
    if id_ in taken:
        return refusal(report(Code.EXISTS, kind="template", id=id_))
    changed = {each.id: replace(each, template=id_) for each in primitives}
    new = replace(
        configuration,
        resources={**configuration.resources, **changed},
        templates={**configuration.templates, id_: Template(id_, agent)},
    )
    return change(context, new, done=f"{', '.join(found)}: made of {id_}")


def _free(base: str, taken: Container[str]) -> str:
    return next(name for number in count(1) if (name := f"{base}-{number}") not in taken)


VERBS = (
    carry_out_by("assist.weak_bond", weak_bond, answers(Change)),
    carry_out_by("assist.template", template, answers(Change)),
)
