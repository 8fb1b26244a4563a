"""The settings of a daemon: who it is, who its peers are, and where its files are.

`NodeSettings` is all that `NodeRuntime` knows. `Installation` is what the composition root reads from `haclusterd.yaml`
beside the node's certificates.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from haclusterd.cib.codec import FEATURE_LEVEL
from haclusterd.model.addresses import Address, address_text, read_address
from haclusterd.model.cluster import Member
from haclusterd.model.ids import NODE_NAME, NodeName
from haclusterd.model.records import dataclass, field
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.timing import DEFAULT_NODE_TIMEOUT_MS, Timing, derive
from haclusterd.model.watchdog import DEFAULT_TIMEOUT_MS, PanicAction, WatchdogSettings
from haclusterd.wire import plain_yaml

CONFIGURATION_FILE = "haclusterd.yaml"
CONFIGURATION_DIRECTORY = Path("/etc/haclusterd")
STATE_DIRECTORY = Path("/var/lib/haclusterd")
RUNTIME_DIRECTORY = Path("/run/haclusterd")
"""Where a node's files are, unless its settings name another place."""
LEAST_NODE_TIMEOUT_MS = 500
"""As the cluster property of that name."""
BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"


class SettingsError(Exception):
    """The configuration file cannot be used; the message names the file, the place and the remedy."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """All settings of one daemon that do not come from a port."""

    node: NodeName
    cluster_uuid: str
    cluster_name: str
    members: tuple[Member, ...]
    boot_id: str
    keys: Mapping[NodeName, bytes] = field(repr=False)
    """Heartbeat keys, one for each peer."""
    timing: Timing = field(default_factory=lambda: derive(2000))
    """Used until the CIB says otherwise."""
    watchdog: WatchdogSettings | None = None
    actions_max: int = 16
    """Maximum number of agents running at once, without recurring monitors."""
    rules: SafetyRules = ALL_RULES
    feature_level: int = FEATURE_LEVEL
    """The feature level that this daemon reads (`cib.levels`)."""
    derive_key: Callable[[NodeName, str], bytes | None] = field(default=lambda _node, _certificate: None, repr=False)
    """Returns the heartbeat key that this node shares with a member, from that member's certificate (PEM)."""

    adopt: Callable[[str], bool] = field(default=lambda _: False, repr=False)
    """Starts using this node's certificate as the CIB has it, if it is new; returns whether it is."""

    def member(self, node: NodeName) -> Member | None:
        """Return a member by name."""
        return next((member for member in self.members if member.name == node), None)


@dataclass(frozen=True, slots=True)
class Installation:
    """The content of `haclusterd.yaml`."""

    directory: Path
    """The directory of the file: certificates and keys are beside it."""
    node: NodeName
    cluster_uuid: str
    cluster_name: str
    members: tuple[Member, ...]
    state_directory: Path
    runtime_directory: Path
    boot_id_file: Path
    is_development: bool
    node_timeout_ms: int
    watchdog: WatchdogSettings | None = None
    machine_id_file: Path | None = None
    """An identifier of this machine that precedes all that the kernel reports; None: there is none."""
    gpus: int = 0
    """How many GPUs this node should have: fewer are reported. 0: not specified, and the PCI bus counts."""

    def boot_id(self) -> str:
        """Return the boot id of this machine."""
        return self.boot_id_file.read_text().strip()


def render(installation: Installation) -> str:
    """Return the text of the configuration file."""
    document: dict[str, Any] = {
        "cluster": {"name": installation.cluster_name, "uuid": installation.cluster_uuid},
        "node": str(installation.node),
        "members": {
            str(member.name): {
                "addresses": [address_text(address) for address in member.addresses],
                **({} if member.is_voter else {"voter": False}),
                **({"witness": True} if member.is_witness else {}),
            }
            for member in installation.members
        },
        "state-directory": str(installation.state_directory),
        "runtime-directory": str(installation.runtime_directory),
    }
    if str(installation.boot_id_file) != BOOT_ID_FILE:
        document["boot-id-file"] = str(installation.boot_id_file)
    if installation.machine_id_file is not None:
        document["machine-id-file"] = str(installation.machine_id_file)
    if installation.gpus:
        document["gpus"] = installation.gpus
    if installation.node_timeout_ms != DEFAULT_NODE_TIMEOUT_MS:
        document["node-timeout-ms"] = installation.node_timeout_ms
    if installation.watchdog is not None:
        document["watchdog"] = _spell_watchdog(installation.watchdog)
    if installation.is_development:
        document["development"] = True
    head = "# haclusterd: who this node is and where its peers are. Certificates and keys lie beside this file.\n"
    return head + yaml.safe_dump(document, sort_keys=False)


def load(path: Path) -> Installation:
    """Read the configuration file; raises SettingsError, which names the problem and the remedy."""
    try:
        document = plain_yaml.load(path.read_text())
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror} (make it with `crm cluster setup`)") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: not YAML: {error}") from error
    if not isinstance(document, dict):
        raise SettingsError(f"{path}: expected a mapping with the keys cluster, node, members")
    return _Reader(path, document).installation()


