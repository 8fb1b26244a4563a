#!/usr/bin/env -S python3 -S -E
"""A program that resets one GPU, loads NVIDIA's driver again, or runs the administrator's test of a GPU; then it ends.

Run with settings as JSON; it writes one line of JSON: {"is_done": BOOL, "has_begun": BOOL, "text": TEXT}. What resets
or reloads holds a lock file for as long as anything that it has begun may still hit a device, whatever becomes of the
daemon: nobody may say meanwhile that a device is free. When it has succeeded it notes when (on the kernel log's clock),
so that errors from before that count no more, for later lives of the daemon too.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from typing import Any

HERE = os.path.dirname(os.path.realpath(__file__))
if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(HERE))))

from haclusterd.agents.bounded import TimedOutError, run_program  # noqa: E402 (found on the path above)
from haclusterd.agents.ocf import ActionError, NodeError  # noqa: E402 (likewise)

MODULES = ("nvidia_peermem", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")
"""In the order in which they can be removed."""
UNITS = ("nvidia-persistenced", "nvidia-dcgm", "nvidia-imex", "nvidia-fabricmanager")
"""Of the driver's own services those that hold its modules, in the order in which they are stopped."""
UNIT_TIMEOUT_S = 60.0
IN_USE = ("in use", "being used")
"""With what nvidia-smi declines to reset: it has done nothing then."""
NOTED_MAX = 64


def lock(path: str) -> int | None:
    """Take the lock, which what is started inherits; None: something of an earlier recovery still holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    os.set_inheritable(descriptor, True)  # noqa: FBT003 (its only parameter)
    return descriptor


def is_locked(path: str) -> bool:
    """Tell whether a recovery may still hit devices."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def recovered(path: str) -> dict[str, float]:
    """Return when devices (empty: all of them) were recovered last in this boot, on the kernel log's clock."""
    try:
        with open(path, "rb") as stream:
            found = json.loads(stream.read(1 << 16))
        return {str(name): float(at) for name, at in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def note(path: str, device: str) -> None:
    """Note that a device (empty: all of them) is recovered now."""
    noted = {**recovered(path), device: time.clock_gettime(time.CLOCK_MONOTONIC)}
    newest = dict(sorted(noted.items(), key=lambda item: item[1])[-NOTED_MAX:])
    with open(f"{path}.new", "w") as stream:
        json.dump(newest, stream)
    os.replace(f"{path}.new", path)


def reset(device: str, timeout_s: float) -> dict[str, Any]:
    """Reset a GPU; a service that only keeps it open is made to let go of it first."""
    shown = run_program(
        ["nvidia-smi", "-i", device, "--query-gpu=persistence_mode", "--format=csv,noheader"], timeout_s
    )
    is_persistent = shown.status == 0 and shown.output.strip() == "Enabled"
    if is_persistent:
        run_program(["nvidia-smi", "-i", device, "-pm", "0"], timeout_s)
    try:
        ended = run_program(["nvidia-smi", "--gpu-reset", "-i", device], timeout_s)
    finally:
        if is_persistent:
            run_program(["nvidia-smi", "-i", device, "-pm", "1"], timeout_s)
    words = f"{ended.output} {ended.errors}".lower()
    has_begun = ended.status == 0 or not any(word in words for word in IN_USE)
    return {"is_done": ended.status == 0, "has_begun": has_begun, "text": ended.last_words}


def reload(timeout_s: float, proc: str = "/proc") -> dict[str, Any]:
    """Load the driver's modules again, with its services stopped around that."""
    with open(f"{proc}/modules") as stream:
        loaded = {line.split(" ", 1)[0] for line in stream}
    removed = [name for name in MODULES if name in loaded]
    stopped = [unit for unit in UNITS if run_program(["systemctl", "is-active", unit], UNIT_TIMEOUT_S).status == 0]
    problem = ""
    try:
        for unit in stopped:
            run_program(["systemctl", "stop", unit], UNIT_TIMEOUT_S)
        for name in removed:
            ended = run_program(["modprobe", "-r", name], timeout_s)
            problem = problem or (f"modprobe -r {name}: {ended.last_words}" if ended.status else "")
    finally:
        for name in reversed(removed or ["nvidia"]):
            ended = run_program(["modprobe", name], timeout_s)
            problem = problem or (f"modprobe {name}: {ended.last_words}" if ended.status else "")
        for unit in reversed(stopped):
            run_program(["systemctl", "start", unit], UNIT_TIMEOUT_S)
    return {"is_done": not problem, "has_begun": True, "text": problem or "the driver is loaded again"}


def test(program: str, device: str, timeout_s: float) -> dict[str, Any]:
    """Run a program with the id of a device, which is all of CUDA that it sees."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": device, "NVIDIA_VISIBLE_DEVICES": device}
    ended = run_program([program, device], timeout_s, environment=environment)
    return {"is_done": ended.status == 0, "has_begun": True, "text": ended.last_words}


def carry_out(settings: dict[str, Any]) -> dict[str, Any]:
    """Do what is wanted; return what came of it."""
    device, timeout_s = settings["device"], settings["timeout_s"]
    if settings["what"] == "test":
        return test(settings["program"], device, timeout_s)
    if lock(settings["lock"]) is None:
        return {"is_done": False, "has_begun": False, "text": "an earlier recovery has not ended yet"}
    is_reset = settings["what"] == "reset"
    answer = reset(device, timeout_s) if is_reset else reload(timeout_s, settings.get("proc", "/proc"))
    if answer["is_done"]:
        note(settings["recovered"], device if is_reset else "")
    return answer


def main() -> int:
    """Do it, and say what came of it."""
    settings = json.loads(sys.argv[1])
    try:
        answer = carry_out(settings)
    except NodeError as error:
        # The first program of a reset and of a test is missing; a reload may have stopped services by then.
        answer = {"is_done": False, "has_begun": settings["what"] == "reload", "text": str(error)}
    except (TimedOutError, ActionError, OSError) as error:
        answer = {"is_done": False, "has_begun": True, "text": str(error)}
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
