"""What crm_simulate answers as XML (`--output-as=xml`), in the form of Pacemaker 2.1.5."""

import re
from collections.abc import Iterator, Sequence

from haclusterd.commands.tools.simulated_scores import Line
from haclusterd.commands.tools.simulated_steps import Step
from haclusterd.formats.cib_xml.elements import element
from haclusterd.model.graph import ActionKind, Change, ChangeKind, Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.verbs.answers.simulation import PlannedAction, PlannedChange, Simulation

_COUNTED = re.compile(r"Injecting attribute (.+)=(value\+\+|[0-9]+) into (/node_state) '(.+)'")
_SETTING = re.compile(r"Setting (quorum|watchdog): (.*)")
_XML_ACTIONS = {"Bringing": "Online", "Taking": "Offline"}


def plan_as_xml(
    planned: Simulation, found: Plan, modifications: Sequence[str], judged: tuple[str, Sequence[Line]],
    executed: Sequence[Step] | None,
) -> Iterator[str]:
    """Yield what is supposed, how nodes were chosen (`judged`: its element), what changes, and what is executed."""
    yield from modifications_as_xml(modifications)
    if judged[1]:
        yield from element(judged[0], {}, (line for each in judged[1] for line in each.xml()))
    fencings = fencings_of(planned, found)
    changes = [each for each in planned.summary if each.resource is not None]
    lines = [line for each, by in fencings for line in _fencing(each, by)]
    lines += [line for each, why in zip(changes, found.changes, strict=True) for line in _change(each, why)]
    yield from element("actions", {}, lines)
    if executed is not None:
        yield from element("transition", {}, (line for each in executed for line in _step(each, found)))


def _step(step: Step, found: Plan) -> Iterator[str]:
    yield from _action(step.action, found)
    yield from (line for each in step.injected for line in _modification(each))


def modifications_as_xml(modifications: Sequence[str]) -> Iterator[str]:
    """Yield what is supposed; nothing when nothing is."""
    matches = [_SETTING.fullmatch(each) for each in modifications]
    settings = {match[1]: match[2] for match in matches if match is not None}
    others = [each for each, match in zip(modifications, matches, strict=True) if match is None]
    if modifications:
        yield from element("modifications", settings, (line for each in others for line in _modification(each)))


def _modification(text: str) -> Iterator[str]:
    counted = _COUNTED.fullmatch(text)
    if counted is not None:
        name, value, path, node = counted.groups()
        return element("inject_attr", {"name": name, "value": value, "node_path": path, "cib_node": node})
    verb, kind, rest = text.partition(" node ")
    if not kind:
        verb, kind, rest = text.partition(" ticket ")
    if not kind:
        return element("inject_spec", {"spec": text.removeprefix("Injecting ").removesuffix(" into the configuration")})
    name, _, end = rest.partition(" ")
    if kind == " node ":
        return element("modify_node", {"action": _XML_ACTIONS.get(verb, verb), "node": name})
    return element("modify_ticket", {"action": f"{verb} {end}".strip(), "ticket": name})


def fencings_of(planned: Simulation, found: Plan) -> list[tuple[PlannedChange, str]]:
    """Return the fencings in Pacemaker's order, the last node first, with the resource that runs a guest node."""
    actions = found.graph.actions
    places = {(actions[number].node, actions[number].name): at for at, number in enumerate(found.listing)}
    fencings = [each for each in planned.summary if each.resource is None]
    in_order = sorted(fencings, key=lambda each: places.get((NodeName(each.node or ""), each.op or ""), len(places)))
    connections = (found.placements.get(ResourceId(each.node or "")) for each in in_order)
    launchers = ("" if each is None else each.guest_of or "" for each in connections)
    return list(zip(in_order, launchers, strict=True))


def is_guest_mark(action: PlannedAction, found: Plan) -> bool:
    """Tell whether it is the mark that a guest node was fenced, which nothing carries out."""
    return action.kind == "fence" and found.graph.actions[action.id].kind is ActionKind.PSEUDO


def _fencing(change: PlannedChange, launcher: str) -> Iterator[str]:
    node = f"{change.node} (resource: {launcher})" if launcher else change.node
    return element("node_action", {"task": f"Fence ({change.op})", "node": node, "reason": change.reason})


def _change(change: PlannedChange, why: Change) -> Iterator[str]:
    is_of_two = change.from_ is not None and change.action not in ("stop", "start")
    is_of_two = is_of_two and (change.action != "recover" or change.from_ != change.to)
    attributes: dict[str, Json] = {
        "action": change.action, "resource": change.resource, "role": change.from_role,
        "next-role": change.to_role if change.to_role != change.from_role and change.to is not None else None,
        "node": None if is_of_two else change.from_ or change.to, "source": change.from_ if is_of_two else None,
        "dest": change.to if is_of_two and change.to != change.from_ else None, "reason": cause(why) or None,
        "blocked": "true" if why.is_blocked else None,
    }  # fmt: skip
    return element("rsc_action", {key: str(value) for key, value in attributes.items() if value is not None})


def _action(action: PlannedAction, found: Plan) -> Iterator[str]:
    if is_guest_mark(action, found):
        return element("pseudo_action", {"task": f"stonith-{action.node}-{action.task}", "node": action.node})
    if action.kind == "fence":
        return element("fencing_action", {"target": action.node, "op": action.task})
    if action.kind == "pseudo":
        return element("pseudo_action", {"task": pseudo(action, found)})
    if action.kind == "cluster":
        return element("cluster_action", {"task": action.task, "node": action.node, "id": action.resource})
    every = None if action.interval is None else str(action.interval)
    return element(
        "rsc_action", {"resource": found.listing[action.id], "op": action.task, "node": action.node, "interval": every}
    )


def cause(change: Change) -> str:
    """Say by what else a change is caused, as Pacemaker does; a stop that nothing causes is for want of a node."""
    return change.cause or ("node availability" if change.kind is ChangeKind.STOP else "")


def pseudo(action: PlannedAction, found: Plan) -> str:
    """Name what no agent does: `site_start_0`."""
    return action.task if action.resource is None else f"{found.listing[action.id]}_{action.task}_0"
