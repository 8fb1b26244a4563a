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
from haclusterd.verbs.arguments import Arguments


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


def find_nodes(
    context: Context, arguments: Arguments
) -> tuple[tuple[NodeName, ...], tuple[ReportItem, ...]]:
    """Look up the nodes of a verb that takes several (`node`, `others`, `all`); all unknown ones are reported.

    None named means the node that answers; all are those that can run resources: no witness.
    """
    words = tuple(filter(None, (arguments.word("node"), *arguments.words("others"))))
    if arguments.flag("all"):
        if words:
            problem = f"all nodes are meant, and {', '.join(words)} too"
            return (), (report(Code.BAD_ARGUMENT, name="all", problem=problem, remedy="--all, or names of nodes"),)
        members = context.cib.members
        able = tuple(
            each for each in node_names(context.cib) if each not in members or not members[each].is_witness
        )
        return able, () if able else (report(Code.NO_SUCH_NODE, node="at all", remedy="see: crm node show"),)
    found = [find_node(context, word) for word in dict.fromkeys(words or ("",))]
    reports = tuple(item for item in found if isinstance(item, ReportItem))
    return tuple(item for item in found if not isinstance(item, ReportItem)), reports


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


