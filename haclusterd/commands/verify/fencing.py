"""Whether every node can be fenced: without that, its resources are not recovered (safety.md §5).

And whether what is configured of devices and of fencing levels (Pacemaker Explained, "Fencing Topologies") is known and
obeyed.
"""

from haclusterd.cib.apply_watchdog import objection
from haclusterd.commands.verify.judgement import Judgement, pairs
from haclusterd.formats.crm.topology import MAX_INDEX
from haclusterd.machines.fencer import host_map
from haclusterd.model.configuration import FencingLevel, Primitive, effective
from haclusterd.model.fence_parameters import DEVICE_PARAMETERS, PREFIX, device_parameter_row
from haclusterd.model.patterns import compile_pattern
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.scheduler.unpack.fence_executors import is_named_by_location
from haclusterd.scheduler.unpack.fencing_capability import usable_devices_by_node

ENDS_NOTHING = frozenset(
    {"on", "status", "monitor", "list", "list-status", "metadata", "meta-data", "manpage", "validate-all"}
)
"""Actions of fence agents (FenceAgentAPI) that leave a node as it is."""
COMES_BACK = frozenset({"reboot", "cycle"})
"""Actions after which the power is on again."""


def check_fencing(judgement: Judgement) -> None:
    """Warn of disabled fencing, or of each node that no enabled device covers."""
    problem = objection(judgement.configuration)
    if problem:
        judgement.note(Code.POLICY_DEFEATS_WATCHDOG, ("properties", "no-quorum-policy"), problem=problem)
    properties = ClusterProperties(judgement.configuration)
    if properties.text("no-quorum-policy") == "ignore":
        judgement.note(Code.QUORUM_IGNORED, ("properties", "no-quorum-policy"))
    if properties.text("fence-reaction") == "panic":
        why = "on a node without a watchdog it only stops what runs there"
        judgement.note(Code.WITHOUT_EFFECT, ("properties", "fence-reaction"), what="fence-reaction=panic", why=why)
    if not properties.boolean("fencing-enabled"):
        path = ("properties", "fencing-enabled")
        judgement.note(Code.FENCING_DISABLED, path)
        return
    if properties.boolean("watchdog-fencing"):
        # Whether a node has a watchdog is known once it has joined: status tells.
        return
    for node, devices in usable_devices_by_node(judgement.configuration, judgement.nodes()).items():
        if not devices:
            judgement.note(Code.NODE_NOT_COVERED, ("node", node), node=node)


def check_fence_devices(judgement: Judgement) -> None:
    """Judge where fence devices may be used, and their parameters that are for the cluster, whatever the agents."""
    configuration = judgement.configuration
    is_symmetric = ClusterProperties(configuration).boolean("symmetric-cluster")
    for device in configuration.fence_devices():
        if not is_symmetric and not is_named_by_location(configuration, device.id):
            judgement.note(Code.DEVICE_NOT_USABLE, ("resource", device.id), device=device.id)
        for name, value in pairs(device.parameters):
            path = ("resource", device.id, "params", name)
            row = device_parameter_row(name)
            if row is not None:
                judgement.check_value(row, value, f"{device.id}: {name}", path)
                _check_meaning(judgement, name, value, f"{device.id}: {name}", path)
            elif name.startswith(PREFIX):
                judgement.note(Code.NOT_YET, path, remedy=_instead_of(name), construct=f"{device.id}: {name}")


def _check_meaning(judgement: Judgement, name: str, value: str, where: str, path: tuple[str, ...]) -> None:
    """Judge what would let a node count as ended that is not: the success of another action, or another node's port."""
    if name in ("pcmk_off_action", "pcmk_reboot_action") and value.strip().lower() in ENDS_NOTHING:
        problem = f"{value} ends no node, and its success would count as the node's end"
        judgement.note(Code.BAD_VALUE, path, name=where, problem=problem, remedy="write off or reboot, or leave it out")
    nodes_of: dict[str, list[str]] = {}
    for node, port in host_map(value).items() if name == "pcmk_host_map" else ():
        nodes_of.setdefault(port, []).append(node)
    for port, nodes in sorted(nodes_of.items()):
        if len(nodes) > 1:
            judgement.note(Code.NODES_SHARE_PORT, path, where=where, nodes=" and ".join(sorted(nodes)), port=port)


def _instead_of(name: str) -> str:
    """Say what to write instead of a parameter that is not obeyed."""
    if name.endswith("_cmd"):
        return f"write {name.removesuffix('_cmd')}_action"
    if name == "pcmk_arg_map":
        return "write pcmk_host_argument=NAME: the agent's parameter that names the node"
    return f"leave it out; one of: {', '.join(sorted(row.name for row in DEVICE_PARAMETERS))}"




def check_topology(judgement: Judgement) -> None:
    """Judge all fencing levels."""
    seen: set[tuple[str, str, str, str, int]] = set()
    for number, level in enumerate(judgement.configuration.fencing_levels):
        path = ("fencing_level", str(number))
        where = f"fencing level {level.index} of {_name(level)}"
        key = (level.target, level.target_pattern, level.target_attribute, level.target_value, level.index)
        if key in seen:
            judgement.note(Code.DUPLICATE_NAME, path, name=where)
        seen.add(key)
        if not 1 <= level.index <= MAX_INDEX:
            problem = f"{level.index} is not from 1 to {MAX_INDEX}"
            judgement.note(Code.BAD_VALUE, path, name=f"{where}: index", problem=problem)
        _check_target(judgement, level, where, path)
        _check_devices(judgement, level, where, path)


def _name(level: FencingLevel) -> str:
    if level.target_attribute:
        return f"{level.target_attribute}={level.target_value}"
    return level.target or level.target_pattern


def _check_target(judgement: Judgement, level: FencingLevel, where: str, path: tuple[str, ...]) -> None:
    known = {*judgement.members, *judgement.configuration.nodes}
    if level.target and known and level.target not in known:
        guess = judgement.nearest(level.target, known)
        remedy = f"did you mean {guess}?" if guess else None
        judgement.note(Code.UNKNOWN_NODE, path, remedy=remedy, where=where, node=level.target)
    if level.target_pattern:
        try:
            compile_pattern(level.target_pattern)
        except ValueError as error:
            judgement.note(Code.BAD_VALUE, path, name=where, problem=f"not a regular expression: {error}")


def _check_devices(judgement: Judgement, level: FencingLevel, where: str, path: tuple[str, ...]) -> None:
    resources = judgement.configuration.resources
    if not level.devices:
        judgement.note(Code.MISSING_KEY, path, where=where, key="devices")
    for device in level.devices:
        found = resources.get(device)
        if found is None:
            guess = judgement.nearest(device, resources)
            remedy = f"did you mean {guess}?" if guess else None
            judgement.note(Code.UNKNOWN_RESOURCE, path, remedy=remedy, where=where, id=device)
        elif not isinstance(found, Primitive) or found.agent.standard != "stonith":
            judgement.note(Code.NOT_A_FENCE_DEVICE, path, where=where, id=device)
        elif len(level.devices) > 1:
            parameters = effective(expanded(found, judgement.configuration).parameters)
            action = parameters.get("pcmk_off_action", "off")
            if action.strip().lower() in COMES_BACK:
                judgement.note(Code.LEVEL_NEVER_OFF, path, where=where, id=device, action=action)
