"""`attrd_updater`, `crm_attribute` and `crm_master` as resource agents know them, over this cluster's control socket.

Options, output and exit codes are those of Pacemaker's tools as far as the agents of resource-agents use them
(attrd_updater(8), crm_attribute(8), crm_master(8)); what nobody uses is refused, never ignored silently.

A write is applied on this node before the tool ends, so that an agent reads what it wrote; only a dampened one is
answered before. Without quorum a write fails within seconds, with exit code 106; it never hangs.
"""

from __future__ import annotations

import getopt
import os
import sys
from collections.abc import Callable, Sequence

from haclusterd.agents.cluster_link import ClusterError, ClusterLink

TYPE_CHECKING = False  # As typing says it; importing that takes longer than all that these tools do.
if TYPE_CHECKING:
    from typing import Any

USAGE = 64
UNKNOWN_PROPERTY = 78
NO_SUCH_OBJECT = 105
UNITS_MS = {"": 1000, "s": 1000, "sec": 1000, "ms": 1, "m": 60_000, "min": 60_000, "h": 3_600_000, "hr": 3_600_000}
ON_NODE = "OCF_RESKEY_CRM_meta_on_node"
UPDATES = frozenset({"-v", "-U", "-B", "--update", "--attr-value", "--update-both"})


class UsageError(Exception):
    """A call that these tools do not understand."""


class Call:
    """What one command line asks for."""

    def __init__(self) -> None:
        self.action = ""
        """query, set or delete."""
        self.name = ""
        self.value = ""
        self.node = ""
        self.lifetime = ""
        self.default: str | None = None
        self.dampen_ms = 0
        self.is_quiet = False
        self.is_of_all_nodes = False
        self.type = ""
        self.is_promotion = False
        self.is_private = False


def main(tool: str, arguments: Sequence[str]) -> int:
    """Run one of the tools; return its exit code."""
    try:
        if tool == "attrd_updater":
            return _update(_read_updater(arguments))
        return _attribute(_read_attribute(arguments, is_promotion=tool == "crm_master"))
    except (UsageError, getopt.GetoptError) as error:
        sys.stderr.write(f"{tool}: {error}\n")
        return USAGE
    except ClusterError as error:
        sys.stderr.write(f"{tool}: Error performing operation: {error}\n")
        return error.status


# attrd_updater

_UPDATER_SHORT = "Qn:B:U:v:Dd:N:pAS:qRY"
_UPDATER_LONG = [
    "query", "name=", "update=", "update-both=", "update-delay", "delete", "delay=", "node=", "private", "lifetime=",
    "all", "refresh", "quiet", "set=", "wait=",
]  # fmt: skip


def _read_updater(arguments: Sequence[str]) -> Call:
    call = Call()
    options, rest = getopt.gnu_getopt(list(arguments), _UPDATER_SHORT, _UPDATER_LONG)
    if rest:
        raise UsageError(f"unexpected: {rest[0]}")
    call.is_private = any(option in ("-p", "--private") for option, _ in options)
    for option, text in options:
        if option in UPDATES:
            call.action, call.value = "set", text
        elif option in ("-Q", "--query"):
            call.action = call.action or "query"
        elif option in ("-D", "--delete"):
            call.action = "delete"
        elif option in ("-d", "--delay"):
            call.dampen_ms = _milliseconds(text)
        elif option in ("-Y", "--update-delay", "-R", "--refresh"):
            call.action = call.action or "nothing"
        elif option in ("-A", "--all"):
            call.is_of_all_nodes = True
        else:
            _read_shared(call, option, text)
    if call.action == "nothing":
        return call
    return _checked(call)


def _update(call: Call) -> int:
    if call.action == "nothing":
        return 0
    if call.action != "query":
        _write(call)
        return 0
    found = _values(call, "reboot")
    for node, value in found:
        sys.stdout.write(f'name="{call.name}" host="{node}" value="{value}"\n')
    if not found:
        sys.stderr.write(f"Could not query value of {call.name}: attribute does not exist\n")
        return NO_SUCH_OBJECT
    return 0


# crm_attribute, crm_master

_ATTRIBUTE_SHORT = "GQqDv:n:N:U:l:t:s:d:pr:i:"
_ATTRIBUTE_LONG = [
    "query", "get-value", "quiet", "delete", "update=", "attr-value=", "name=", "attr-name=", "node=", "uname=",
    "lifetime=", "type=", "set-name=", "default=", "promotion", "id=",
]  # fmt: skip


