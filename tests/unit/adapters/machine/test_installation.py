"""A source checkout finds its own files."""

import os
from pathlib import Path

from haclusterd.adapters.machine.installation import (
    policies_directory,
    resource_agents_directory,
    share_directory,
)


def test_a_checkout_finds_its_own_files() -> None:
    assert share_directory() == Path(__file__).parents[4]
    assert (share_directory() / "systemd" / "haclusterd.service").is_file()
    assert policies_directory().is_dir()
    assert os.access(resource_agents_directory() / "dummy", os.X_OK)
    assert os.access(share_directory() / "shims" / "attrd_updater", os.X_OK)
