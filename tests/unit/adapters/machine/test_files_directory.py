import stat
from pathlib import Path

import pytest

from haclusterd.adapters.machine.files_directory import FilesDirectory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_directory_and_files_are_private(tmp_path: Path) -> None:
    files = FilesDirectory(tmp_path / "new" / "store")
    files.append("journal", b"a")
    files.replace("snapshot", b"b")
    files.lock()
    assert mode(tmp_path / "new" / "store") == 0o700
    assert {mode(path) for path in (tmp_path / "new" / "store").iterdir()} == {0o600}
    files.close()


def test_too_little_room_is_reported(tmp_path: Path) -> None:
    files = FilesDirectory(tmp_path)
    files.require_room(1)
    with pytest.raises(OSError, match=r"No space left on device.*" + str(tmp_path)):
        files.require_room(1 << 62)


def test_appends_follow_each_other_also_after_a_replacement(tmp_path: Path) -> None:
    files = FilesDirectory(tmp_path)
    files.append("journal", b"one")
    files.append("journal", b"two")
    files.sync("journal")
    assert files.read("journal") == b"onetwo"
    files.replace("journal", b"new")
    files.append("journal", b"er")
    files.sync("journal")
    assert files.read("journal") == b"newer"
    files.close()


def test_what_is_not_there_reads_as_none_and_can_be_removed(tmp_path: Path) -> None:
    files = FilesDirectory(tmp_path)
    assert files.read("journal") is None
    files.remove("journal")
    files.append("journal", b"x")
    files.remove("journal")
    assert files.read("journal") is None
    assert files.describe("journal") == str(tmp_path / "journal")
    files.close()


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    first, second = FilesDirectory(tmp_path), FilesDirectory(tmp_path)
    first.lock()
    first.lock()
    with pytest.raises(BlockingIOError):
        second.lock()
    first.close()
    second.lock()
    second.close()


def test_a_failed_replacement_leaves_the_old_content(tmp_path: Path) -> None:
    files = FilesDirectory(tmp_path)
    files.replace("snapshot", b"old")
    (tmp_path / "snapshot.new").mkdir()
    with pytest.raises(OSError, match="snapshot"):
        files.replace("snapshot", b"new")
    assert files.read("snapshot") == b"old"
    files.close()
