"""Whether every node can be fenced: without that, its resources are not recovered (safety.md §5)."""

from haclusterd.commands.verify_judgement import Judgement
from haclusterd.model.properties import ClusterProperties
from haclusterd.reports.codes import Code
from haclusterd.scheduler.fencing_capability import usable_devices_by_node


def check_fencing(judgement: Judgement) -> None:
    """Warn of disabled fencing, or of each node that no enabled device covers."""
    if not ClusterProperties(judgement.configuration).boolean("fencing-enabled"):
        path = ("properties", "fencing-enabled")
        judgement.note(Code.FENCING_DISABLED, path)
        return
    for node, devices in usable_devices_by_node(judgement.configuration, judgement.nodes()).items():
        if not devices:
            judgement.note(Code.NODE_NOT_COVERED, ("node", node), node=node)
