"""A small file system of one's own, so that a disk can be full: tmpfs in a mount namespace."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

IN_NAMESPACE = "HACLUSTERD_PRIVATE_MOUNTS"
FILLER = "filler"
CHUNK = b"\0" * 65536
MNT_DETACH = 2


def enter_private_namespace() -> str:
    """Run this program again in a mount namespace of its own; return why not, where that is not possible."""
    if os.environ.get(IN_NAMESPACE):
        return ""
    if os.geteuid() != 0:
        return "a private file system takes root"
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        return probe.stderr.strip()
    environment = {**os.environ, IN_NAMESPACE: "1"}
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.orig_argv[1:]]
    return os.execvpe(command[0], command, environment)


def mount_small(path: Path, size: str) -> bool:
    """Mount an empty tmpfs; False where this process has no mounts of its own."""
    if not os.environ.get(IN_NAMESPACE):
        return False
    path.mkdir(parents=True, exist_ok=True)
    library = _library()
    arguments = (b"none", os.fsencode(path), b"tmpfs", ctypes.c_ulong(0), f"size={size},mode=0700".encode())
    if library.mount(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    return True


def unmount_keeping_files(path: Path) -> None:
    """Unmount, and leave a copy of what was there in its place, as evidence."""
    copy = path.with_name(path.name + ".copy")
    shutil.copytree(path, copy)
    if _library().umount2(os.fsencode(path), MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    path.rmdir()
    copy.rename(path)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def fill(directory: Path) -> None:
    """Take all room that is left."""
    with (directory / FILLER).open("ab", buffering=0) as filler:
        for chunk in (CHUNK, b"\0"):
            try:
                while True:
                    filler.write(chunk)
            except OSError:
                continue


def make_room(directory: Path) -> None:
    """Give the room back."""
    (directory / FILLER).unlink(missing_ok=True)
