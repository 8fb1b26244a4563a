"""What Pacemaker's fence_legacy and cluster-glue's `stonith` do with a plugin is what this program does with it.

Both know one directory of plugins only. So they are run in a mount namespace of their own, where that directory is the
test's; this machine's is not touched. fence_legacy gets what Pacemaker 2.1.5 sends it: `plugin`, `action`, `nodename`
and the device's parameters, neither `port` nor what pcmk_host_argument names.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.agents.metadata import read_agent_metadata
from haclusterd.adapters.agents.surroundings import AgentDirectories
from haclusterd.adapters.agents.survey import metadata_text
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.model.ids import AgentReference
from tests.unit.adapters.agents.fence_switches import Switches
from tests.unit.adapters.agents.plugin_stand_in import calls, stand_in

PLUGINS = Path("/usr/lib/stonith/plugins/external")
SYSTEM = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
AGENT = AgentReference("stonith", None, "external/test")


def in_own_directory(directory: Path, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program that finds `directory` in place of cluster-glue's plugins."""
    script = f'mount --bind "$0" {PLUGINS} && exec "$@"'
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, str(directory), *command],
        input=text, capture_output=True, text=True, check=False, env={"PATH": SYSTEM},
    )  # fmt: skip


def absence() -> str:
    """Say what is missing for the comparison; empty when nothing is."""
    missing = [name for name in ("fence_legacy", "stonith", "unshare") if shutil.which(name, path=SYSTEM) is None]
    missing += [str(PLUGINS)] if not PLUGINS.is_dir() else []
    if missing:
        return f"not installed: {', '.join(missing)}"
    return "" if in_own_directory(PLUGINS, "true").returncode == 0 else "no mount namespace (root)"


ABSENCE = absence()
pytestmark = pytest.mark.skipif(bool(ABSENCE), reason=ABSENCE)

_SEEN = ("arguments", "hostlist", "nodename")


def seen(log: Path) -> list[tuple[str, ...]]:
    """Return what the plugin was given in each call, and forget it."""
    found = [tuple(each[name] for name in _SEEN) for each in calls(log)]
    log.unlink(missing_ok=True)
    return found


@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        ("monitor", {}),
        ("monitor", {"status_rc": "2"}),
        ("status", {"nodename": "N1"}),
        ("status", {"nodename": "N1", "status_rc": "2"}),
        ("list", {}),
        ("list", {"hostlist": ""}),
        ("list", {"status_rc": "2"}),
        ("off", {"nodename": "N1"}),
        ("poweroff", {"nodename": "N1"}),
        ("on", {"nodename": "n2.example"}),
        ("reboot", {"nodename": "N1"}),
        ("reboot", {"nodename": "not-listed"}),
        ("reboot", {"nodename": "n1", "reset_rc": "5"}),
        ("reboot", {"nodename": "n1", "reset_rc": "300"}),
        ("reset", {"nodename": "n1"}),
        ("reboot", {}),
        ("diag", {"nodename": "n1"}),
        ("enable", {"nodename": "n1"}),
        ("gethosts", {"nodename": "n1"}),
    ],
)
async def test_a_plugin_is_called_alike_and_its_answer_means_the_same(
    action: str, parameters: dict[str, str], clock: BoottimeClock, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    switches = Switches(clock, tmp_path)
    switches.write_plugin(stand_in(log))
    given = {"hostlist": "N1 n2", **parameters}
    lines = [f"action={action}", f"plugin={AGENT.type}", *(f"{name}={value}" for name, value in given.items())]
    theirs = in_own_directory(tmp_path / "plugins", "fence_legacy", text="".join(f"{line}\n" for line in lines))
    their_calls = seen(log)
    ours = await switches.run(action, agent=AGENT.type, **given)
    assert seen(log) == their_calls
    assert (ours.exit_code == 0) is (theirs.returncode == 0), theirs
    if action == "list" and ours.exit_code == 0:
        assert ours.output.split() == theirs.stdout.split()


def test_the_same_files_are_plugins_and_say_the_same_of_themselves(tmp_path: Path) -> None:
    directory = tmp_path / "plugins"
    directory.mkdir()
    for name, mode in (("test", 0o755), ("private", 0o700), ("writable", 0o775), ("text", 0o644)):
        (directory / name).write_text(stand_in(tmp_path / "log"))
        (directory / name).chmod(mode)
    listed = in_own_directory(directory, "stonith", "-L").stdout.split()
    ours = FenceDirectories((), (directory,)).listing()
    assert sorted(name for name in listed if name.startswith("external/")) == list(ours)
    shown = in_own_directory(directory, "stonith", "-m", "-t", AGENT.type).stdout
    theirs = read_agent_metadata(shown, AGENT)
    own = read_agent_metadata(metadata_text(AGENT, directory / "test", AgentDirectories()), AGENT)
    assert (own.shortdesc, own.longdesc) == (theirs.shortdesc, theirs.longdesc)
    assert theirs.parameters.items() <= own.parameters.items()


@pytest.mark.parametrize("name", sorted(file.name for file in PLUGINS.iterdir()) if PLUGINS.is_dir() else [])
def test_every_plugin_that_is_installed_can_be_read_if_stonith_can(name: str) -> None:
    agent = AgentReference("stonith", None, f"external/{name}")
    path = FenceDirectories((), (PLUGINS,)).find(agent.type)
    assert path is not None
    theirs = subprocess.run(
        ["stonith", "-m", "-t", agent.type], capture_output=True, text=True, check=False, env={"PATH": SYSTEM}
    )
    text = metadata_text(agent, path, AgentDirectories())
    if "<parameter " not in theirs.stdout:
        pytest.skip(f"not installed: what external/{name} needs")
    own = read_agent_metadata(text, agent)
    assert read_agent_metadata(theirs.stdout, agent).parameters.items() <= own.parameters.items()
