"""Where resource agents are, and their environment (agents-and-fencing.md §1.1, §1.5).

The daemon, which runs them, and `crm agent`, which shows and tries what the daemon would do, share it.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from haclusterd.adapters.agents.init_scripts import INIT_SCRIPTS, SCRIPT_CLASSES, environment_of
from haclusterd.adapters.agents.seals import Seals
from haclusterd.adapters.machine.installation import INTERPRETER_DIRECTORY
from haclusterd.agents.cluster_link import INTERPRETER_VARIABLE, LIBRARY_VARIABLE, SOCKET_VARIABLE
from haclusterd.agents.process_table import NODE_MARK, ORDER_MARK, SEAL_MARK
from haclusterd.model.ids import AgentReference
from haclusterd.model.records import dataclass, field
from haclusterd.ports.agents import AgentCall

EXIT_REASON_PREFIX = "ocf-exit-reason:"
FEATURE_SET = "3.19.0"
"""The Pacemaker version in the agents' environment: it selects code paths in ocf-shellfuncs."""
OWN_PROVIDER = "haclusterd"
AGENT_STATE = "agent-state"
"""In the runtime directory: files of agents (`HA_RSCTMP`)."""
FENCE_AGENT_PREFIX = "fence_"
VISIBLE_ACCELERATORS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
CDI_KIND = "nvidia.com/gpu"
"""The kind by which the Container Device Interface names NVIDIA's GPUs and their instances."""
SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True, slots=True)
class AgentDirectories:
    """Where agents and their tools are."""

    shipped: Path | None = None
    """Agents of provider `haclusterd` that come with the program."""
    ocf_root: Path = Path("/usr/lib/ocf")
    search: tuple[Path, ...] = ()
    """OCF_RA_PATH: directories of PROVIDER/TYPE, searched first; empty: OCF_ROOT/resource.d."""
    init_scripts: Path = INIT_SCRIPTS
    """Agents of class lsb."""
    shims: Path = Path("/usr/lib/haclusterd/shims")
    """HA_SBIN_DIR, and the first entry of PATH: the cluster's tools as agents see them."""
    library: Path = Path("/usr/share/haclusterd/python")
    """The libraries of agents in Python and in shell (`agent_library`)."""
    control_socket: Path | None = None
    """Where this daemon listens, for those tools."""
    own_environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that are passed on from this daemon's own environment, as the mark of a local development cluster."""
    seals: Seals | None = None
    """By which this node's processes are known; None: by their marks alone."""

    def candidates(self, agent: AgentReference) -> Iterable[Path]:
        """Yield the paths where the agent may be, in order of preference."""
        if agent.standard == "lsb" and _is_plain(agent.type):
            yield self.init_scripts / agent.type
        if agent.standard != "ocf" or not agent.provider or not _is_plain(agent.provider) or not _is_plain(agent.type):
            return
        for root in self.search or (self.ocf_root / "resource.d",):
            yield root / agent.provider / agent.type
        if agent.provider == OWN_PROVIDER and self.shipped is not None:
            yield self.shipped / agent.type

    def listing(self) -> tuple[AgentReference, ...]:
        """Return the agents that exist: executable regular files that are not hidden, by provider and type."""
        providers = [
            provider
            for root in self.search or (self.ocf_root / "resource.d",)
            for provider in (sorted(root.iterdir()) if root.is_dir() else ())
            if provider.is_dir()
        ]
        found = {(provider.name, file.name) for provider in providers for file in _executables(provider)}
        if self.shipped is not None:
            found |= {
                (OWN_PROVIDER, file.name)
                for file in _executables(self.shipped)
                if not file.name.startswith(FENCE_AGENT_PREFIX)
            }
        agents = [AgentReference("ocf", provider, type_) for provider, type_ in sorted(found)]
        scripts = _executables(self.init_scripts) if self.init_scripts.is_dir() else ()
        agents += [AgentReference("lsb", None, name) for name in sorted(file.name for file in scripts)]
        return tuple(agents)

    def find(self, agent: AgentReference) -> Path | None:
        """Return the agent's file, executable or not; None when there is none."""
        return next((path for path in self.candidates(agent) if path.is_file()), None)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment of the agents of one node."""

    node: str
    directories: AgentDirectories
    state_directory: Path
    """HA_RSCTMP."""

    def of_agent(self, agent: AgentReference) -> dict[str, str]:
        """Return the variables that an agent gets for every action; for `meta-data`, all of them."""
        directories = self.directories
        marks = {"LANG": "C.UTF-8", "SHELL": "/bin/bash", **directories.own_environment, NODE_MARK: self.node}
        if agent.standard in SCRIPT_CLASSES:
            return {**marks, "PATH": ":".join(SYSTEM_PATH)}
        return {
            **marks,
            "PATH": ":".join((str(directories.shims), *SYSTEM_PATH, INTERPRETER_DIRECTORY)),
            "OCF_ROOT": str(directories.ocf_root),
            "OCF_RA_VERSION_MAJOR": "1",
            "OCF_RA_VERSION_MINOR": "1",
            "OCF_EXIT_REASON_PREFIX": EXIT_REASON_PREFIX,
            "OCF_RESOURCE_TYPE": agent.type,
            "OCF_RESOURCE_PROVIDER": agent.provider or "",
            "HA_SBIN_DIR": str(directories.shims),
            "HA_RSCTMP": str(self.state_directory),
            "HA_LOGFACILITY": "none",
            "HA_logfacility": "none",
            "HA_use_logd": "no",
            "HA_debug": "0",
            LIBRARY_VARIABLE: str(directories.library),
            **self._way_back(),
        }

    def of_action(self, call: AgentCall) -> dict[str, str]:
        """Return the whole environment of one action."""
        environment = self.of_agent(call.agent)
        environment[ORDER_MARK] = call.key
        if self.directories.seals is not None:
            environment[SEAL_MARK] = self.directories.seals.of(call.instance)
        if call.agent.standard in SCRIPT_CLASSES:
            return {**environment, **environment_of(call), **_visible_accelerators(call)}
        environment["OCF_RESOURCE_INSTANCE"] = call.instance
        environment["OCF_RESKEY_crm_feature_set"] = FEATURE_SET
        environment["OCF_RESKEY_CRM_meta_timeout"] = str(call.timeout_ms)
        environment["OCF_RESKEY_CRM_meta_on_node"] = self.node
        environment["OCF_RESKEY_CRM_meta_on_node_uuid"] = self.node
        for name, value in call.parameters.items():
            environment[f"OCF_RESKEY_{name}"] = value
        for name, value in call.meta.items():
            environment[f"OCF_RESKEY_CRM_meta_{name.replace('-', '_')}"] = value
        if call.check_level is not None:
            environment["OCF_CHECK_LEVEL"] = call.check_level
        if call.devices:
            environment["OCF_RESKEY_CRM_meta_devices"] = " ".join(call.devices)
        if call.accelerators:
            names = (f"{CDI_KIND}={name}" for name in call.accelerators)
            environment["OCF_RESKEY_CRM_meta_devices_cdi"] = " ".join(names)
        return {**environment, **_visible_accelerators(call)}

    def _way_back(self) -> dict[str, str]:
        """Return how an agent reaches this daemon, and the interpreter that has this program's dependencies."""
        socket = self.directories.control_socket
        return {} if socket is None else {SOCKET_VARIABLE: str(socket), INTERPRETER_VARIABLE: sys.executable}


def _visible_accelerators(call: AgentCall) -> dict[str, str]:
    """Return the variables by which CUDA and NVIDIA's container runtime show a process the claimed GPUs only."""
    ids = ",".join(call.accelerators)
    return dict.fromkeys(VISIBLE_ACCELERATORS, ids) if ids else {}


def _executables(directory: Path) -> Iterable[Path]:
    for file in directory.iterdir():
        if not file.name.startswith(".") and file.is_file() and os.access(file, os.X_OK):
            yield file


def _is_plain(name: str) -> bool:
    return bool(name) and "/" not in name and not name.startswith(".")