def _spell_watchdog(watchdog: WatchdogSettings) -> dict[str, Any]:
    written: dict[str, Any] = {"device": watchdog.device, "timeout-ms": watchdog.timeout_ms}
    if watchdog.pretimeout_ms:
        written["pretimeout-ms"] = watchdog.pretimeout_ms
    if watchdog.panic is not PanicAction.NONE:
        written["panic"] = watchdog.panic.value
    return written


class _Reader:
    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self._path = path
        self._document = document

    def installation(self) -> Installation:
        known = {
            "cluster", "node", "members", "state-directory", "runtime-directory", "boot-id-file", "development",
            "machine-id-file", "node-timeout-ms", "watchdog", "gpus",
        }  # fmt: skip
        unknown = sorted(set(self._document) - known)
        if unknown:
            raise self._error(unknown[0], f"unknown key; known are {', '.join(sorted(known))}")
        cluster = self._mapping("cluster")
        members = tuple(self._member(name, value) for name, value in self._mapping("members").items())
        node = NodeName(self._text("node", self._document.get("node")))
        if node not in {member.name for member in members}:
            raise self._error("node", f"{node} is not among the members")
        return Installation(
            directory=self._path.parent,
            node=node,
            cluster_uuid=self._text("cluster.uuid", cluster.get("uuid")),
            cluster_name=self._text("cluster.name", cluster.get("name")),
            members=members,
            state_directory=self._path_of("state-directory", str(STATE_DIRECTORY)),
            runtime_directory=self._path_of("runtime-directory", str(RUNTIME_DIRECTORY)),
            boot_id_file=self._path_of("boot-id-file", BOOT_ID_FILE),
            is_development=self._document.get("development") is True,
            node_timeout_ms=self._node_timeout_ms(),
            watchdog=self._watchdog(),
            machine_id_file=self._machine_id_file(),
            gpus=self._gpus(),
        )

    def _watchdog(self) -> WatchdogSettings | None:
        if "watchdog" not in self._document:
            return None
        value = self._mapping("watchdog")
        known = {"device", "timeout-ms", "pretimeout-ms", "panic"}
        unknown = sorted(set(value) - known)
        if unknown:
            raise self._error(f"watchdog.{unknown[0]}", f"unknown key; known are {', '.join(sorted(known))}")
        panic = value.get("panic", PanicAction.NONE.value)
        if panic not in tuple(PanicAction):
            raise self._error("watchdog.panic", f"one of {', '.join(PanicAction)}")
        return WatchdogSettings(
            device=self._text("watchdog.device", value.get("device")),
            timeout_ms=self._span_ms("watchdog.timeout-ms", value.get("timeout-ms", DEFAULT_TIMEOUT_MS), 1000),
            pretimeout_ms=self._span_ms("watchdog.pretimeout-ms", value.get("pretimeout-ms", 0), 0),
            panic=PanicAction(panic),
            may_be_stand_in=self._document.get("development") is True,
        )

    def _span_ms(self, place: str, value: object, least: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self._error(place, f"expected a number of milliseconds, at least {least}")
        return value

    def _path_of(self, key: str, default: str) -> Path:
        return Path(self._text(key, self._document.get(key, default)))

    def _machine_id_file(self) -> Path | None:
        key = "machine-id-file"
        return Path(self._text(key, self._document[key])) if key in self._document else None

    def _gpus(self) -> int:
        value = self._document.get("gpus", 0)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._error("gpus", "expected a number of GPUs")
        return value

    def _node_timeout_ms(self) -> int:
        value = self._document.get("node-timeout-ms", DEFAULT_NODE_TIMEOUT_MS)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._error("node-timeout-ms", "expected a number of milliseconds")
        if value < LEAST_NODE_TIMEOUT_MS:
            raise self._error("node-timeout-ms", f"at least {LEAST_NODE_TIMEOUT_MS}")
        return value

    def _member(self, name: object, value: object) -> Member:
        place = f"members.{name}"
        if not isinstance(name, str) or not NODE_NAME.match(name):
            raise self._error(place, "not a node name")
        if not isinstance(value, dict):
            raise self._error(place, "expected a mapping with `addresses`")
        addresses = value.get("addresses")
        if not isinstance(addresses, list) or not addresses:
            raise self._error(f"{place}.addresses", "expected a list like [192.0.2.1:7100]")
        return Member(
            NodeName(name),
            tuple(self._address(place, item) for item in addresses),
            is_voter=value.get("voter", True) is True,
            is_witness=value.get("witness", False) is True,
        )

    def _address(self, place: str, item: object) -> Address:
        try:
            return read_address(str(item))
        except ValueError:
            raise self._error(f"{place}.addresses", f"{item!r} is not HOST:PORT") from None

    def _mapping(self, key: str) -> Mapping[str, Any]:
        value = self._document.get(key)
        if not isinstance(value, dict) or not value:
            raise self._error(key, "expected a mapping")
        return value

    def _text(self, place: str, value: object) -> str:
        if not isinstance(value, str) or not value:
            raise self._error(place, "expected a text")
        return value

    def _error(self, place: str, problem: str) -> SettingsError:
        return SettingsError(f"{self._path}: {place}: {problem}")
