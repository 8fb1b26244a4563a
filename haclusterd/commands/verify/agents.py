"""Agents and their parameters, judged by what the installed agents say of themselves."""

from collections.abc import Iterable
from difflib import get_close_matches

from haclusterd.commands.verify.judgement import Judgement, pairs
from haclusterd.machines.fencer import host_map
from haclusterd.model import durations
from haclusterd.model.agents import AgentFacts, ParameterFacts
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.fence_parameters import PLUGIN_PREFIX, is_plugin
from haclusterd.model.ids import AgentReference
from haclusterd.model.properties import meta_values
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.reports.suggestions import did_you_mean

TRACE_PARAMETERS = frozenset({"trace_ra", "trace_file"})
"""Every OCF agent has these (resource-agents: ocf-shellfuncs)."""
GIVEN_BY_FENCER = frozenset({"action", "plug", "port", "nodename", "delay"})
"""What a fence agent gets with each call, so that it need not be configured (fence-agents' stdin protocol)."""

FENCE_AGENTS_OF_TODAY = {
    "apcmaster": "fence_apc", "apcmastersnmp": "fence_apc_snmp", "drac3": "fence_drac", "external/drac5": "fence_drac5",
    "external/ec2": "fence_aws", "external/gcpstonith": "fence_gce", "external/ibmrsa": "fence_rsa",
    "external/ibmrsa-telnet": "fence_rsa", "external/ipmi": "fence_ipmilan", "external/kdumpcheck": "fence_kdump",
    "external/libvirt": "fence_virsh", "external/rackpdu": "fence_apc_snmp", "external/riloe": "fence_ilo",
    "external/sbd": "fence_sbd", "external/vcenter": "fence_vmware_rest", "external/vmware": "fence_vmware_rest",
    "ibmhmc": "fence_lpar", "ipmilan": "fence_ipmilan", "rcd_serial": "fence_rcd_serial", "wti_mpc": "fence_wti",
    "wti_nps": "fence_wti",
}  # fmt: skip
"""Plugins of cluster-glue, as vendors' older guides have them, each with the fence agent for the same device."""

ASKS_ITS_TARGET = "external/ssh"
"""The plugin that has a node restart itself ("not suitable for production": its getinfo-devdescr)."""
MODULES_OF_CLUSTER_GLUE = frozenset({
    "apcmaster", "apcmastersnmp", "apcsmart", "baytech", "bladehpi", "cyclades", "drac3", "ibmhmc", "ipmilan",
    "meatware", "null", "nw_rpc100s", "rcd_serial", "rps10", "ssh", "suicide", "wti_mpc", "wti_nps",
})  # fmt: skip
"""Its plugins that are no programs (`stonith -L`, cluster-glue 1.0.12): only its own library can load them."""


def check_agents(judgement: Judgement) -> None:
    """Judge every primitive's agent and parameters; nothing when the installed agents are not known."""
    if judgement.agents is None:
        return
    for primitive in judgement.configuration.primitives():
        facts = judgement.agents.get(str(primitive.agent))
        if facts is None:
            remedy, path = _remedy(judgement, primitive.agent, judgement.agents), ("resource", primitive.id, "agent")
            judgement.note(Code.UNKNOWN_AGENT, path, remedy=remedy, where=primitive.id, agent=primitive.agent)
            continue
        if facts.is_unreadable:
            path = ("resource", primitive.id, "agent")
            judgement.note(Code.AGENT_UNREADABLE, path, where=primitive.id, agent=primitive.agent)
            continue
        if _is_plugin(primitive.agent):
            _check_plugin(judgement, primitive)
        _check_tools(judgement, primitive, facts)
        _check_parameters(judgement, primitive, facts)
        _check_advice(judgement, primitive, facts)
        _check_unfencing(judgement, primitive, facts)


def _remedy(judgement: Judgement, agent: AgentReference, known: Iterable[str]) -> str | None:
    """Say what to write for an agent that there is not; None: nothing is like it."""
    if _is_plugin(agent) or (agent.standard == "stonith" and agent.type in MODULES_OF_CLUSTER_GLUE):
        return _remedy_for_plugin(agent, known)
    guess = judgement.nearest(str(agent), _may_be_meant(agent, known))
    if guess:
        return f"install it, or did you mean {guess}?"
    if agent.standard != "ocf":
        return None
    return f"make it an executable file, as /usr/lib/ocf/resource.d/{agent.provider}/{agent.type}, or correct the name"


