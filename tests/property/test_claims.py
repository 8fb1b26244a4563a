"""Whatever is committed in whatever order, claims add up, and end by proof or by a boot alone (safety.md §11).

But for a resource's first claim on a device, of an order that was not begun.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.model.activity import may_be_active_or_begin
from haclusterd.model.devices import Device, DeviceClaim, DeviceId
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import Incarnation, OrderKey, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import Order, ResultKind
from haclusterd.model.records import replace
from tests.examples import examples
from tests.unit.situations import N2, Cluster, order, probe, result

A, B = DeviceId("GPU-a"), DeviceId("GPU-b")
RESOURCES = tuple(map(ResourceId, ("db", "web", "llm")))
STEPS = ("start", "start", "stop", "probe", "answer", "answer", "release", "restart", "boot", "lose", "fence",
         "clean up", "forget", "publish", "leave")  # fmt: skip
ANSWERS = {
    "start": (ExitCode.OK, ExitCode.ERROR, ExitCode.NOT_RUNNING),
    "stop": (ExitCode.OK, ExitCode.ERROR),
    "monitor": (ExitCode.OK, ExitCode.NOT_RUNNING),
}


class RandomNode:
    """The node n2 under random commands, step by step."""

    def __init__(self, draw: st.DataObject) -> None:
        self.draw = draw
        self.cluster = Cluster()
        self.life = Incarnation("boot1", "1")
        self.boots = self.serial = 1
        self.not_begun: OrderKey | None = None
        """The order that the last step said was not begun."""
        self.firsts: set[tuple[DeviceId, OrderKey]] = set()
        """Orders that claim a device on which their resource has no claim yet."""
        self.cluster.put(commands.Join(N2, self.life))
        self.publish()

    def one_of(self, values: tuple[Any, ...]) -> Any:
        return self.draw.draw(st.sampled_from(values))

    def step(self) -> str:
        """Let something happen; return what."""
        self.serial += 1
        self.not_begun = None
        what = self.one_of(STEPS)
        resource, put = self.one_of(RESOURCES), self.cluster.put
        if what == "start":
            devices = self.one_of(((A,), (B,), (A, B)))
            made = replace(self.ordered(ActionName.START, resource), devices=devices,
                           device_memory_mib=self.one_of((0, 40, 60)))  # fmt: skip
            standing = self.cluster.cib.status.devices[N2].claims
            self.firsts |= {
                (name, made.key)
                for name in devices
                if all(each.resource != resource for each in standing.get(name, ()))
            }
            put(commands.IssueOrders(self.cluster.term, (made,)))
        elif what == "stop":
            put(commands.IssueOrders(self.cluster.term, (self.ordered(ActionName.STOP, resource),)))
        elif what == "probe":
            asked = replace(probe(f"k{self.serial}", resource=resource), incarnation=self.life)
            put(commands.IssueOrders(self.cluster.term, (asked,)))
        elif what == "answer":
            self.answer()
        elif what in ("restart", "boot"):
            self.boots += what == "boot"
            self.life = Incarnation(f"boot{self.boots}", str(self.serial))
            put(commands.Join(N2, self.life))
        elif what == "release":
            self.release()
        elif what == "publish":
            self.publish()
        else:
            put(self.of_node(what, resource))
        return str(what)

    def was_unused(self, device: DeviceId, claim: DeviceClaim) -> bool:
        """Tell whether the last step said that no agent has run for a claim that was its resource's first."""
        return claim.order == self.not_begun and (device, claim.order) in self.firsts

    def ordered(self, action: ActionName, resource: ResourceId) -> Order:
        return order(f"k{self.serial}", action, resource=resource, incarnation=self.life)

    def of_node(self, what: str, resource: ResourceId) -> commands.Command:
        return {
            "lose": commands.Lost(N2, self.life, self.cluster.term, "silent"),
            "fence": commands.Fenced(N2, self.life, None, FenceOutcome.CONFIRMED, ""),
            "clean up": commands.CleanUp(resource, None, reprobe=True),
            "forget": commands.ForgetHistory(N2, resource),
            "leave": commands.Leaving(N2, self.life),
        }[what]

    def answer(self) -> None:
        opened = tuple(self.cluster.status(N2).orders.values())
        if not opened:
            return
        chosen = self.draw.draw(st.sampled_from(opened))
        code = self.one_of(ANSWERS[str(chosen.action)])
        kind = self.one_of((ResultKind.FINISHED, ResultKind.FINISHED, ResultKind.NOT_BEGUN, ResultKind.UNKNOWN))
        self.not_begun = chosen.key if kind is ResultKind.NOT_BEGUN else None
        item = result(chosen.key, str(chosen.action), code, kind=kind, call_id=self.serial,
                      target=chosen.target_exit_code)  # fmt: skip
        self.cluster.put(commands.RecordResults(N2, self.life, (replace(item, resource=chosen.resource),)))

    def release(self) -> None:
        claims = tuple(
            commands.ProvenClaim(name, claim.resource, claim.order)
            for name, standing in self.cluster.cib.status.devices[N2].claims.items()
            for claim in standing
        )
        self.cluster.put(commands.ReleaseDevices(N2, self.life, claims))

    def publish(self) -> None:
        shown = [name for name in (A, B) if self.serial == 1 or self.draw.draw(st.booleans())]
        seen = tuple(Device(name, memory_mib=100) for name in shown)
        self.cluster.put(commands.PublishDevices(N2, self.life, seen))


@settings(max_examples=examples(150), deadline=None)
@given(draw=st.data(), length=st.integers(1, 40))
def test_claims_add_up_and_end_by_proof_or_a_boot_alone(draw: st.DataObject, length: int) -> None:
    node = RandomNode(draw)
    for _ in range(length):
        before = node.cluster.cib.status.devices[N2].claims
        what = node.step()
        known, status = node.cluster.cib.status.devices[N2], node.cluster.status(N2)
        for name, claims in known.claims.items():
            assert len({claim.resource for claim in claims}) == len(claims)
            assert len(claims) == 1 or all(claim.memory_mib for claim in claims)
            assert sum(claim.memory_mib for claim in claims) <= known.devices[name].memory_mib
            for claim in claims:
                assert claim.is_over or may_be_active_or_begin(status, claim.resource), "what ended is over"
        for name, claims in before.items():
            kept = {claim.resource for claim in known.claims.get(name, ())}
            left = [each for each in claims if each.resource not in kept and not node.was_unused(name, each)]
            assert what in ("release", "boot") or not left, "nothing but proof and a boot ends a claim"
            assert what == "boot" or all(claim.is_over for claim in left)
