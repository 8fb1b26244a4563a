"""What `crm_resource --why` answers: what runs, and what the configuration says against it."""

from collections.abc import Iterator, Sequence

from haclusterd.commands.context import Context
from haclusterd.commands.names import whole as outermost
from haclusterd.commands.status.resource_state import base_of, meta_flag
from haclusterd.commands.tools.foreign_rows import rows_of
from haclusterd.commands.tools.rows import CloneRow, Row, primitives_in
from haclusterd.formats.cib_xml.elements import element
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """What is said of one resource."""

    name: str
    """As Pacemaker calls it: with a number when it is an instance."""
    is_running: bool
    node: NodeName | None
    """Where it was asked for."""
    checked: ResourceId
    """What contains it, if anything does."""
    remains_stopped: bool
    is_not_promoted: bool
    is_unmanaged: bool
    locked_to: str

    def lines(self) -> Iterator[str]:
        """Yield it as text."""
        word = "running" if self.is_running else "not running"
        yield f"Resource {self.name} is {word}" + (f" on host {self.node}" if self.node else "")
        if self.remains_stopped:
            yield f"Configuration specifies '{self.checked}' should remain stopped"
        if self.is_not_promoted:
            yield f"Configuration specifies '{self.checked}' should not be promoted"
        if self.is_unmanaged:
            yield f"Configuration prevents cluster from stopping or starting unmanaged '{self.checked}'"
        if self.locked_to:
            yield f"'{self.checked}' is locked to node {self.locked_to} due to shutdown"

    def check(self) -> Iterator[str]:
        """Yield what the configuration says as XML."""
        yield from element("check", {
            "id": self.checked,
            "remain_stopped": "true" if self.remains_stopped else None,
            "promotable": "false" if self.is_not_promoted else None,
            "unmanaged": "true" if self.is_unmanaged else None,
            "locked-to": self.locked_to or None,
        })  # fmt: skip


class Reasons:
    """Of one CIB."""

    def __init__(self, context: Context) -> None:
        self._rows = rows_of(context)
        self._configuration = context.cib.in_force

    def of_all(self) -> list[Reason]:
        """Return what is said of everything that nothing contains."""
        return [self._reason(row.id, ResourceId(row.id), is_running=_is_active(row)) for row in self._rows.resources]

    def on_node(self, node: NodeName) -> list[Reason]:
        """Return what is said of what runs on a node."""
        return [
            self._reason(name, base_of(ResourceId(name)), is_running=True, node=node)
            for row in self._rows.resources
            for name, nodes in named_instances(row)
            if node in nodes
        ]

    def of_one(self, resource: ResourceId, node: NodeName | None) -> Reason:
        """Return what is said of one resource, on a node or at all."""
        inside = {row.child: f"{row.child}:0" for row in self._rows.resources if isinstance(row, CloneRow)}
        instances = (name for row in self._rows.resources for name, _ in named_instances(row))
        alone = inside.get(resource, resource)
        name = next((each for each in instances if resource == base_of(ResourceId(each))), alone)
        nodes = {each for row in self._rows.resources for each in _nodes_of(row, resource)}
        is_running = node in nodes if node is not None else bool(nodes)
        return self._reason(name, resource, is_running=is_running, node=node)

    def _reason(
        self, name: str, resource: ResourceId, *, is_running: bool, node: NodeName | None = None
    ) -> Reason:
        metas = [self._meta(resource), self._meta(outermost(self._configuration, resource))]
        roles = {meta.get("target-role", "").lower() for meta in metas}
        locked = next((row.is_locked for row in self._rows.primitives() if row.id == resource), "")
        return Reason(
            name, is_running, node, outermost(self._configuration, resource), "stopped" in roles,
            bool({"unpromoted", "slave"} & roles), not all(meta_flag(meta, "is-managed") for meta in metas), locked,
        )  # fmt: skip

    def _meta(self, name: ResourceId) -> dict[str, str]:
        resource = self._configuration.resources.get(name)
        if isinstance(resource, Primitive):
            return dict(self._rows.overview.meta(resource))
        defaults = effective(self._configuration.resource_defaults)
        return {"is-managed": "true", **defaults, **({} if resource is None else effective(resource.meta))}


def as_xml(reasons: Sequence[Reason], *, is_one: bool, node: NodeName | None) -> list[str]:
    """Return what is said as XML; of one resource, or of several."""
    if is_one:
        (only,) = reasons
        shown = {"running_on": node if only.is_running else None} if node else {"running": str(only.is_running).lower()}
        return list(element("reason", shown, list(only.check())))
    lines: list[str] = []
    for each in reasons:
        about = {"id": each.name, "running": str(each.is_running).lower(), "host": each.node}
        lines += element("resource", about, list(each.check()))
    return list(element("reason", {}, list(element("resources", {}, lines))))


def named_instances(row: Row) -> Iterator[tuple[str, tuple[NodeName, ...]]]:
    """Yield the primitives in a row with their nodes, instances as Pacemaker numbers them."""
    if not isinstance(row, CloneRow):
        yield from ((each.id, each.nodes) for each in primitives_in(row))
        return
    for number, each in enumerate(row.instances):
        yield from ((f"{base_of(part.id)}:{number}", part.nodes) for part in primitives_in(each))


def _nodes_of(row: Row, resource: ResourceId) -> Iterator[NodeName]:
    for each in primitives_in(row):
        if resource in (row.id, each.id) or (isinstance(row, CloneRow) and resource == row.child):
            yield from each.nodes


def _is_active(row: Row) -> bool:
    return any(each.is_active for each in primitives_in(row))