def _read_attribute(arguments: Sequence[str], *, is_promotion: bool) -> Call:
    call = Call()
    call.is_promotion = is_promotion
    options, rest = getopt.gnu_getopt(list(arguments), _ATTRIBUTE_SHORT, _ATTRIBUTE_LONG)
    if rest:
        raise UsageError(f"unexpected: {rest[0]}")
    for option, text in options:
        if option in ("-v", "--update", "--attr-value"):
            call.action, call.value = "set", text
        elif option in ("-G", "--query", "--get-value"):
            call.action = "query"
        elif option in ("-D", "--delete"):
            call.action = "delete"
        elif option in ("-p", "--promotion"):
            call.is_promotion = True
        else:
            _read_shared(call, option, text)
    call.action = call.action or "query"
    if call.is_promotion:
        instance = os.environ.get("OCF_RESOURCE_INSTANCE", "")
        if not instance:
            raise UsageError("OCF_RESOURCE_INSTANCE is not set: whose promotion score?")
        call.name = f"master-{instance.split(':')[0]}"
        call.lifetime = call.lifetime or "reboot"
    return _checked(call)


def _attribute(call: Call) -> int:
    is_of_cluster = call.type == "crm_config" or not (call.node or call.lifetime or call.type)
    if is_of_cluster:
        return _cluster_property(call)
    is_transient = call.lifetime in ("reboot", "status") or call.type == "status"
    lifetime = "reboot" if is_transient else "forever"
    if call.action == "query":
        found = [value for _, value in _values(call, lifetime)]
        return _tell(call, "status" if is_transient else "nodes", found[0] if found else None)
    _write(call, lifetime)
    if call.action == "delete":
        scope = "status" if is_transient else "nodes"
        sys.stdout.write(f"Deleted {scope} attribute: id={scope}-{_node(call)}-{call.name} name={call.name}\n")
    return 0


def _cluster_property(call: Call) -> int:
    if call.action != "query":
        raise UsageError("properties of the cluster are not written by agents: crm configure property")
    value = None
    try:
        with ClusterLink() as link:
            data = link.ask("configure.get_property", {"names": [call.name]})
        value = next((row["value"] for row in data["properties"] if not row["is_default"]), None)
    except ClusterError as error:
        if error.status != UNKNOWN_PROPERTY:
            raise
    return _tell(call, "crm_config", value)


def _tell(call: Call, scope: str, value: str | None) -> int:
    value = call.default if value is None else value
    if value is None:
        sys.stderr.write("crm_attribute: Error performing operation: No such device or address\n")
        return NO_SUCH_OBJECT
    sys.stdout.write(f"{value}\n" if call.is_quiet else f"scope={scope}  name={call.name} value={value}\n")
    return 0


# Both


def _read_shared(call: Call, option: str, text: str) -> None:
    """Read an option that means the same to all of these tools."""

    def put(field: str) -> Callable[[], None]:
        return lambda: setattr(call, field, text)

    ignored = ("-p", "--private", "-S", "-s", "--set", "--set-name", "-r", "-i", "--id", "--wait")
    if option in ignored:
        return
    fields = {
        "-n": "name", "--name": "name", "--attr-name": "name",
        "-N": "node", "--node": "node", "-U": "node", "--uname": "node",
        "-l": "lifetime", "--lifetime": "lifetime", "-t": "type", "--type": "type",
        "-d": "default", "--default": "default",
    }  # fmt: skip
    if option in ("-q", "--quiet", "-Q"):
        call.is_quiet = True
    elif option in fields:
        put(fields[option])()
    else:
        raise UsageError(f"option {option} is not supported")


def _checked(call: Call) -> Call:
    if not call.name:
        raise UsageError("the name of the attribute is missing (-n)")
    if not call.action:
        raise UsageError("nothing to do: give a value (-U), -D or -Q")
    return call


def _write(call: Call, lifetime: str = "reboot") -> None:
    arguments: dict[str, Any] = {
        "action": call.action, "node": _node(call), "name": call.name, "lifetime": lifetime,
    }  # fmt: skip
    if call.action == "set":
        arguments["value"] = call.value
    if call.dampen_ms:
        arguments["dampen_ms"] = call.dampen_ms
    if call.is_private:
        arguments["private"] = True
    with ClusterLink() as link:
        link.ask("node.attribute", arguments)


def _values(call: Call, lifetime: str) -> list[tuple[str, str]]:
    """Return (node, value) where the attribute is set."""
    asked: dict[str, Any] = {"name": call.name, "lifetime": lifetime, "node": _node(call)}
    if call.is_of_all_nodes:
        asked["all"] = True
    with ClusterLink() as link:
        data = link.ask("node.attributes", asked)
    found = [(node["name"], {**node.get("private", {}), **node[lifetime]}) for node in data["nodes"]]
    return [(name, values[call.name]) for name, values in found if call.name in values]


def _node(call: Call) -> str:
    return call.node or os.environ.get(ON_NODE, "") or os.environ.get("HACLUSTERD_NODE", "")


def _milliseconds(text: str) -> int:
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        return int(number) * UNITS_MS[text.strip()[len(number) :].strip()]
    except (ValueError, KeyError):
        raise UsageError(f"not a duration: {text!r}") from None