def _remedy_for_plugin(agent: AgentReference, known: Iterable[str]) -> str:
    """Say what to write for a plugin of cluster-glue that is not here, or that no node can run."""
    today = FENCE_AGENTS_OF_TODAY.get(agent.type)
    instead = f"use stonith:{today}; its parameters have other names: crm ra info stonith:{today}" if today else ""
    if not _is_plugin(agent):
        why = "only the library of cluster-glue can load it"
        named = {"meatware": "; a person confirms with: crm fencing confirm"}.get(agent.type, "")
        return f"{why}: {instead}" if instead else f"{why}: use an agent of crm ra list stonith{named}"
    beginning = f"stonith:{PLUGIN_PREFIX}"
    there = [name.removeprefix(beginning) for name in known if name.startswith(beginning)]
    alike = [] if today else get_close_matches(agent.type.removeprefix(PLUGIN_PREFIX), there, n=1)
    choices = [instead] if instead else [f"did you mean {beginning}{name}?" for name in alike]
    return ", or ".join(["install it (package cluster-glue) on the nodes", *choices])


def _is_plugin(agent: AgentReference) -> bool:
    return agent.standard == "stonith" and is_plugin(agent.type)


def _may_be_meant(agent: AgentReference, known: Iterable[str]) -> Iterable[str]:
    """Return the agents of which one may be guessed to be meant: the type decides, since class and provider repeat.

    Of services only those whose names differ by one character or two: most are something else altogether, and to start
    `rescue` or `reboot` ends all that runs on the node.
    """
    if agent.standard in ("ocf", "stonith"):
        types = {name: name.rpartition(":")[2] for name in known}
        like_it = set(get_close_matches(agent.type, set(types.values()), n=_CHOICES_MAX))
        return [name for name, type_ in types.items() if type_ in like_it]
    beginning = f"{agent.standard}:"
    there = {name.removeprefix(beginning): name for name in known if name.startswith(beginning)}
    alike = get_close_matches(agent.type, there, n=1, cutoff=_ALIKE)
    return [there[name] for name in alike if name.partition(".")[0] not in _ENDING_ALL]


_ALIKE = 0.8
_CHOICES_MAX = 20
_ENDING_ALL = frozenset({
    "ctrl-alt-del", "default", "emergency", "exit", "factory-reset", "graphical", "halt", "hibernate", "kexec",
    "multi-user", "poweroff", "reboot", "rescue", "shutdown", "single", "sleep", "soft-reboot", "suspend",
})  # fmt: skip
"""Units and init scripts that stop others, or the machine (systemd.special(7))."""
_WITH_PARAMETERS = ("ocf", "stonith")
_OF_PACEMAKERS_DEVICES = {
    "stonith-timeout": "write pcmk_reboot_timeout=TIME and pcmk_off_timeout=TIME",
    "priority": "order devices by levels: crm configure fencing_topology",
}
"""Parameters that Pacemaker itself once read of every device, and what says the same."""
NEEDS_MORE = {
    "ocf:heartbeat:ClusterMon": "crm_mon as a daemon (--daemonize)",
    "ocf:pacemaker:ClusterMon": "crm_mon as a daemon (--daemonize)",
    "ocf:pacemaker:controld": "dlm_controld with corosync",
    "ocf:heartbeat:lvmlockd": "dlm_controld with corosync",
    "ocf:pacemaker:o2cb": "dlm_controld with corosync",
}
"""Agents that cannot work here although each tool that they name is here (resource-agents 4.12, Pacemaker 2.1.5)."""


def _check_tools(judgement: Judgement, primitive: Primitive, facts: AgentFacts) -> None:
    """Refuse an agent that would ask tools which are not here, and act on no answer."""
    agent = str(primitive.agent)
    tools = ", ".join(facts.missing_tools) or NEEDS_MORE.get(agent, "")
    if tools:
        path = ("resource", primitive.id, "agent")
        judgement.note(Code.TOOLS_MISSING, path, where=primitive.id, agent=agent, tools=tools)


