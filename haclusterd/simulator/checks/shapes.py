"""How many copies of each service people have wanted, version after version of the configuration: for the judges.

A resource may change its shape while it is active: a primitive becomes a clone, or a clone's `clone-max` another one.
What an order begins is measured by the versions from its issue on: by the one of its issue, since the change need not
have been known to who issued it, and by every later one up to now. So what the old shape allows is allowed only to what
was ordered while that was in force; what is ordered afterwards is measured by the new shape alone, whatever still runs.
What is started right after it was removed, by an order that was on its way then, is measured by its last shape: it
stops again, and nothing else runs in its place.

It is read from what people write, and shares no code with the scheduler or `apply`. Source: Pacemaker Explained, "Clone
Options", "Promotable Clones".
"""

from collections.abc import Mapping

from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Clone, Configuration, effective
from haclusterd.model.ids import OrderKey, ResourceId
from haclusterd.model.records import dataclass
from haclusterd.model.rows import read_boolean


@dataclass(frozen=True, slots=True)
class Limits:
    """How many copies of a primitive are wanted at most."""

    copies: int = 0
    """Under the primitive's own name, each on another node."""
    instances: int = 0
    """Of a unique clone: instances have numbers below this, and each runs once."""
    promoted: int = 0
    """Under whatever names."""
    promoted_on_node: int = 0
    """Of them on one node."""

    def most(self, other: "Limits") -> "Limits":
        """Return what one or the other allows."""
        return Limits(
            max(self.copies, other.copies),
            max(self.instances, other.instances),
            max(self.promoted, other.promoted),
            max(self.promoted_on_node, other.promoted_on_node),
        )


NOTHING = Limits()
Version = Mapping[ResourceId, Limits]


def limits_of(configuration: Configuration, nodes: int) -> dict[ResourceId, Limits]:
    """Return the limits of each primitive; `nodes`: so many members can run something."""
    parents, defaults = configuration.parents(), effective(configuration.resource_defaults)
    found: dict[ResourceId, Limits] = {}
    for primitive in configuration.primitives():
        outermost = primitive.id
        while outermost in parents:
            outermost = parents[outermost]
        clone = configuration.resources[outermost]
        if not isinstance(clone, Clone):
            found[primitive.id] = Limits(copies=1)
            continue
        meta = {**defaults, **effective(clone.meta)}
        most = int(meta.get("clone-max", nodes))
        is_promotable = read_boolean(meta.get("promotable", "false"))
        promoted, on_node = (int(meta.get(name, 1)) if is_promotable else 0
                             for name in ("promoted-max", "promoted-node-max"))  # fmt: skip
        # By default instances differ where several may share a node (Pacemaker 3).
        is_unique = read_boolean(meta.get("globally-unique", str(int(meta.get("clone-node-max", 1)) > 1).lower()))
        copies, instances = (0, most) if is_unique else (most, 0)
        found[primitive.id] = Limits(copies, instances, promoted, on_node)
    return found


class Shapes:
    """Every version that was in force, and at which one each order was issued."""

    def __init__(self) -> None:
        self._versions: list[Version] = [{}]
        self._read_from: tuple[object, ...] = (None, None, None)
        self._issued_at: dict[OrderKey, int] = {}

    def configured(self, cib: Cib) -> None:
        """Take note of the configuration that is in force in the newest CIB, and of how many members there are."""
        read_from = cib.configuration, cib.status.rules, cib.members
        if all(one is other for one, other in zip(read_from, self._read_from, strict=True)):
            return
        self._read_from = read_from
        limits = limits_of(cib.in_force, sum(not member.is_witness for member in cib.members.values()))
        if limits != self._versions[-1]:
            self._versions.append(limits)

    def issued(self, order: OrderKey) -> None:
        """Take note of an order that is issued now."""
        self._issued_at.setdefault(order, len(self._versions) - 1)

    def allowed(self, primitive: ResourceId, order: OrderKey | None) -> Limits:
        """Return what has been allowed at some instant since an order was issued; None: what is allowed now."""
        since = len(self._versions) - 1 if order is None else self._issued_at.get(order, len(self._versions) - 1)
        if order is not None and primitive not in self._versions[since]:
            since = max(0, since - 1)
        limits = NOTHING
        for version in self._versions[since:]:
            limits = limits.most(version.get(primitive, NOTHING))
        return limits
