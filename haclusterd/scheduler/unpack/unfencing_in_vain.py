"""Which nodes cannot be let in by their fence devices as things are, and why.

Until one of them is let in it is no place for what needs unfencing, and nothing on other nodes waits for it. What only
time or a person can end is tried again (`machines.fencing_director`); the next success changes the plan.
"""

from collections.abc import Iterable, Mapping

from haclusterd.model.cluster import Cib
from haclusterd.model.fencing import UNFENCED_MARK, FenceAction, FenceOutcome
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass
from haclusterd.scheduler.model.entities import Node
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.fence_executors import able_to_use
from haclusterd.scheduler.unpack.fencing_capability import unfencing_devices


def is_let_in(node: Node) -> bool:
    """Return whether a node carries the mark of an unfencing."""
    return node.attributes.get(UNFENCED_MARK, "0") not in ("", "0")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a node from being let in."""

    text: str
    is_passing: bool
    """Whether it is worth trying again without any change of the configuration."""


def unfenced_in_vain(cib: Cib, nodes: Iterable[Node], settings: Settings) -> Mapping[NodeName, Obstacle]:
    """Return the nodes that no device lets in, or not as things are, and why.

    That is so where no device lists the node, where the newest attempt on this incarnation has failed, and where no
    node is online that may use the devices.
    """
    if not settings.is_unfencing_used or not settings.is_fencing_enabled or settings.options.is_pacemaker_compatible:
        return {}
    waiting = [node.name for node in nodes if node.is_online and not node.is_unclean and not is_let_in(node)]
    found = {name: _obstacle(cib, name) for name in waiting}
    return {name: each for name, each in found.items() if each is not None}


def _obstacle(cib: Cib, name: NodeName) -> Obstacle | None:
    devices = unfencing_devices(cib.in_force, name)
    if not devices:
        return Obstacle("no fence device lets it in", is_passing=False)
    if _has_failed(cib, name):
        return Obstacle("its newest unfencing has failed", is_passing=True)
    if not able_to_use(cib, name, devices, is_unfencing=True):
        return Obstacle(f"no node that may use {', '.join(devices)} is online", is_passing=True)
    return None


def _has_failed(cib: Cib, name: NodeName) -> bool:
    status = cib.status.nodes.get(name)
    ended = [record for record in cib.status.fencing_history if record.target == name
             and record.action is FenceAction.ON]  # fmt: skip
    if status is None or not ended or ended[-1].target_incarnation != status.incarnation:
        return False
    return ended[-1].outcome is not FenceOutcome.UNFENCED
