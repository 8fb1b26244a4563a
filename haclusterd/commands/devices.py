"""Verbs about devices: which there are, how they are, who holds them, and what the loss of one would cost."""

import re
from collections.abc import Iterator, Mapping
from typing import Never

from haclusterd.cib.commands import BeginRecovery, DeviceChange, EndDeviceStorm, SteerDevice
from haclusterd.commands.context import Context, Event, LiveView
from haclusterd.commands.history.history import shown_event
from haclusterd.commands.names import find_node
from haclusterd.commands.outcome import Condition, Outcome, refusal
from haclusterd.commands.planning.injection import node_down
from haclusterd.commands.planning.planning import plan, standing
from haclusterd.commands.status.devices import claimable, remedies, storm_of, usable
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.change_kinds import ChangeKind
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.device_recovery import objection_to_recovery
from haclusterd.model.devices import (
    GPUS,
    Device,
    DeviceClaim,
    DeviceId,
    DeviceState,
    NodeDevices,
    RecoveryPhase,
    Rung,
    is_at_least,
    state_in_force,
)
from haclusterd.model.graph import Placement, Plan
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.remembered import HistoryQuery
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.devices import (
    DeviceCapacity,
    Devices,
    NodeOfDevices,
    ShownClaim,
    ShownDevice,
    ShownRecovery,
    SupposedFailure,
)
from haclusterd.verbs.answers.history import Events
from haclusterd.verbs.arguments import Arguments

RACK = "rack"
"""The node attribute that says in which rack a node is."""
TRIED_MAX = 64
"""Failures for which the scheduler is asked at once."""
DEFAULT_LIMIT = 50
_KINDS = (
    ChangeKind.DEVICES_CHANGED, ChangeKind.DEVICES_RELEASED, ChangeKind.DEVICE_STEERED,
    ChangeKind.DEVICE_RECOVERY_BEGUN, ChangeKind.DEVICE_RECOVERY_ENDED, ChangeKind.DEVICE_STORM,
)  # fmt: skip
SEARCHED = 2_000
"""Events about devices among which those of one are looked for."""

_MORE = re.compile(r", \d+ more\b")
"""How `cib/apply_devices.py` counts the devices of a report that it does not name."""

Found = tuple[NodeName, DeviceId]


def show_all(context: Context, arguments: Arguments) -> Outcome[Devices]:
    """Answer the devices of one node, or of all (schema `haclusterd.devices/1`)."""
    nodes = sorted(context.cib.status.devices)
    if arguments.word("node"):
        found = find_node(context, arguments.word("node"))
        if isinstance(found, ReportItem):
            return refusal(found)
        nodes = [name for name in nodes if name == found]
    devices = tuple(_shown(context.cib, (node, each)) for node in nodes for each in _in_order(context.cib, node))
    shown = tuple(_node(context.cib, node) for node in nodes)
    return Outcome(answer=Devices(context.now, shown, devices, storm_of(context.cib)))


def show(context: Context, arguments: Arguments) -> Outcome[Devices]:
    """Answer one device (schema `haclusterd.devices/1`)."""
    found = find_device(context.cib, arguments.word("device"))
    if isinstance(found, ReportItem):
        return refusal(found)
    shown = (_node(context.cib, found[0]),)
    return Outcome(answer=Devices(context.now, shown, (_shown(context.cib, found),), storm_of(context.cib)))


