"""Before a start: proof that nothing uses the devices that it claims, except what shares them (safety.md §11).

A claim says who may use a device, not that nobody else does: a process of an earlier run of the resource may hang in
the driver, and an administrator may have started one by hand. So the node is asked repeatedly, for a bounded time, and
no agent runs before the answer is that the devices are free.
"""

from collections.abc import Iterable, Sequence

from haclusterd.machines.effects import LookAtDevices
from haclusterd.model.device_reports import DeviceUse, obstacle_to_start
from haclusterd.model.devices import DeviceId, NodeDevices
from haclusterd.model.ids import OrderKey
from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.model.ocf import ActionName
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass

DEVICES_FREE_MS = 8_000
"""How long a start waits for its devices, at most its own timeout. The driver frees the memory of a killed process
after 70 to 80 ms (docs/reference/gpu-hardware.md); of one that had mapped much, after seconds."""
LOOK_MS = 200
"""Pause between an answer and the next check."""
ANSWER_MS = 4_000
"""A check without an answer after this time counts as lost."""
FRESH_MS = 500
"""A proof is valid for a start or a recovery that begins within this time."""


@dataclass(slots=True)
class _Proof:
    began_at: Instant
    look_at: Instant
    asked_at: Instant | None = None
    """When the check under way was requested."""
    looks: int = 0
    obstacle: str = ""
    free_at: Instant | None = None


class DeviceProofs:
    """The proofs that starts of one node wait for."""

    def __init__(self) -> None:
        self._proofs: dict[OrderKey, _Proof] = {}

    @staticmethod
    def is_needed(order: Order) -> bool:
        """Return whether an order waits for proof; what migrates in uses its devices before its order starts."""
        return bool(order.devices) and order.action is ActionName.START

    def keep(self, orders: Iterable[OrderKey]) -> None:
        """Forget the proofs of all other orders."""
        kept = frozenset(orders)
        self._proofs = {key: proof for key, proof in self._proofs.items() if key in kept}

    def ask(self, order: Order, now: Instant) -> Sequence[LookAtDevices]:
        """Check an order's devices, if that is due."""
        proof = self._proofs.setdefault(order.key, _Proof(now, now))
        if proof.asked_at is not None and elapsed_ms(proof.asked_at, now) >= ANSWER_MS:
            proof.asked_at, proof.obstacle = None, proof.obstacle or _unanswered(order)
        if self.is_proven(order, now) or proof.asked_at is not None or now < proof.look_at:
            return ()
        proof.asked_at = now
        proof.looks += 1
        return (LookAtDevices(_key(order, proof), tuple(sorted(map(DeviceId, set(order.devices))))),)

    def answered(self, order: Order, key: str, use: DeviceUse, known: NodeDevices, now: Instant) -> None:
        """Take the answer to a check of an order's devices; the answer to any other check is ignored."""
        proof = self._proofs.get(order.key)
        if proof is None or proof.asked_at is None or key != _key(order, proof):
            return
        obstacles = [
            obstacle_to_start(use, name, order.resource, known.claims.get(name, ()))
            for name in map(DeviceId, order.devices)
        ]
        proof.asked_at = None
        proof.look_at = after(now, LOOK_MS)
        proof.obstacle = next(filter(None, obstacles), "")
        proof.free_at = None if proof.obstacle else now

    def is_proven(self, order: Order, now: Instant) -> bool:
        """Return whether an order may start now."""
        proof = self._proofs.get(order.key)
        return proof is not None and proof.free_at is not None and elapsed_ms(proof.free_at, now) <= FRESH_MS

    def failure(self, order: Order, now: Instant) -> str:
        """Return why an order gives up, with what uses its device; empty: it still waits."""
        proof = self._proofs.get(order.key)
        limit_ms = min(DEVICES_FREE_MS, order.timeout_ms)
        if proof is None or self.is_proven(order, now) or elapsed_ms(proof.began_at, now) < limit_ms:
            return ""
        return proof.obstacle or _unanswered(order)

    def deadline(self, now: Instant) -> Instant:
        """Return when the next check is due, or the one under way counts as lost."""
        due = [
            after(proof.asked_at, ANSWER_MS) if proof.asked_at is not None else proof.look_at
            for proof in self._proofs.values()
        ]
        return min((instant for instant in due if instant > now), default=NEVER)


def order_of(key: str) -> OrderKey:
    """Return the order whose devices a check is about."""
    return OrderKey(key.removeprefix(_PREFIX).rpartition("#")[0])


def is_of_a_start(key: str) -> bool:
    """Return whether a check was requested by this module."""
    return key.startswith(_PREFIX)


_PREFIX = "start:"


def _key(order: Order, proof: _Proof) -> str:
    return f"{_PREFIX}{order.key}#{proof.looks}"


def _unanswered(order: Order) -> str:
    return f"nobody has said in time whether device {order.devices[0]} is used"
