"""`crm gpu explain`, `lint` and `simulate-fail`: verbs about this machine's table of faults and its watcher."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from haclusterd.adapters.devices.gpu_watch import FAULTS_FILE, SIMULATED_FILE
from haclusterd.agents import gpu_fault_table as table
from haclusterd.agents.cluster_link import DEFAULT_SOCKET, SOCKET_VARIABLE
from haclusterd.agents.gpu_inventory import UUID
from haclusterd.model import durations
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response
from haclusterd.protocol.control import shown_report
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, exit_status, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.devices import (
    ExplainedFault,
    FaultExplanation,
    FaultTableCheck,
    PretendedState,
    SimulatedFault,
    TableProblem,
)

DIRECTORY = Path("/etc/haclusterd")
STATES = ("degraded", "drain", "failed", "unknown")
DEFAULT_SPAN_MS = 600_000
LONGEST_SPAN_MS = 86_400_000
NUMBERS_MAX = 100_000
"""Limit on the numbers of Xid errors."""


def _answer(items: Sequence[ReportItem], data: Json = None) -> Response:
    return Response("", exit_status(items), tuple(map(shown_report, items)), data)


def _word(arguments: Mapping[str, Json], name: str) -> str:
    value = arguments.get(name)
    return value if isinstance(value, str) else ""


def explain(arguments: Mapping[str, Json]) -> Response:
    """Return rows of the table in force on this machine (schema `haclusterd.gpu_faults/1`)."""
    own = DIRECTORY / FAULTS_FILE
    try:
        known = table.load(str(own))
        source = str(own) if own.exists() else "of the program"
        reports = []
    except table.TableError as error:
        known, source = table.load(), "of the program"
        reports = [report(Code.BAD_FAULT_TABLE, file=own, problem=str(error))]
    code = _word(arguments, "code").lower().removesuffix(":")
    if not code:
        shown = [_of_fault(fault, source) for fault in sorted(known.faults.values(), key=lambda each: each.number)]
        shown += [_of_xid(known, number, source) for number in sorted(known.xids)]
        return _answer(reports, as_json(FaultExplanation(tuple(shown))))
    number = table.code_of(code if code.startswith("xid-") else f"xid-{code.removeprefix('xid').strip()}")
    if code in known.faults:
        found = _of_fault(known.faults[code], source)
    elif number is not None and number < NUMBERS_MAX:
        found = _of_xid(known, number, source)
    else:
        remedy = did_you_mean(code, tuple(known.faults), "see: crm gpu explain")
        return _answer([report(Code.UNKNOWN_FAULT, name=repr(code), remedy=remedy)])
    return _answer(reports, as_json(FaultExplanation((found,))))


def _of_fault(fault: table.Fault, source: str) -> ExplainedFault:
    clear_after = 0 if fault.clear_after == table.STICKY else fault.clear_after
    return ExplainedFault(
        fault.name, fault.text, fault.signal, fault.severity, fault.scope, fault.raise_after, clear_after, fault.back,
        fault.rung, fault.advice, fault.is_watched, source,
    )  # fmt: skip


_ADVICE = {
    "reset-gpu": ("reset", "reset the device when it is free"),
    "restart-app": ("restart", "start the program again"),
    "restart-node": ("reboot", "boot the node"),
    "restart-vm": ("reboot", "boot the virtual machine"),
    "check-mechanicals": ("operator", "look at power cables and the slot"),
    "update-firmware": ("operator", "update driver and firmware"),
    "check-uvm": ("operator", "look at the module nvidia_uvm"),
    "workflow": ("operator", "docs.nvidia.com, Xid errors: this one has a workflow of its own"),
    "ignore": ("none", "nothing at once"),
    "contact-support": ("operator", "ask NVIDIA's support when it comes again"),
}


def _of_xid(known: table.Table, number: int, source: str) -> ExplainedFault:
    row = known.xid(number)
    rung, advice = _ADVICE[row.action]
    signal = f"Xid {number} in the kernel log or from NVML" + (f", {row.after} times" if row.after > 1 else "")
    back = "ten minutes without it; where the driver gives no verdict and the severity is drain or failed: a boot"
    if row.severity == table.APPLICATION:
        back = "at once: it is the program's"
    return ExplainedFault(
        f"xid-{number}", row.text or known.faults["xid-unknown"].text, signal, row.severity, "device", 1, 1,
        back if row.severity != table.IGNORED else "", rung, advice, is_watched=True, source=source,
    )  # fmt: skip


def lint(arguments: Mapping[str, Json]) -> Response:
    """Return the defects of a table of faults (schema `haclusterd.gpu_lint/1`); status 1: there are some."""
    named = _word(arguments, "file")
    path = Path(named or DIRECTORY / FAULTS_FILE)
    if not named and not path.exists():
        state = f"{path} does not exist, so the table that came with haclusterd is used as it is"
        return _answer([report(Code.NOTHING_TO_DO, state=state)])
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        return _answer([report(Code.NO_INPUT, file=path, problem=error.strerror or str(error), remedy="")])
    except UnicodeDecodeError:
        problems, rows = [(0, "not UTF-8")], 0
    else:
        problems, rows = table.lint(text), table.rows_in(text)
    checked = FaultTableCheck(str(path), rows, tuple(TableProblem(line, message) for line, message in problems))
    return Response("", int(bool(problems)), (), as_json(checked))


def simulate_fail(arguments: Mapping[str, Json]) -> Response:
    """Have this machine's watcher show a device in another state (schema `haclusterd.gpu_simulated/1`)."""
    directory = Path(os.environ.get(SOCKET_VARIABLE) or DEFAULT_SOCKET).parent
    path = directory / SIMULATED_FILE
    now = round(time.time() * 1000)  # noqa: TID251 (it ends at a moment of this machine's clock)
    wanted = _simulated(path, now)
    device = _word(arguments, "device")
    if device:
        if not UUID.match(device) and device not in wanted:
            problem = f"{device!r} is no UUID of a device: write it in full, as crm gpu list shows it"
            return _answer([report(Code.BAD_ARGUMENT, name="device", problem=problem)])
        state, span = _word(arguments, "state") or "failed", _word(arguments, "duration")
        try:
            span_ms = durations.parse(span) if span else DEFAULT_SPAN_MS
        except ValueError:
            span_ms = 0
        if state not in STATES:
            problem = f"{state!r} is none of: {', '.join(STATES)}"
            return _answer([report(Code.BAD_ARGUMENT, name="--state", problem=problem)])
        if not 1000 <= span_ms <= LONGEST_SPAN_MS:
            problem = f"{span!r}: from 1s to {durations.render(LONGEST_SPAN_MS)}"
            return _answer([report(Code.BAD_ARGUMENT, name="--for", problem=problem)])
        wanted.pop(device, None)
        if arguments.get("end") is not True:
            wanted[device] = {"state": state, "until_ms": now + span_ms}
        try:
            new = path.with_suffix(".new")
            new.write_text(json.dumps(wanted))
            new.replace(path)
        except OSError as error:
            remedy = "as root, on the node that has the device, while its daemon runs"
            problem = error.strerror or str(error)
            return _answer([report(Code.INPUT_OUTPUT, what=path, problem=problem, remedy=remedy)])
    shown = tuple(
        PretendedState(name, str(each["state"]), (int(str(each["until_ms"])) - now) // 1000)
        for name, each in sorted(wanted.items())
    )
    return _answer([], as_json(SimulatedFault(shown)))


def _simulated(path: Path, now: int) -> dict[str, dict[str, Json]]:
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return {
        name: each
        for name, each in (known.items() if isinstance(known, dict) else ())
        if isinstance(each, dict) and isinstance(each.get("until_ms"), int) and each["until_ms"] > now
    }


COMMANDS: Mapping[str, Callable[[Mapping[str, Json]], Response]] = {
    "explain": explain, "lint": lint, "simulate-fail": simulate_fail,
}  # fmt: skip
