"""Devices as text: a table of each node, all of one device, what a failure would cost, rows of the table of faults."""

from haclusterd.cli.render.terminal import Cell, Colour, Screen, ago, columns, folded
from haclusterd.reports.rendering import counted
from haclusterd.verbs.answers.devices import (
    DeviceCapacity,
    Devices,
    FaultExplanation,
    FaultTableCheck,
    NodeOfDevices,
    ShownDevice,
    SimulatedFault,
)

_COLOURS = {
    "ok": Colour.GREEN, "degraded": Colour.YELLOW, "unknown": Colour.YELLOW, "drain": Colour.YELLOW,
    "failed": Colour.RED,
}  # fmt: skip


def render_devices(screen: Screen, data: Devices) -> list[str]:
    """Write devices: one in full, several as a table for each node."""
    if not data.nodes:
        return ["no node has reported any device"]
    if len(data.devices) == 1:
        return _whole(screen, data.devices[0], data.nodes[0], data.now)
    lines: list[str] = []
    if data.storm:
        lines.append(screen.paint(f"no device is recovered by policy: {data.storm} (crm gpu resume)", Colour.RED))
    for node in data.nodes:
        devices = [each for each in data.devices if each.node == node.node]
        models = {_model(each): None for each in devices if each.kind != "mig"}
        lines += [*([""] if lines else []), *_head(screen, node, next(iter(models)) if len(models) == 1 else "")]
        rows = columns(screen, [_row(device, has_model=len(models) > 1) for device in devices], indent=2)
        for device, row in zip(devices, rows, strict=True):
            why = _why(device, node, data.now)
            lines += [row, *(folded(why, indent=" " * 6) if why else ())]
    return lines


def _head(screen: Screen, node: NodeOfDevices, model: str) -> list[str]:
    colour = None if node.usable == node.total and not node.trouble else Colour.YELLOW
    parts = [screen.paint(f"{node.usable}/{node.total} can be used", colour)]
    parts += [model] if model else []
    parts += [f"driver {node.driver}"] if node.driver else []
    trouble = [screen.paint(line, Colour.RED) for line in folded(node.trouble, indent="  ")]
    return [f"{screen.paint(node.node, Colour.BOLD)}: {', '.join(parts)}", *trouble]


def _model(device: ShownDevice) -> str:
    return f"{device.model} {device.memory_mib} MiB".strip()


def _row(device: ShownDevice, *, has_model: bool) -> list[Cell | str]:
    """Write one device: its model only where its node has several."""
    is_instance = device.kind == "mig"
    mode = "partitioned" if device.is_partitioned else _state(device)
    return [
        f"  {device.id}" if is_instance else device.id,
        f"MIG {device.profile}" if is_instance else device.bus,
        *(["" if is_instance else _model(device)] if has_model else ()),
        Cell(mode, _COLOURS.get(device.state)),
        _users(device),
    ]


def _state(device: ShownDevice) -> str:
    if not device.is_accepted and device.state == "unknown":
        return "not accepted"
    if device.recovery is not None:
        return {"acting": f"{device.recovery.rung} under way", "proving": "proving"}.get(device.recovery.phase, "held")
    return f"{device.state} (drained)" if device.drained_by else device.state


def _users(device: ShownDevice) -> str:
    shown = [f"{each.resource} (ending)" if each.is_over else each.resource for each in device.claims]
    return ", ".join([*shown, *(f"stranger {each}" for each in device.strangers)]) or "-"


def _why(device: ShownDevice, node: NodeOfDevices, now: int) -> str:
    """Say what is wrong with a device, where that is not what is said of its node."""
    if not device.reasons or device.reasons[0] == node.trouble:
        return ""
    return f"{device.reasons[0]} ({ago(device.since, now)})"


def _whole(screen: Screen, device: ShownDevice, node: NodeOfDevices, now: int) -> list[str]:
    ecc = "" if device.has_ecc is None else f", ECC {'on' if device.has_ecc else 'off'}"
    memory = f"{device.memory_mib} MiB{ecc}"
    state = screen.paint(device.state, _COLOURS.get(device.state))
    rows: list[tuple[str, str]] = [
        ("device", f"{screen.paint(device.id, Colour.BOLD)} of {device.node}"),
        ("model", f"{device.model}, {memory}"),
        ("address", f"{device.bus}" + (f", NUMA node {device.numa}" if device.numa >= 0 else "")),
    ]
    rows += [("part of", f"{device.parent}, profile {device.profile}")] if device.parent else []
    rows += [("NVLink", f"group {device.link}")] if device.link else []
    rows += [("MIG", "on: its instances are claimed")] if device.is_partitioned else []
    rows.append(("driver", node.driver or "unknown"))
    rows.append(("state", f"{state}, changed {ago(device.since, now)}"))
    rows += [("why", each) for each in device.reasons]
    rows += [] if device.is_accepted else [("accepted", "no: it came after its node's first report")]
    rows += [("wants", device.rung)] if device.rung else []
    rows += _recovery(device, now)
    if device.drained_by:
        reason = f": {device.drain_reason}" if device.drain_reason else ""
        rows.append(("drained", f"by {device.drained_by}{reason}"))
    for claim in device.claims:
        share = f", {claim.memory_mib} MiB of it" if claim.memory_mib else ""
        ending = ", which has ended; it is not proven yet that nothing uses it" if claim.is_over else ""
        rows.append(("held by", f"{claim.resource}{share}{ending}"))
    rows += [("stranger", each) for each in device.strangers]
    rows += [("to type", each) for each in device.remedies]
    return columns(screen, [[f"{name}:", value] for name, value in rows])


