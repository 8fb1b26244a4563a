"""The daemon's own copy of the agents: whole, found again, made again where it is not, and left alone by upgrades."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from haclusterd.adapters.agents.copies import KEPT, copy_agents
from haclusterd.adapters.machine.installation import share_directory


@pytest.fixture
def share(tmp_path: Path) -> Path:
    """What a wheel installs of this checkout."""
    target = tmp_path / "share"
    for part in ("resource_agents", "shims"):
        shutil.copytree(share_directory() / part, target / part)
    shutil.copytree(share_directory() / "haclusterd" / "agents", target / "python" / "haclusterd" / "agents")
    shutil.copy(share_directory() / "haclusterd" / "__init__.py", target / "python" / "haclusterd")
    return target


def meta_data(copy: Path) -> subprocess.CompletedProcess[str]:
    command = [copy / "resource_agents" / "dummy", "meta-data"]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("is_checkout", [True, False])
def test_agents_run_from_the_copy_when_the_package_is_gone(share: Path, tmp_path: Path, is_checkout: bool) -> None:
    copy = copy_agents(share_directory() if is_checkout else share, tmp_path / "state")
    shutil.rmtree(share)
    done = meta_data(copy)
    assert (done.returncode, done.stderr) == (0, "")
    assert "<resource-agent" in done.stdout
    assert os.access(copy / "shims" / "attrd_updater", os.X_OK)


def test_the_same_agents_are_the_same_copy_and_others_are_another(share: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = copy_agents(share, state)
    assert copy_agents(share, state) == first
    (share / "resource_agents" / "dummy").write_text("#!/bin/sh\n")
    assert copy_agents(share, state) != first
    assert meta_data(first).returncode == 0, "what runs from the copy before goes on"


def test_a_copy_that_lost_power_is_made_again(share: Path, tmp_path: Path) -> None:
    copy = copy_agents(share, tmp_path / "state")
    (copy / "resource_agents" / "dummy").write_bytes(b"")
    assert copy_agents(share, tmp_path / "state") == copy
    assert meta_data(copy).returncode == 0


def test_old_copies_do_not_pile_up(share: Path, tmp_path: Path) -> None:
    for number in range(KEPT + 3):
        (share / "resource_agents" / "dummy").write_text(f"#!/bin/sh\n# {number}\n")
        newest = copy_agents(share, tmp_path / "state")
    kept = sorted((tmp_path / "state" / "agents").iterdir())
    assert len(kept) == KEPT
    assert newest in kept
