"""Where fence agents, cluster-glue's external plugins and their tools are: one answer for the daemon and `crm ra`."""

import os
import re
import stat
from pathlib import Path

from haclusterd.adapters.machine.installation import SYSTEM_FENCE_DIRECTORIES, plugin_search_path
from haclusterd.model.fence_parameters import PLUGIN_PREFIX
from haclusterd.model.records import dataclass

AGENT_NAME = re.compile(r"fence_[A-Za-z0-9_.-]+\Z")
PLUGIN_NAME = re.compile(rf"{PLUGIN_PREFIX}[A-Za-z0-9_][A-Za-z0-9_.@-]*\Z")
_NO_PROGRAMS = (".md", ".py")
"""What lies beside fence agents and is none: documents, libraries."""


@dataclass(frozen=True, slots=True)
class FenceDirectories:
    """Directories of programs by which nodes are fenced; of two with the same name the first counts."""

    agents: tuple[Path, ...]
    """Of `fence_*`."""
    plugins: tuple[Path, ...] = ()
    """Of the plugins, each of which is the agent `external/NAME`."""
    shims: Path | None = None
    """The cluster's tools as plugins see them: external/sbd asks crm_attribute for stonith-timeout before it acts."""
    control_socket: Path | None = None
    """Where this daemon listens, for those tools."""

    @classmethod
    def installed(cls, share: Path, control_socket: Path | None = None) -> "FenceDirectories":
        """Return those of this machine, with tools for a daemon's plugins; `share`: where the program's files are."""
        shims = share / "shims" if control_socket is not None else None
        return cls((share / "resource_agents", *SYSTEM_FENCE_DIRECTORIES), plugin_search_path(), shims, control_socket)

    def find(self, name: str) -> Path | None:
        """Return the program of `fence_NAME` or `external/NAME`, executable or not; None when there is none."""
        if AGENT_NAME.match(name):
            return next((each / name for each in self.agents if (each / name).is_file()), None)
        if not PLUGIN_NAME.match(name):
            return None
        file = name.removeprefix(PLUGIN_PREFIX)
        return next((each / file for each in self.plugins if _is_plugin(each / file)), None)

    def listing(self) -> tuple[str, ...]:
        """Return the names of all programs that are there and can be executed."""
        names = {
            file.name
            for directory in self.agents
            if directory.is_dir()
            for file in directory.glob("fence_*")
            if not file.name.endswith(_NO_PROGRAMS)
        }
        names |= {
            f"{PLUGIN_PREFIX}{file.name}"
            for directory in self.plugins
            if directory.is_dir()
            for file in directory.iterdir()
        }
        return tuple(name for name in sorted(names) if _is_executable(self.find(name)))


def _is_executable(path: Path | None) -> bool:
    return path is not None and os.access(path, os.X_OK)


def _is_plugin(path: Path) -> bool:
    """Return whether a file is a plugin: regular, and writable by its owner alone (cluster-glue: README.external)."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and not mode & (stat.S_IWGRP | stat.S_IWOTH)
