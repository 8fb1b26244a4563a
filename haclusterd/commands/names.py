"""Names that a person gave, looked up: the first phase of every verb."""

from haclusterd.commands.context import Context
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.configuration import parts_of as parts_of
from haclusterd.model.configuration import primitives_of as primitives_of
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean


def node_names(cib: Cib) -> tuple[NodeName, ...]:
    """Return every node there is: members, and nodes that are only configured."""
    return tuple(sorted({*cib.members, *cib.configuration.nodes}))


def find_node(context: Context, word: str) -> NodeName | ReportItem:
    """Look up a node; an empty word means the node that answers."""
    if not word and context.live is not None:
        return context.live.node
    names = node_names(context.cib)
    found = next((name for name in names if name == word), None)
    if found is not None:
        return found
    if not word:
        return report(Code.MISSING_ARGUMENT, verb="offline", name="NODE", meaning="which node")
    return report(Code.NO_SUCH_NODE, node=repr(word), remedy=did_you_mean(word, names, "see: crm node show"))


def find_given_node(context: Context, word: str) -> NodeName | ReportItem | None:
    """Look up a node that may be left out; None: the word is empty."""
    return find_node(context, word) if word else None


def find_resource(context: Context, word: str) -> ResourceId | ReportItem:
    """Look up a resource."""
    known = context.cib.configuration.resources
    if ResourceId(word) in known:
        return ResourceId(word)
    remedy = did_you_mean(word, known, "see: crm resource status")
    return report(Code.NO_SUCH_RESOURCE, resource=repr(word), remedy=remedy)


def find_resources(
    context: Context, words: tuple[str, ...]
) -> tuple[tuple[ResourceId, ...], tuple[ReportItem, ...]]:
    """Look up several resources; all unknown ones are reported."""
    found = [find_resource(context, word) for word in dict.fromkeys(words)]
    reports = tuple(item for item in found if isinstance(item, ReportItem))
    return tuple(item for item in found if not isinstance(item, ReportItem)), reports


def whole(configuration: Configuration, resource: ResourceId) -> ResourceId:
    """Return what moves when this resource moves: the outermost resource that contains it, or itself."""
    return configuration.top_of(resource)


