"""Where the files that belong to the package are: resource agents, their tools, policies, units.

In a source checkout they are beside the package; an installed wheel has put them under `share/haclusterd` of the prefix
of the installation, which only the installation's own record knows for sure (a virtual environment, `--user`,
`--prefix`, a distribution's package).
"""

import os
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Final

import haclusterd

INTERPRETER_DIRECTORY: Final = os.path.dirname(os.path.realpath(sys.executable))
"""Where the interpreter of this program is: agents that are programs of this package need it."""

_DISTRIBUTION: Final = "haclusterd"
_SHARE: Final = ("share", "haclusterd")
_AGENTS: Final = "resource_agents"


class InstallationIncompleteError(Exception):
    """The package's files were not found; the message says where they were looked for."""


SYSTEM_FENCE_DIRECTORIES = (Path("/usr/sbin"), Path("/usr/local/sbin"))
"""Where the distribution's fence agents are."""
SYSTEM_PLUGIN_DIRECTORIES = (Path("/usr/lib/stonith/plugins/external"), Path("/usr/lib64/stonith/plugins/external"))
"""Where the package cluster-glue has its external fence plugins."""


def agent_search_path() -> tuple[Path, ...]:
    """Return the directories of OCF agents, from OCF_RA_PATH; empty: the usual place (OCF_ROOT)."""
    return _directories_of("OCF_RA_PATH")


def plugin_search_path() -> tuple[Path, ...]:
    """Return the directories of cluster-glue's external fence plugins, from STONITH_PLUGIN_PATH, or the usual ones."""
    return _directories_of("STONITH_PLUGIN_PATH") or SYSTEM_PLUGIN_DIRECTORIES


def _directories_of(variable: str) -> tuple[Path, ...]:
    return tuple(Path(part) for part in os.environ.get(variable, "").split(":") if part)


def share_directory() -> Path:
    """Return the directory that holds `resource_agents`, `shims`, `policies` and `systemd`."""
    places = _places()
    for place in places:
        if (place / _AGENTS).is_dir():
            return place
    looked = ", ".join(map(str, places))
    raise InstallationIncompleteError(f"no {_AGENTS} in {looked}: install the package again, whole")


def resource_agents_directory() -> Path:
    """Return the directory of the agents of provider `haclusterd`; each is one executable file."""
    return share_directory() / _AGENTS


def agent_library(share: Path) -> Path:
    """Return the directory for Python's path that has `haclusterd.agents` and, in it, `agent.sh`."""
    installed = share / "python"
    return installed if installed.is_dir() else share


def policies_directory() -> Path:
    """Return the directory of the policies that come with the package."""
    return share_directory() / "policies"


def _places() -> list[Path]:
    checkout = Path(haclusterd.__file__).resolve().parents[1]
    places = [checkout] if (checkout / "pyproject.toml").is_file() else []
    return [*places, *_recorded(), Path(sysconfig.get_path("data"), *_SHARE)]


def _recorded() -> list[Path]:
    try:
        files = metadata.files(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    found = (Path(str(file.locate())).resolve() for file in files if file.parts[-4:-1] == (*_SHARE, _AGENTS))
    return [agent.parents[1] for agent in list(found)[:1]]
