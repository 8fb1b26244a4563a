"""A plan as the files that crm_simulate saves: its transition graph as XML (`-G`) and as a drawing (`-D`).

Both have the form of Pacemaker 2.1.5. The numbers of the actions and the order of what has no order are this
scheduler's own; an action waits only for what it would not have to wait for anyway.
"""

from collections.abc import Iterator, Mapping, Sequence

from haclusterd.formats.cib_xml.elements import element
from haclusterd.formats.cib_xml.status_writer import FEATURE_SET
from haclusterd.model.configuration import Configuration, Primitive, effective
from haclusterd.model.graph import ActionKind, GraphAction, Plan
from haclusterd.model.ids import NodeName, base_of
from haclusterd.model.ocf import ActionName
from haclusterd.model.templates import expanded
from haclusterd.wire.dot_text import quoted

_HEAD = {
    "cluster-delay": "60s", "stonith-timeout": "60s", "failed-stop-offset": "INFINITY",
    "failed-start-offset": "INFINITY", "batch-limit": "0", "transition_id": "0",
}  # fmt: skip
_TAGS = {ActionKind.RESOURCE: "rsc_op", ActionKind.PSEUDO: "pseudo_event"}
_NOTIFICATIONS = {
    "pre": "notify", "post": "notify", "confirmed-pre": "notified", "confirmed-post": "notified",
}  # fmt: skip
_ENDS = {"start": "running", "stop": "stopped", "promote": "promoted", "demote": "demoted"}
_STONITH, _UNNAMED = "stonith", frozenset({"on_node", "on_node_uuid", "name", "timeout"})


def _in_order(found: Plan) -> Sequence[GraphAction]:
    """Return the actions as Pacemaker's graph lists them; what is not listed comes last."""
    return [found.graph.actions[number] for number in dict.fromkeys((*found.listing, *sorted(found.graph.actions)))]


def key_of(action: GraphAction) -> str:
    """Name an action as Pacemaker's graph does: `web_start_0`, `web_pre_notify_stop_0`, `stonith-n1-reboot`."""
    if action.kind is ActionKind.FENCE:
        return action.key
    named = action.resource or ""
    if action.is_named(ActionName.CANCEL):
        return f"{named}_{ActionName.MONITOR}_{action.interval_ms}"
    if action.notification:
        when, _, what = action.notification.partition("-")
        return f"{named}_{when}_notify_{what}_0"
    return f"{named}_{action.name}_{action.interval_ms}" if named else f"{action.name}-{action.node}"


# As XML


def as_xml(numbers: Mapping[NodeName, str], found: Plan, shown: Configuration) -> str:
    """Return the transition graph; parameters of agents are those of the configuration that is shown.

    `numbers` are the ids of nodes.
    """
    actions = found.graph.actions
    synapses = (
        line for place, action in enumerate(_in_order(found))
        for line in _synapse(place, action, actions, numbers, shown)
    )  # fmt: skip
    return "".join(f"{line}\n" for line in element("transition_graph", _HEAD, synapses))


def _synapse(
    place: int, action: GraphAction, actions: Mapping[int, GraphAction], numbers: Mapping[NodeName, str],
    shown: Configuration,
) -> Iterator[str]:
    own = element(_tag(action), _head_of(action, numbers), _inside(action, numbers, shown))
    triggers = [
        line for number in action.inputs
        for line in element("trigger", {}, element(_tag(actions[number]), _head_of(actions[number], numbers)))
    ]  # fmt: skip
    attributes = {"id": str(place), "priority": str(action.priority) if action.priority else None}
    return element("synapse", attributes, [*element("action_set", {}, own), *element("inputs", {}, triggers)])


def _tag(action: GraphAction) -> str:
    return _TAGS.get(action.kind, "crm_event")


def _head_of(action: GraphAction, numbers: Mapping[NodeName, str]) -> dict[str, str]:
    task = _STONITH if action.kind is ActionKind.FENCE else _NOTIFICATIONS.get(action.name.split("_")[0], action.name)
    head = {"id": str(action.id), "operation": task, "operation_key": key_of(action)}
    if action.instance is not None and action.instance != action.resource:
        own, base = key_of(action), str(action.resource)
        head["internal_operation_key"] = f"{action.instance}{own.removeprefix(base)}"
    if action.node is not None and action.kind is not ActionKind.PSEUDO:
        head |= {"on_node": action.node, "on_node_uuid": numbers.get(action.node, action.node)}
        if action.router_node is not None:
            head["router_node"] = action.router_node
    return head


def _inside(action: GraphAction, numbers: Mapping[NodeName, str], shown: Configuration) -> Iterator[str]:
    """Yield what is inside an action in its own place: its primitive, and what its agent gets."""
    meta = {f"CRM_meta_{name.replace('-', '_')}": value for name, value in action.meta.items() if name not in _UNNAMED}
    if action.kind is ActionKind.FENCE:
        meta["CRM_meta_stonith_action"] = action.name
    if action.interval_ms:
        meta["CRM_meta_name"] = ActionName.MONITOR
    else:
        meta.pop("CRM_meta_interval", None)
    if action.node is not None and action.kind is not ActionKind.PSEUDO:
        meta |= {
            "CRM_meta_on_node": action.node, "CRM_meta_on_node_uuid": numbers.get(action.node, action.node),
        }  # fmt: skip
    if action.kind is not ActionKind.CLUSTER:
        meta["CRM_meta_timeout"] = str(action.timeout_ms)
    if action.agent is not None and action.resource is not None:
        long_id = action.instance if action.instance != action.resource else None
        agent = action.agent
        names = {"id": action.resource, "long-id": long_id, "class": agent.standard, "provider": agent.provider or None,
                 "type": agent.type}  # fmt: skip
        yield from element("primitive", names)
    meta["crm_feature_set"] = FEATURE_SET
    yield from element("attributes", {**dict(sorted(meta.items())), **_parameters(action, shown)})


def _parameters(action: GraphAction, shown: Configuration) -> dict[str, str]:
    """Return what an agent is given, as far as the configuration that is shown says it."""
    if action.resource is None or not action.parameters:
        return {}
    primitive = shown.resources.get(base_of(action.resource))
    written = effective(expanded(primitive, shown).parameters) if isinstance(primitive, Primitive) else {}
    return {name: written[name] for name in sorted(action.parameters) if name in written}


# As a drawing


def as_dot(found: Plan) -> str:
    """Return the transition graph in the language of Graphviz: what no agent does is orange."""
    actions = _in_order(found)
    lines = [' digraph "g" {']
    for action in actions:
        colour = "orange" if action.kind is ActionKind.PSEUDO else "black"
        lines.append(f'{_drawn(action)} [ style=bold color="green" fontcolor="{colour}"]')
    for action in actions:
        for number in action.inputs:
            lines.append(f"{_drawn(found.graph.actions[number])} -> {_drawn(action)} [ style = bold]")
    return "\n".join([*lines, "}", ""])


def _drawn(action: GraphAction) -> str:
    if action.kind is ActionKind.FENCE:
        return quoted(f"{_STONITH} '{action.name}' {action.node}")
    name = f"Cancel {key_of(action)}" if action.is_named(ActionName.CANCEL) else key_of(action)
    when, _, what = action.notification.partition("-")
    if when == "post":
        name = f"{action.resource}_post_notify_{_ENDS.get(what, what)}_0"
    return quoted(name if action.kind is ActionKind.PSEUDO or action.node is None else f"{name} {action.node}")
