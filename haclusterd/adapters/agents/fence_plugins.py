"""External fence plugins of cluster-glue: how `external/NAME` is called, and what its answers mean.

A plugin is a program that gets an action as its first argument, the host as its second, and the device's parameters as
variables of its environment; exit status 0 is success, any other failure (cluster-glue: README.external). It is called
here as Pacemaker's fence_legacy and the program `stonith` call it; tests/unit/adapters/agents/test_fence_legacy.py
compares both.

Only variables that the plugin declares are set. A person who may configure devices, and is not root, could otherwise
have any program run through variables that interpreters and the linker read (LD_PRELOAD, PERL5OPT, BASH_ENV).
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.agents.metadata import MetadataError, read_root
from haclusterd.adapters.processes.running import Ended, Ending
from haclusterd.agents.cluster_link import INTERPRETER_VARIABLE, SOCKET_VARIABLE
from haclusterd.model.agent_calls import FenceCall
from haclusterd.model.records import dataclass, field
from haclusterd.ports.fencing import FenceMetadata

QUESTIONS = ("getinfo-xml", "getconfignames", "getinfo-devid", "getinfo-devdescr")
"""What a plugin is asked for its metadata, the parameters first."""
TOOLS = Path("/usr/share/cluster-glue")
"""Where ha_log.sh is, by which plugins write to the system's log."""

_WORDS = {
    "monitor": "status", "status": "status", "list": "gethosts", "reboot": "reset", "reset": "reset", "off": "off",
    "poweroff": "off", "on": "on", "metadata": "getinfo-xml",
}  # fmt: skip
"""What a plugin is asked for each action of a fence agent."""
_OF_A_HOST = frozenset({"off", "on", "reset"})
_SUPPORTED = ("off", "on", "reboot", "status", "list", "monitor", "metadata")
"""What the metadata says; whether a plugin can do `on` and `off` is only known when it is asked to."""


@dataclass(frozen=True, slots=True)
class PluginCall:
    """How a plugin is called."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


def plugin_environment(
    agent: str, environment: Mapping[str, str], directories: FenceDirectories
) -> dict[str, str]:
    """Return what every call of a plugin finds in its environment, with the tools that it may call first in PATH."""
    path = (directories.shims, TOOLS, environment["PATH"])
    found = {**environment, "PATH": ":".join(str(part) for part in path if part), "HA_LOGTAG": agent}
    if directories.control_socket is not None:
        found |= {SOCKET_VARIABLE: str(directories.control_socket), INTERPRETER_VARIABLE: sys.executable}
    return found


def plugin_call(call: FenceCall, metadata: FenceMetadata | None) -> PluginCall | str:
    """Return how a plugin is called, or why it cannot be.

    The host is the node's own name in lower case: the plugin maps names itself (`hostlist`), and neither
    pcmk_host_map nor pcmk_host_argument has any effect on it.
    """
    word = _WORDS.get(call.action)
    if word is None:
        return f"a plugin has no action {call.action}: one of {', '.join(sorted(_WORDS))}"
    if metadata is None:
        return f"{call.agent} does not say which parameters it has (getinfo-xml, getconfignames)"
    node = call.parameters.get("nodename", "")
    if word in _OF_A_HOST and not node:
        return f"{call.action} needs the name of a node"
    known = metadata.parameters | {"nodename"}
    environment = {name: value for name, value in call.parameters.items() if name in known}
    return PluginCall((word, node.lower()) if word in _OF_A_HOST else (word,), environment)


def plugin_answer(call: FenceCall, ended: Ended, output_limit: int) -> tuple[int, str, str]:
    """Return exit code, output and the reason of a plugin that has exited, as a fence agent would have given them.

    Every status but 0 is 1: to a plugin, 2 of `status` or `monitor` does not mean that the device is healthy. The hosts
    of `list` are one a line; none at all is a failure. So are more than the bytes that are kept: what is cut could be
    another node's name.
    """
    assert ended.ending is Ending.EXITED
    word = _WORDS[call.action]
    if ended.number != 0:
        return 1, ended.stdout, f"{word}: exit status {ended.number}"
    if word != "gethosts":
        return 0, ended.stdout, ""
    if len(ended.stdout.encode()) > output_limit:
        return 1, "", f"{word}: it printed more than {output_limit} bytes"
    hosts = ended.stdout.split()
    return (0, "".join(f"{host}\n" for host in hosts), "") if hosts else (1, "", f"{word}: it lists no host")


def plugin_metadata(agent: str, answers: Mapping[str, str]) -> str:
    """Return metadata of a plugin as a fence agent would print it; empty when the plugin gives none.

    `answers`: what it printed, by question; a question that it failed is missing. Parameters that it names without
    describing them have no description; of parameters that cannot be read the names remain.
    """
    try:
        parameters = read_root(answers.get("getinfo-xml", ""), "parameters")
    except MetadataError:
        if "getconfignames" not in answers:
            return ""
        parameters = Element("parameters")
    described = {each.get("name") for each in parameters.iterfind("parameter")}
    for name in dict.fromkeys(answers.get("getconfignames", "").split()):
        if name not in described:
            SubElement(SubElement(parameters, "parameter", name=name), "content", type="string")
    root = Element("resource-agent", name=agent)
    SubElement(root, "longdesc").text = _printable(answers.get("getinfo-devdescr", ""))
    SubElement(root, "shortdesc").text = _printable(answers.get("getinfo-devid", ""))
    root.append(parameters)
    actions = SubElement(root, "actions")
    for action in _SUPPORTED:
        SubElement(actions, "action", name=action)
    return tostring(root, encoding="unicode")


def _printable(text: str) -> str:
    """Return a text without the characters that XML cannot carry."""
    return "".join(character for character in text if character.isprintable() or character == "\n")
