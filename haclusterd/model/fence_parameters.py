"""The table of a fence device's parameters that are for the cluster, beside the one of properties.

Names are Pacemaker's (Pacemaker Explained, "Fencing": special options of fence devices). What is here is obeyed;
every other `pcmk_` name is refused as not yet, never ignored. What has no such name is the agent's own.
"""

from collections.abc import Mapping

from haclusterd.model.configuration import Configuration, Primitive, effective
from haclusterd.model.fencing import FenceAction
from haclusterd.model.ids import ResourceId
from haclusterd.model.properties import Row, ValueType, meta_values
from haclusterd.model.templates import expanded

PREFIX = "pcmk_"
PLUGIN_PREFIX = "external/"
"""What the type of an external plugin of cluster-glue begins with: `stonith:external/ipmi`."""
NOT_FOR_THE_AGENT = frozenset({"action", "provides", "stonith-timeout", "crm_feature_set"})
"""Parameters without that prefix that are not passed to the agent, or are given to it by the cluster itself."""
ATTEMPTS_DEFAULT = 2
"""Default of `pcmk_<action>_retries`: the maximum number of calls of the agent."""
RETRY_PAUSE_MS = 1000
"""From the failure of a call of the agent to the next one."""
RETRY_SHARE_PERCENT = 70
"""No retry after this part of the timeout."""


def _retries(action: str) -> Row:
    return Row(
        f"pcmk_{action}_retries", ValueType.INTEGER, str(ATTEMPTS_DEFAULT), "How often the agent is called at most.",
        minimum=1,
    )  # fmt: skip


DEVICE_PARAMETERS: tuple[Row, ...] = (
    Row("pcmk_host_list", ValueType.STRING, "", "The nodes that it can fence; with pcmk_host_map empty too: all."),
    Row("pcmk_host_map", ValueType.STRING, "", "What the device calls the nodes: node:port;node2:port2."),
    Row("pcmk_host_check", ValueType.CHOICE, "static-list",
        "How it is known whether it can fence a node: by what is listed here, by asking the device for its list or for "
        "the node's status before each use, or not at all. Of stonith:external/... without pcmk_host_list and "
        "pcmk_host_map: dynamic-list.",
        choices=("static-list", "dynamic-list", "status", "none"), since=2),
    Row("pcmk_host_argument", ValueType.STRING, "", "The agent's parameter that names the node; none: no such; empty: "
        "plug or port, whichever the agent has."),
    Row("pcmk_delay_base", ValueType.STRING, "0", "How long off and reboot wait: one time, or node:time;node2:time.",
        since=2),
    Row("pcmk_delay_max", ValueType.DURATION, "0", "Up to how long they wait, by chance.", since=2),
    Row("pcmk_action_limit", ValueType.INTEGER, "1", "How many actions it carries out at a time; -1: any number.",
        since=2),
    *(
        row
        for action in FenceAction
        for row in (
            Row(f"pcmk_{action}_action", ValueType.STRING, action, f"What the agent is asked for instead of {action}."),
            Row(f"pcmk_{action}_timeout", ValueType.DURATION, "", "How long that may take; else fencing-timeout.",
                minimum=1),
            _retries(action),
        )
    ),
    *(_retries(action) for action in ("list", "status", "monitor")),
    Row("pcmk_list_action", ValueType.STRING, "list", "What the agent is asked for instead of list.", since=2),
    Row("pcmk_list_timeout", ValueType.DURATION, "", "How long that may take; else fencing-timeout.", minimum=1,
        since=2),
    Row("pcmk_status_action", ValueType.STRING, "status", "What the agent is asked for instead of status.", since=2),
    Row("pcmk_status_timeout", ValueType.DURATION, "", "How long that may take; else fencing-timeout.", minimum=1,
        since=2),
    Row("pcmk_monitor_action", ValueType.STRING, "monitor", "What the agent is asked for instead of monitor.", since=2),
    Row("pcmk_monitor_timeout", ValueType.DURATION, "", "How long its start, which is a monitor, may take.",
        minimum=1),
)  # fmt: skip

_BY_NAME = {row.name: row for row in DEVICE_PARAMETERS}


def device_parameter_row(name: str) -> Row | None:
    """Return the row of a parameter that is for the cluster."""
    return _BY_NAME.get(name)


def is_plugin(agent_type: str) -> bool:
    """Return whether an agent of class stonith is an external plugin of cluster-glue."""
    return agent_type.startswith(PLUGIN_PREFIX)


def host_check(agent_type: str, parameters: Mapping[str, str]) -> str:
    """Return how it is known whether a device can fence a node (`pcmk_host_check`).

    A plugin of cluster-glue knows its hosts (`gethosts`) and is asked, unless they are listed: Pacemaker 2.1.5 does so.
    """
    given = parameters.get("pcmk_host_check", "")
    if given or not is_plugin(agent_type):
        return given or "static-list"
    is_listed = bool(parameters.get("pcmk_host_list") or parameters.get("pcmk_host_map"))
    return "static-list" if is_listed else "dynamic-list"


def lets_nodes_in(configuration: Configuration, device: ResourceId) -> bool:
    """Return whether a device cuts a node off from what it shares, and lets it in by `on` (`provides=unfencing`).

    A node that such a device has fenced may be alive (Pacemaker Explained, "Unfencing").
    """
    found = configuration.resources.get(device)
    if not isinstance(found, Primitive):
        return False
    own = effective(expanded(found, configuration).meta)
    return meta_values(configuration, own=own, parent={}).get("provides") == "unfencing"
