"""A plan as msgpack, in parts: how the process that plans hands it to the one that walks it.

What many actions have in common (agents, parameters, meta-attributes) is written once and referred to by number. Parts
are small, so that reading one holds nobody up; they must be read in order. Only what the DC walks by is written:
placements, the summary of changes and Pacemaker's order, which are for people, are not.

Invariant: what `PlanReader` puts together is equal to what was written, whatever texts it holds; malformed parts raise
ValueError and nothing else. The reader trusts the writer to be the same version of this program.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgpack

from haclusterd.model.fencing import FailedOperation
from haclusterd.model.graph import ActionKind, GraphAction, Plan, TransitionGraph
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExitCode

ACTIONS_PER_PART: Final = 100


def plan_parts(plan: Plan) -> Iterator[bytes]:
    """Yield the parts of a plan's graph; `plan_head` is what follows them."""
    writer = _Writer()
    actions = list(plan.graph.actions.values())
    for start in range(0, len(actions), ACTIONS_PER_PART):
        yield writer.part(actions[start : start + ACTIONS_PER_PART])


def plan_head(plan: Plan) -> bytes:
    """Return what a plan says beside its graph."""
    return _pack([list(plan.warnings), plan.recheck_at, [list(each) for each in plan.expired_failures]])


class PlanReader:
    """Puts one plan together."""

    def __init__(self) -> None:
        self._agents: list[AgentReference] = []
        self._mappings: list[Mapping[str, str]] = []
        self._actions: dict[int, GraphAction] = {}

    def add(self, part: bytes) -> None:
        """Read the next part."""
        try:
            agents, mappings, actions = _unpack(part)
            self._agents.extend(AgentReference(*each) for each in agents)
            self._mappings.extend(dict(each) for each in mappings)
            for each in actions:
                action = self._action(each)
                self._actions[action.id] = action
        except (TypeError, IndexError) as error:
            raise ValueError(f"no part of a plan: {error}") from None

    def finish(self, head: bytes) -> Plan:
        """Return the plan that all parts and this head make."""
        try:
            warnings, recheck_at, expired = _unpack(head)
            return Plan(
                graph=TransitionGraph(self._actions),
                placements={},
                warnings=tuple(warnings),
                recheck_at=None if recheck_at is None else WallTime(recheck_at),
                expired_failures=tuple((NodeName(node), ResourceId(resource)) for node, resource in expired),
            )
        except TypeError as error:
            raise ValueError(f"no head of a plan: {error}") from None

    def _action(self, written: list[Any]) -> GraphAction:
        (number, kind, name, resource, node, inputs, interval_ms, agent, parameters, meta, timeout_ms, start_delay_ms,
         target_exit_code, digest, devices, reason, priority, incarnation, is_probe, instance, notification,
         router_node, causes, definition, resource_parameters, device_memory_mib) = written  # fmt: skip
        return GraphAction(
            id=number,
            kind=ActionKind(kind),
            name=name,
            resource=resource,
            node=node,
            inputs=tuple(inputs),
            interval_ms=interval_ms,
            agent=None if agent is None else self._agents[agent],
            parameters=self._mappings[parameters],
            meta=self._mappings[meta],
            timeout_ms=timeout_ms,
            start_delay_ms=start_delay_ms,
            target_exit_code=ExitCode(target_exit_code),
            digest=digest,
            devices=tuple(devices),
            device_memory_mib=device_memory_mib,
            reason=reason,
            priority=priority,
            target_incarnation=None if incarnation is None else Incarnation(*incarnation),
            is_probe=is_probe,
            instance=instance,
            notification=notification,
            router_node=router_node,
            causes=tuple(FailedOperation(*each) for each in causes),
            definition=definition,
            resource_parameters=None if resource_parameters is None else self._mappings[resource_parameters],
        )


class _Writer:
    """Remembers what it has written once."""

    def __init__(self) -> None:
        self._agents: dict[AgentReference, int] = {}
        self._mappings: dict[tuple[tuple[str, str], ...], int] = {}
        self._new_agents: list[list[str | None]] = []
        self._new_mappings: list[tuple[tuple[str, str], ...]] = []

    def part(self, actions: list[GraphAction]) -> bytes:
        """Write some actions."""
        self._new_agents, self._new_mappings = [], []
        written = [self._action(action) for action in actions]
        return _pack([self._new_agents, self._new_mappings, written])

    def _action(self, action: GraphAction) -> list[object]:
        incarnation = action.target_incarnation
        return [
            action.id,
            action.kind.value,
            str(action.name),
            action.resource,
            action.node,
            action.inputs,
            action.interval_ms,
            None if action.agent is None else self._agent(action.agent),
            self._mapping(action.parameters),
            self._mapping(action.meta),
            action.timeout_ms,
            action.start_delay_ms,
            int(action.target_exit_code),
            action.digest,
            action.devices,
            action.reason,
            action.priority,
            None if incarnation is None else [incarnation.boot_id, incarnation.token],
            action.is_probe,
            action.instance,
            action.notification,
            action.router_node,
            [[each.resource, each.operation, each.ending] for each in action.causes],
            action.definition,
            None if action.resource_parameters is None else self._mapping(action.resource_parameters),
            action.device_memory_mib,
        ]

    def _agent(self, agent: AgentReference) -> int:
        number = self._agents.get(agent)
        if number is None:
            number = self._agents[agent] = len(self._agents)
            self._new_agents.append([agent.standard, agent.provider, agent.type])
        return number

    def _mapping(self, mapping: Mapping[str, str]) -> int:
        key = tuple(mapping.items())
        number = self._mappings.get(key)
        if number is None:
            number = self._mappings[key] = len(self._mappings)
            self._new_mappings.append(key)
        return number


def _pack(value: object) -> bytes:
    packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    return packed


def _unpack(data: bytes) -> Any:
    return msgpack.unpackb(data, unicode_errors="surrogatepass")