def find_device(cib: Cib, word: str) -> Found | ReportItem:
    """Look up a device by its id, the beginning of it, or `NODE:PCI-ADDRESS`."""
    known = [(node, name) for node in sorted(cib.status.devices) for name in _in_order(cib, node)]
    exact = [each for each in known if each[1] == word]
    if exact:
        return exact[0]
    fitting = [each for each in known if _fits(cib, each, word)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        choices = ", ".join(name for _, name in fitting[:5]) + (" ..." if len(fitting) > 5 else "")
        return report(Code.AMBIGUOUS, word=repr(word), choices=choices)
    remedy = did_you_mean(word, [name for _, name in known], "see: crm gpu list")
    return report(Code.NO_SUCH_DEVICE, device=repr(word), remedy=remedy)


def _fits(cib: Cib, each: Found, word: str) -> bool:
    node, name = each
    device = cib.status.devices[node].devices[name]
    if device.bus and not device.parent and word.lower() == f"{node}:{device.bus}".lower():
        return True
    return len(word) > 1 and name.lower().startswith(word.lower())


def _in_order(cib: Cib, node: NodeName) -> list[DeviceId]:
    devices = cib.status.devices[node].devices
    return sorted(devices, key=lambda name: (devices[name].bus, devices[name].parent, name))


def _node(cib: Cib, node: NodeName) -> NodeOfDevices:
    known = cib.status.devices[node]
    return NodeOfDevices(
        node, usable(known), len(claimable(known)), known.driver, known.trouble, known.reported_at
    )


def _shown(cib: Cib, found: Found) -> ShownDevice:
    node, name = found
    known = cib.status.devices[node]
    device, hold = known.devices[name], known.holds.get(name)
    return ShownDevice(
        id=name,
        node=node,
        kind=device.kind,
        bus=device.bus,
        model=device.model,
        memory_mib=device.memory_mib,
        link=device.link,
        numa=device.numa,
        parent=device.parent,
        profile=device.profile,
        is_partitioned=device.is_partitioned,
        has_ecc=device.has_ecc,
        state=state_in_force(known, name),
        seen=device.state,
        reasons=device.reasons,
        since=known.since.get(name, known.reported_at),
        is_accepted=name not in known.unaccepted,
        drained_by=hold.author if hold is not None else "",
        drain_reason=hold.reason if hold is not None else "",
        claims=tuple(ShownClaim(each.resource, each.memory_mib, each.is_over) for each in known.claims.get(name, ())),
        strangers=device.strangers,
        rung=device.rung,
        recovery=_recovery(known, name),
        remedies=tuple(remedies(node, known, device)),
    )


def _recovery(known: NodeDevices, name: DeviceId) -> ShownRecovery | None:
    found = known.recoveries.get(name)
    if found is None:
        return None
    return ShownRecovery(
        str(found.rung or ""), str(found.phase), found.author, found.at, found.reason, found.detail
    )


# -- what persons want ----------------------------------------------------------------------------------------------


def _steer(context: Context, arguments: Arguments, wanted: DeviceChange) -> Outcome[Never]:
    found = find_device(context.cib, arguments.word("device"))
    if isinstance(found, ReportItem):
        return refusal(found)
    node, name = found
    known = context.cib.status.devices[node]
    objection = _objection(known, name, wanted)
    if objection is not None:
        return refusal(objection)
    if _is_so(known, name, wanted):
        return Outcome(reports=(report(Code.NOTHING_TO_DO, state=_ALREADY[wanted].format(name)),))
    held = sorted(str(claim.resource) for claim in known.claims.get(name, ()))
    leaves = f"; {', '.join(held)} leaves it, unless gpu-health says that it can stay" if held else ""
    return Outcome(
        reports=(report(Code.REQUESTED, what=_DONE[wanted].format(name, leaves=leaves)),),
        commands=(SteerDevice(node, name, wanted, context.author, context.reason),),
        until=_is_empty(node, name) if wanted is DeviceChange.DRAIN else None,
        waiting_for=f"nothing to use {name}",
    )


_DONE = {
    DeviceChange.ACCEPT: "{} is accepted: resources may use it",
    DeviceChange.DRAIN: "{} is drained: nothing new starts on it{leaves}",
    DeviceChange.CLEAR: "{} is not drained any more",
    DeviceChange.FORGET: "{} is forgotten",
}
_ALREADY = {
    DeviceChange.ACCEPT: "{} is accepted already",
    DeviceChange.DRAIN: "{} is drained already",
    DeviceChange.CLEAR: "{} is not drained by a person",
    DeviceChange.FORGET: "",
}


def _is_so(known: NodeDevices, name: DeviceId, wanted: DeviceChange) -> bool:
    match wanted:
        case DeviceChange.ACCEPT:
            return name not in known.unaccepted and name not in known.recoveries
        case DeviceChange.DRAIN:
            return name in known.holds
        case DeviceChange.CLEAR:
            return name not in known.holds
        case DeviceChange.FORGET:
            return False


def _objection(known: NodeDevices, name: DeviceId, wanted: DeviceChange) -> ReportItem | None:
    recovery = known.recoveries.get(name)
    is_acting = recovery is not None and recovery.phase is RecoveryPhase.ACTING
    if is_acting and recovery is not None and wanted in (DeviceChange.ACCEPT, DeviceChange.FORGET):
        return report(Code.DEVICE_NOT_RECOVERED, device=name, problem=f"is being recovered: {recovery.rung}",
                      remedy=f"wait for its end: crm gpu show {name}")  # fmt: skip
    if wanted is not DeviceChange.FORGET:
        return None
    if not known.devices[name].is_missing:
        return report(Code.DEVICE_IN_USE, device=name, problem="it is there: only a missing device can be forgotten",
                      remedy=f"to use it no more: crm gpu drain {name}")  # fmt: skip
    claims = known.claims.get(name, ())
    if claims:
        return _held_by(name, claims[0])
    return None


def _held_by(name: DeviceId, claim: DeviceClaim) -> ReportItem:
    """Say who keeps a missing device from being forgotten, and what to do about that."""
    holder = claim.resource
    if not claim.is_over:
        return report(Code.DEVICE_IN_USE, device=name, problem=f"it is held by {holder}",
                      remedy=f"stop that first: crm resource stop {holder}")  # fmt: skip
    problem = f"{holder} has ended, and nobody can say whether it still uses the missing device"
    return report(Code.DEVICE_IN_USE, device=name, problem=problem, remedy="the next boot of its node ends that")


def _is_empty(node: NodeName, name: DeviceId) -> Condition:
    def until(cib: Cib, _live: LiveView | None) -> bool:
        known = cib.status.devices.get(node)
        return known is None or not known.claims.get(name)

    return until


def accept(context: Context, arguments: Arguments) -> Outcome[Never]:
    """Let resources use a new device."""
    return _steer(context, arguments, DeviceChange.ACCEPT)


def drain(context: Context, arguments: Arguments) -> Outcome[Never]:
    """Let nothing new use a device; waiting is until nothing holds it."""
    return _steer(context, arguments, DeviceChange.DRAIN)


def clear(context: Context, arguments: Arguments) -> Outcome[Never]:
    """End what `drain` began."""
    return _steer(context, arguments, DeviceChange.CLEAR)


def forget(context: Context, arguments: Arguments) -> Outcome[Never]:
    """Forget a missing device."""
    return _steer(context, arguments, DeviceChange.FORGET)


def reset(context: Context, arguments: Arguments) -> Outcome[Never]:
    """Have a device reset, or its node's driver loaded again; waiting is until it is proven well, or held."""
    found = find_device(context.cib, arguments.word("device"))
    if isinstance(found, ReportItem):
        return refusal(found)
    node, name = found
    rung = Rung.RELOAD if arguments.flag("reload") else Rung.RESET
    objection = objection_to_recovery(context.cib, node, name, rung, context.now, is_automatic=False)
    if objection is not None:
        remedy = _remedy(node, context.cib.status.devices[node], name, rung)
        return refusal(report(Code.DEVICE_NOT_RECOVERED, device=name, problem=objection.text, remedy=remedy))
    what = f"the reset of {name}" if rung is Rung.RESET else f"loading the driver of {node} again, for {name},"
    words = f"{what} is requested; the device is given out again when it has proven to be well"
    return Outcome(
        reports=(report(Code.REQUESTED, what=words),),
        commands=(BeginRecovery(node, name, rung, context.author, context.reason),),
        until=_is_recovered(node, name),
        waiting_for=f"{name} to be proven well, or held",
        afterwards=lambda cib, is_over: Outcome(reports=tuple(_not_recovered(cib, node, name, is_over=is_over))),
    )


def _not_recovered(cib: Cib, node: NodeName, name: DeviceId, *, is_over: bool) -> Iterator[ReportItem]:
    """Say what kept a device from being recovered, at the end of the wait; nothing, where it is proven to be well.

    Of a recovery that was not begun nothing is left but the history; but what was wrong before is wrong still.
    """
    known = cib.status.devices.get(node, NodeDevices())
    recovery, seen = known.recoveries.get(name), known.devices.get(name)
    if recovery is not None and recovery.phase is RecoveryPhase.HELD:
        detail = f": {recovery.detail}" if recovery.detail else ""
        yield report(Code.DEVICE_NOT_RECOVERED, device=name, problem=f"is held after {recovery.rung}{detail}",
                     remedy=f"see: crm gpu show {name}")  # fmt: skip
    elif not is_over:
        yield report(Code.DEVICE_NOT_RECOVERED, device=name, problem="has not proven yet that it is well",
                     remedy=f"see: crm gpu show {name}")  # fmt: skip
    elif seen is not None and (seen.rung or is_at_least(seen.state, DeviceState.UNKNOWN)):
        yield report(Code.DEVICE_NOT_RECOVERED, device=name, problem="is as it was: nothing was done to it",
                     remedy=f"see why: crm gpu history {name}")  # fmt: skip


def _remedy(node: NodeName, known: NodeDevices, name: DeviceId, rung: Rung) -> str:
    """Return what to type before a device can be recovered."""
    hit = [name] if rung is Rung.RESET else list(known.devices)
    held = [each for each in hit if any(not claim.is_over for claim in known.claims.get(each, ()))]
    if len(held) > 1:
        return f"it concerns all devices of {node}, and {len(held)} are held; let all leave: crm node standby {node}"
    return f"let what holds it leave first: crm gpu drain {held[0]} --wait" if held else f"see: crm gpu show {name}"


def _is_recovered(node: NodeName, name: DeviceId) -> Condition:
    def until(cib: Cib, _live: LiveView | None) -> bool:
        known = cib.status.devices.get(node)
        recovery = known.recoveries.get(name) if known is not None else None
        return recovery is None or recovery.phase is RecoveryPhase.HELD

    return until


def resume(context: Context, _arguments: Arguments) -> Outcome[Never]:
    """Let policies recover devices again after a storm."""
    storm = storm_of(context.cib)
    if not storm:
        return Outcome(reports=(report(Code.NOTHING_TO_DO, state="no storm keeps policies from recovering devices"),))
    return Outcome(
        reports=(report(Code.REQUESTED, what=f"devices are recovered by policy again ({storm})"),),
        commands=(EndDeviceStorm(context.author, context.reason),),
    )


# -- what happened --------------------------------------------------------------------------------------------------


def history(context: Context, arguments: Arguments) -> Outcome[Events]:
    """Answer the newest events about devices, oldest first (schema `haclusterd.events/1`)."""
    if context.live is None or context.past is None:
        return refusal(report(Code.NOT_OFFLINE, what="what happened to devices"))
    limit = arguments.integer("limit", DEFAULT_LIMIT)
    word, about = arguments.word("device"), None
    if word:
        found = find_device(context.cib, word)
        if isinstance(found, ReportItem):
            return refusal(found)
        about = found
    query = HistoryQuery(limit=SEARCHED if word else limit, since=None, until=None, nodes=(), resources=(),
                         kinds=tuple(map(str, _KINDS)))  # fmt: skip
    recalled = context.past.recall(query)
    events: list[Event] = [event for event in recalled.events if about is None or _concerns(event, about)]
    return Outcome(
        reports=(report(Code.HISTORY_INCOMPLETE, problem=recalled.problem),) if recalled.problem else (),
        answer=Events(
            now=context.now,
            since=context.live.started_at,
            left_out=recalled.left_out + max(0, len(events) - limit),
            events=tuple(shown_event(event) for event in events[-limit:]),
            next=str(recalled.end),
        ),
    )


def _concerns(event: Event, about: Found) -> bool:
    """Tell whether an event names a device, or may be about it: of many devices it names some and counts the rest."""
    node, name = about
    change = event.change
    is_counted = change.kind is ChangeKind.DEVICES_CHANGED and change.node == node and bool(_MORE.search(change.text))
    return name in change.text or is_counted


# -- what the loss of one would cost --------------------------------------------------------------------------------


def capacity(context: Context, arguments: Arguments) -> Outcome[DeviceCapacity]:
    """Answer what would not run any more, for each failure (schema `haclusterd.device-capacity/1`)."""
    kind = _failing(arguments)
    if isinstance(kind, ReportItem):
        return refusal(kind)
    cib = context.cib
    judged = standing(context)
    now_plan = plan(cib, context.now, options=judged.options)
    if isinstance(now_plan, ReportItem):
        return refusal(now_plan)
    before = _asking(cib, now_plan)
    cases = _cases(cib, kind)
    failures = []
    for fails, supposed in _supposed(cib, cases[:TRIED_MAX], kind, context.now):
        then = plan(supposed, context.now, options=standing(context, supposed).options)
        if isinstance(then, ReportItem):
            return refusal(then)
        failures.append(_cost(fails, before, _asking(cib, then), supposed, cib))
    failures.sort(key=lambda each: (-len(each.not_running), -len(each.moved), each.fails))
    return Outcome(
        reports=judged.reports,
        answer=DeviceCapacity(
            if_fails=kind,
            free=sum(_is_free(known, each) for known in cib.status.devices.values() for each in claimable(known)),
            waiting=tuple(sorted(name for name, (node, _) in before.items() if node is None)),
            failures=tuple(failures),
            left_out=max(0, len(cases) - TRIED_MAX),
        ),
    )


def _failing(arguments: Arguments) -> str | ReportItem:
    word, what = arguments.word("if_fails") or "gpu", arguments.word("what")
    if word in ("gpu", "node", RACK) and not what:
        return word
    if word == "1" and what:
        return what
    problem = f"{' '.join(filter(None, (word, what)))!r}: write 1 gpu, 1 node or rack; one at a time is tried"
    return report(Code.BAD_ARGUMENT, name="--if-fails", problem=problem)


def _is_free(known: NodeDevices, device: Device) -> bool:
    is_in_order = state_in_force(known, device.id) is DeviceState.OK
    return is_in_order and not known.claims.get(device.id) and not device.strangers


Cases = list[tuple[str, tuple[Found, ...], tuple[NodeName, ...]]]
"""What fails, in words; the devices that fail, and the nodes."""


def _cases(cib: Cib, kind: str) -> Cases:
    """Return what can fail and costs anything: devices that are held, nodes that are online and have devices."""
    online = [
        name
        for name in sorted(cib.status.devices)
        if name in cib.status.nodes and cib.status.nodes[name].state is NodeState.ONLINE
    ]
    if kind == "gpu":
        return [
            (f"{name} of {node}", ((node, name),), ())
            for node in online
            for name in _in_order(cib, node)
            if cib.status.devices[node].claims.get(name)
        ]
    if kind == "node":
        return [(name, (), (name,)) for name in online]
    racks: dict[str, list[NodeName]] = {}
    for name in online:
        racks.setdefault(_rack(cib, name), []).append(name)
    return [(f"rack {rack}", (), tuple(nodes)) for rack, nodes in sorted(racks.items()) if rack]


def _rack(cib: Cib, node: NodeName) -> str:
    entry = cib.configuration.nodes.get(node)
    found: Mapping[str, str] = effective(entry.attributes) if entry is not None else {}
    return found.get(RACK, "")


def _supposed(cib: Cib, cases: Cases, kind: str, now: WallTime) -> Iterator[tuple[str, Cib]]:
    for fails, devices, nodes in cases:
        supposed: Cib = cib
        for node, name in devices:
            supposed = _with_failed(supposed, node, name)
        for node in nodes:
            lost = node_down(supposed, node, now)
            assert not isinstance(lost, ReportItem), f"{kind}: {node} is a node of this CIB"
            supposed = lost
        yield fails, supposed


def _with_failed(cib: Cib, node: NodeName, name: DeviceId) -> Cib:
    known = cib.status.devices[node]
    device = replace(known.devices[name], state=DeviceState.FAILED, reasons=("supposed: it has failed",))
    made = replace(known, devices={**known.devices, name: device})
    return replace(cib, status=replace(cib.status, devices={**cib.status.devices, node: made}))


Places = Mapping[str, tuple[NodeName | None, Placement]]


def _asking(cib: Cib, found: Plan) -> Places:
    """Return where a plan has what asks for devices."""
    shown = {}
    for name, placement in found.placements.items():
        primitive = cib.configuration.resources.get(placement.base or name)
        if isinstance(primitive, Primitive) and _asks(cib, primitive):
            shown[str(name)] = (placement.next_on, placement)
    return shown


def _asks(cib: Cib, primitive: Primitive) -> bool:
    wanted = effective(expanded(primitive, cib.configuration).utilization).get(GPUS, "0")
    return wanted.isdigit() and int(wanted) > 0


def _cost(fails: str, before: Places, after: Places, supposed: Cib, cib: Cib) -> SupposedFailure:
    lost = [name for name, (node, _) in before.items() if node is not None and after.get(name, (None,))[0] is None]
    holders = _holders_of_failed(cib, supposed)
    moved = [
        name
        for name, (node, _) in before.items()
        if name not in lost and node is not None and (after[name][0] != node or name in holders)
    ]
    return SupposedFailure(fails, tuple(sorted(lost)), tuple(sorted(moved)))


def _holders_of_failed(cib: Cib, supposed: Cib) -> frozenset[str]:
    """Return who holds a device that is only supposed to have failed."""
    return frozenset(
        str(claim.resource)
        for node, known in supposed.status.devices.items()
        for name, device in known.devices.items()
        if device != cib.status.devices[node].devices[name]
        for claim in known.claims.get(name, ())
    )


VERBS = (
    carry_out_by("gpu.list", show_all, answers(Devices)),
    carry_out_by("gpu.show", show, answers(Devices)),
    carry_out_by("gpu.history", history, answers(Events)),
    carry_out_by("gpu.accept", accept, answers()),
    carry_out_by("gpu.drain", drain, answers()),
    carry_out_by("gpu.clear", clear, answers()),
    carry_out_by("gpu.forget", forget, answers()),
    carry_out_by("gpu.reset", reset, answers()),
    carry_out_by("gpu.resume", resume, answers()),
    carry_out_by("gpu.capacity", capacity, answers(DeviceCapacity)),
)
