"""The table of a fence device's parameters that are for the cluster, beside the one of properties.

Names are Pacemaker's (Pacemaker Explained, "Fencing": special options of fence devices). What stands here is obeyed;
every other `pcmk_` name is refused as not yet, never ignored. What has no such name is the agent's own.
"""

from haclusterd.model.fencing import FenceAction
from haclusterd.model.properties import Row, ValueType

PREFIX = "pcmk_"

DEVICE_PARAMETERS: tuple[Row, ...] = (
    Row("pcmk_host_list", ValueType.STRING, "", "The nodes that it can fence; with pcmk_host_map empty too: all."),
    Row("pcmk_host_map", ValueType.STRING, "", "What the device calls the nodes: node:port;node2:port2."),
    Row("pcmk_host_check", ValueType.CHOICE, "static-list", "Whether it can fence only the nodes that are listed.",
        choices=("static-list", "none")),
    Row("pcmk_host_argument", ValueType.STRING, "port", "The agent's parameter that names the node; none: no such."),
    *(
        row
        for action in FenceAction
        for row in (
            Row(f"pcmk_{action}_action", ValueType.STRING, action, f"What the agent is asked for instead of {action}."),
            Row(f"pcmk_{action}_timeout", ValueType.DURATION, "", "How long that may take; else fencing-timeout.",
                minimum=1),
            Row(f"pcmk_{action}_retries", ValueType.INTEGER, "2", "How often the agent is called at most.", minimum=1),
        )
    ),
    Row("pcmk_monitor_action", ValueType.STRING, "monitor", "What the agent is asked for instead of monitor."),
    Row("pcmk_monitor_timeout", ValueType.DURATION, "", "How long its start, which is a monitor, may take.",
        minimum=1),
)  # fmt: skip

_BY_NAME = {row.name: row for row in DEVICE_PARAMETERS}


def device_parameter_row(name: str) -> Row | None:
    """Return the row of a parameter that is for the cluster."""
    return _BY_NAME.get(name)