def _check_plugin(judgement: Judgement, primitive: Primitive) -> None:
    """Say what a plugin of cluster-glue is not given, or cannot know or do, although its device is configured so."""
    if primitive.agent.type == ASKS_ITS_TARGET:
        own = ("resource", primitive.id, "agent")
        judgement.note(Code.ASKS_ITS_TARGET, own, where=primitive.id, agent=primitive.agent)
    parameters = effective(expanded(primitive, judgement.configuration).parameters)
    ports = host_map(parameters.get("pcmk_host_map", ""))
    has_other_names = any(node != port.lower() for node, port in ports.items())
    what = {
        "pcmk_host_argument": "a plugin gets the node's name as its second argument",
        "pcmk_host_map": "a plugin gets the node's own name, which its own parameters map (hostlist); write "
        "pcmk_host_list" if has_other_names else "",
        "pcmk_host_check": "by status a plugin says only that its device answers, so that any node counts as known; "
        "write dynamic-list" if parameters.get("pcmk_host_check") == "status" else "",
    }  # fmt: skip
    for name, why in what.items():
        if parameters.get(name) and why:
            path = ("resource", primitive.id, "params", name)
            shown = f"{primitive.id}: {name}={parameters[name]}"
            judgement.note(Code.WITHOUT_EFFECT, path, what=shown, why=why)


def _check_parameters(judgement: Judgement, primitive: Primitive, facts: AgentFacts) -> None:
    is_device = primitive.agent.standard == "stonith"
    parameters = effective(expanded(primitive, judgement.configuration).parameters)
    given = {name for name, value in parameters.items() if value}
    newer = {parameter.obsoletes: name for name, parameter in facts.parameters.items() if parameter.obsoletes}
    missing = [
        newer.get(name, name)
        for name, parameter in facts.parameters.items()
        # Agents write default="" where there is none (resource-agents: IPaddr2, Filesystem and many more).
        if parameter.is_required and not parameter.default
        and given.isdisjoint({name, newer.get(name, name), parameter.obsoletes})
        and not (is_device and name in GIVEN_BY_FENCER)
    ]  # fmt: skip
    for name in dict.fromkeys(missing):
        own = ("resource", primitive.id)
        judgement.note(Code.MISSING_PARAMETER, own, where=primitive.id, agent=primitive.agent, name=name)
    for name, value in pairs(primitive.parameters):
        path = ("resource", primitive.id, "params", name)
        known = facts.parameters.get(name)
        if known is not None:
            _check_option(judgement, known, value, f"{primitive.id}: {name}", path)
        elif not _is_special(name, is_device=is_device) and primitive.agent.standard in _WITH_PARAMETERS:
            agent = primitive.agent
            otherwise = f"what it takes: crm ra info {agent}"
            guess = did_you_mean(name, facts.parameters, otherwise)
            remedy = (is_device and _OF_PACEMAKERS_DEVICES.get(name)) or guess
            judgement.note(Code.UNKNOWN_PARAMETER, path, remedy=remedy, where=primitive.id, agent=agent, name=name)


def _check_unfencing(judgement: Judgement, primitive: Primitive, facts: AgentFacts) -> None:
    own = effective(expanded(primitive, judgement.configuration).meta)
    if facts.unfences and meta_values(judgement.configuration, own=own, parent={}).get("provides") != "unfencing":
        path = ("resource", primitive.id)
        judgement.note(Code.UNFENCING_NOT_SAID, path, where=primitive.id, agent=primitive.agent)


def _is_special(name: str, *, is_device: bool) -> bool:
    """Tell whether a parameter is not the agent's but the cluster's (`pcmk_*` of fence devices), or every agent's."""
    return name.startswith("pcmk_") or name == "provides" if is_device else name in TRACE_PARAMETERS


def _check_option(judgement: Judgement, known: ParameterFacts, value: str, name: str, path: tuple[str, ...]) -> None:
    if known.options and value not in known.options:
        problem = f"{value!r} is not one of: {', '.join(known.options)}"
        judgement.note(Code.BAD_VALUE, path, name=name, problem=problem)


def _check_advice(judgement: Judgement, primitive: Primitive, facts: AgentFacts) -> None:
    for index, operation in enumerate(primitive.operations):
        advice = facts.action_timeouts_ms.get(operation.name)
        if advice is not None and operation.timeout_ms is not None and operation.timeout_ms < advice:
            judgement.note(
                Code.TIMEOUT_BELOW_ADVICE,
                ("resource", primitive.id, "operation", str(index), "timeout"),
                where=f"{primitive.id}: {operation.name}",
                timeout=durations.render(operation.timeout_ms),
                advice=durations.render(advice),
            )
