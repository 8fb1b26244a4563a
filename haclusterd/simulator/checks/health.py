"""What the health of nodes forbids, read from the configuration and the attributes, apart from the scheduler.

Source: Pacemaker Explained, "Tracking Node Health": each attribute whose name begins with `#health` is a vote, and the
sum of all counts for everything at the top, but what forbids does not count where `allow-unhealthy-nodes` is set.
"""

from collections.abc import Mapping

from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.configuration import Configuration, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.rows import read_boolean_or
from haclusterd.model.scores import INFINITY

PREFIX = "#health"
_COLOURS = ("red", "yellow", "green")
_FORBIDDEN = {"migrate-on-red": ("red",), "only-green": ("red", "yellow")}


def strategy(configuration: Configuration) -> str:
    """Return what is done about health."""
    return ClusterProperties(configuration).text("node-health-strategy")


def scores(cib: Cib) -> dict[NodeName, int]:
    """Return the score of each node's health; empty where none counts."""
    configuration = cib.in_force
    name = strategy(configuration)
    if name == "none":
        return {}
    properties = ClusterProperties(configuration)
    if name in _FORBIDDEN:
        worth = {colour: -INFINITY if colour in _FORBIDDEN[name] else 0 for colour in _COLOURS}
    else:
        worth = {colour: _number(properties.text(f"node-health-{colour}")) for colour in _COLOURS}
    base = _number(properties.text("node-health-base")) if name == "progressive" else 0
    return {
        node: _sum((base, *(_worth(vote, worth) for vote in _votes(configuration, status))))
        for node, status in cib.status.nodes.items()
    }


def unhealthy(cib: Cib) -> frozenset[NodeName]:
    """Return the nodes where nothing may run that does not allow it."""
    return frozenset(node for node, score in scores(cib).items() if score <= -INFINITY)


def allowing(configuration: Configuration) -> frozenset[ResourceId]:
    """Return the resources at the top that run on unhealthy nodes too."""
    parents, defaults = configuration.parents(), effective(configuration.resource_defaults)
    return frozenset(
        name for name, each in configuration.resources.items()
        if name not in parents and read_boolean_or(
            {**defaults, **effective(each.meta)}.get("allow-unhealthy-nodes"), default=False)
    )  # fmt: skip


def _votes(configuration: Configuration, status: NodeStatus) -> list[str]:
    entry = configuration.nodes.get(status.name)
    known = {**({} if entry is None else effective(entry.attributes)), **status.attributes}
    return [value for name, value in known.items() if name.startswith(PREFIX)]


def _worth(vote: str, worth: Mapping[str, int]) -> int:
    return worth[vote.lower()] if vote.lower() in worth else _number(vote)


def _number(text: str) -> int:
    word = text.upper().removeprefix("+")
    if word.lstrip("-") in ("INF", "INFINITY"):
        return -INFINITY if word.startswith("-") else INFINITY
    return max(-INFINITY, min(INFINITY, int(word))) if word.lstrip("-").isdigit() else 0


def _sum(votes: tuple[int, ...]) -> int:
    if any(vote <= -INFINITY for vote in votes):
        return -INFINITY
    return INFINITY if any(vote >= INFINITY for vote in votes) else max(-INFINITY, min(INFINITY, sum(votes)))
