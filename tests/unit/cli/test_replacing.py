"""Files that are written as a whole: what fails leaves nothing half written."""

import errno
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from haclusterd.cli.replacing import replace_file, write_new_file
from haclusterd.cli.settings import Settings


def full(file: BinaryIO) -> None:
    file.write(b"the first half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_new_file_that_cannot_be_written_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        write_new_file(tmp_path / "new", full)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_already_stays(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_text("old")
    with pytest.raises(FileExistsError):
        write_new_file(path, lambda file: file.write(b"new"))
    assert path.read_text() == "old"
    replace_file(path, b"new")
    assert (path.read_text(), [each.name for each in tmp_path.iterdir()]) == ("new", ["old"])


def test_settings_that_cannot_be_kept_leave_the_old_ones(tmp_path: Path, full_disk: None) -> None:
    settings = Settings(str(tmp_path / "crm.conf"), {"editor": "nano"})
    with pytest.raises(OSError, match="File too large"):
        settings.save()
    assert list(tmp_path.iterdir()) == []
