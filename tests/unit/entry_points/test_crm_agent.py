"""`crm agent` without the superuser's rights: where an agent's records are kept."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from haclusterd.entry_points.crm_agent import RefusedError, private_directory


def test_a_directory_that_is_missing_is_made_for_its_user_alone(tmp_path: Path) -> None:
    made = private_directory(tmp_path / "records")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert private_directory(made) == made


def _writable_by_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o1777)


def _link(path: Path) -> None:
    target = path.with_name("target")
    target.mkdir(mode=0o700)
    path.symlink_to(target)


@pytest.mark.parametrize("prepare", [_writable_by_all, _link, Path.touch])
def test_what_somebody_else_may_have_written_is_refused_by_name(
    prepare: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "records"
    prepare(path)
    with pytest.raises(RefusedError) as refused:
        private_directory(path)
    assert f"others can write to {path}" in str(refused.value.item.message)