def _recovery(device: ShownDevice, now: int) -> list[tuple[str, str]]:
    recovery = device.recovery
    if recovery is None:
        return []
    what = f"{recovery.rung} by {recovery.author}" if recovery.rung else "it was well again by itself"
    phase = {
        "acting": "under way", "proving": "it has to prove that it is well", "held": "it waits for a person",
    }[recovery.phase]  # fmt: skip
    reason = f" ({recovery.reason})" if recovery.reason else ""
    rows = [("recovery", f"{what}{reason}, {ago(recovery.at, now)}: {phase}")]
    return [*rows, *([("its node says", recovery.detail)] if recovery.detail else [])]


def render_capacity(screen: Screen, data: DeviceCapacity) -> list[str]:
    """Write what each failure would cost, the dearest first."""
    lines = [f"{counted(data.free, 'device')} free and in order"]
    lines += [f"waiting as it is: {', '.join(data.waiting)}"] if data.waiting else []
    costly = [each for each in data.failures if each.not_running]
    for each in costly:
        names = screen.paint(", ".join(each.not_running), Colour.RED)
        lines.append(f"if {each.fails} fails, {counted(len(each.not_running), 'service')} would not run: {names}")
    harmless = len(data.failures) - len(costly)
    if not data.failures:
        lines.append(_NOTHING.get(data.if_fails, ""))
    elif harmless:
        every = "every service that runs now would run"
        what = f"in {counted(harmless, 'other case')} {every}" if costly else every
        moved = max((len(each.moved) for each in data.failures if not each.not_running), default=0)
        lines.append(screen.paint(f"{what}, {counted(moved, 'service')} moved at most", Colour.GREEN))
    if data.left_out:
        lines.append(f"{data.left_out} more failures were not tried")
    return lines


_NOTHING = {
    "gpu": "no device is held by a service",
    "node": "no node with devices is online",
    "rack": "no node with devices has the attribute rack: crm node attribute NODE set rack NAME",
}


def render_explanation(screen: Screen, data: FaultExplanation) -> list[str]:
    """Write rows of the table of faults: one in full, several as a list."""
    if len(data.faults) != 1:
        rows: list[list[Cell | str]] = [[each.name, each.severity, each.text] for each in data.faults]
        return columns(screen, rows)
    (fault,) = data.faults
    believed = f"after {counted(fault.raise_after, 'look')}" if fault.raise_after > 1 else "at once"
    over = "never by a look" if not fault.clear_after else f"after {counted(fault.clear_after, 'look')} without it"
    rows_: list[tuple[str, str]] = [
        ("fault", f"{screen.paint(fault.name, Colour.BOLD)}: {fault.text}"),
        ("seen by", fault.signal + ("" if fault.is_watched else " (nobody here looks for it)")),
        ("severity", f"{fault.severity}, of the {fault.scope}"),
        ("believed", f"{believed}; over {over}"),
        ("way back", fault.back),
        ("first step", fault.rung),
        ("advice", fault.advice),
        ("table", fault.source),
    ]
    lines = []
    for name, value in rows_:
        if value:
            lines += folded(value, indent=f"{name + ':':<12}", later=" " * 12, width=100)
    return lines


def render_table_check(_: Screen, data: FaultTableCheck) -> list[str]:
    """Write what is wrong with a table of faults."""
    lines = [f"{data.file}:{each.line}: {each.message}" if each.line else f"{data.file}: {each.message}"
             for each in data.problems]  # fmt: skip
    return lines or [f"{data.file}: no objections; {counted(data.rows, 'row')} changed"]


def render_simulated(_: Screen, data: SimulatedFault) -> list[str]:
    """Write which states are pretended."""
    if not data.devices:
        return ["no state is simulated on this node"]
    return [f"{each.device} is shown as {each.state} for {each.seconds_left} s more; to end it: crm gpu simulate-fail "
            f"{each.device} --end" for each in data.devices]  # fmt: skip
