"""`resource constraints`: everything that says where a resource runs, when, and with whom."""

from haclusterd.commands.configure.dependants import named_by
from haclusterd.commands.configure.view import part_of
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_resource, parts_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.formats.crm.syntax import show
from haclusterd.model.configuration import Configuration, Location, Primitive
from haclusterd.model.ids import ResourceId
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.configuration import ConfigurationText
from haclusterd.verbs.arguments import Arguments


def constraints(context: Context, arguments: Arguments) -> Outcome[ConfigurationText]:
    """Answer the constraints that concern a resource (schema `haclusterd.configuration/1`)."""
    found = find_resource(context, arguments.word("resource"))
    if isinstance(found, ReportItem):
        return refusal(found)
    configuration, version = context.cib.configuration, context.cib.version
    names = _names(configuration, found)
    ids = [
        id_
        for id_, each in configuration.constraints.items()
        if names.intersection(named_by(each)) or (isinstance(each, Location) and each.pattern)
    ]
    if not ids:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"no constraint concerns {found}"),))
    answer = ConfigurationText(
        version=version.epoch,
        author=version.author,
        at=version.at,
        format="crm",
        text=show(part_of(configuration, ids)),
    )
    return Outcome(answer=answer)


def _names(configuration: Configuration, resource: ResourceId) -> frozenset[str]:
    """Return what a resource is called in constraints: by itself, what is in it or around it, by template, by tag."""
    parents = configuration.parents()
    names: set[str] = set(parts_of(configuration, resource))
    step = parents.get(resource)
    while step is not None and step not in names:
        names.add(step)
        step = parents.get(step)
    made = (configuration.resources[ResourceId(name)] for name in sorted(names))
    names.update(each.template for each in made if isinstance(each, Primitive) and each.template is not None)
    names.update(tag.id for tag in configuration.tags.values() if names.intersection(tag.references))
    return frozenset(names)


VERBS = (carry_out_by("resource.constraints", constraints, answers(ConfigurationText)),)
