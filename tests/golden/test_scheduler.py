"""Plans as text: a cluster, what happens to it, what the scheduler makes of that, and why.

cluster n1 n2 n3 [witness=w] [joined=n1,n2]   form it; nodes join
configure                                     crm text; replaces the configuration
settle                                        carry out plans until nothing is left; shows what was done
plan [at=+60s]                                the graph, the verdicts, the warnings
explain web                                   one primitive's scores, and of its promotion
win web n1                                    what would have to change for that node to be chosen
lose n1 | fence n1 | join n1 [same-boot] | leave n1 | standby n1 [off] | attribute n1 name=value
fail web n1 monitor/10s 7 "why"               a recurring monitor fails
order start web n1 | end 0 ["why"] | unknown  the first action of that name is ordered; then it ends
cleanup web
devices n1 8 [link=4] [model=H200] [memory=143771]   the node reports so many, each NVLink group of so many (0: none)
device n1 2 failed "xid-79: ..."              the node reports another state of its third one
steer n1 2 drain                              a person drains it (clear, accept, forget)
keep | free n1                                stopped holders go on using their devices; until now
claims                                        who holds what
"""

from pathlib import Path

import pytest

from haclusterd.cib import commands
from haclusterd.model import durations, scores
from haclusterd.model.devices import Device, DeviceId, DeviceState
from haclusterd.model.graph import Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExitCode
from haclusterd.model.orders import Order, ResultKind
from haclusterd.model.records import dataclass, field, replace
from tests.golden.datadriven import Directive, run_file
from tests.scheduled_clusters import ScheduledCluster, action_line, configured

FILES = sorted(Path(__file__).parent.joinpath("scheduler").glob("*.txt"))


@dataclass(slots=True)
class Scenario:
    cluster: ScheduledCluster = field(default_factory=ScheduledCluster)
    orders: list[Order] = field(default_factory=list)

    def handle(self, directive: Directive) -> str:
        return getattr(self, f"do_{directive.command}")(directive, *directive.words) or ""

    def do_cluster(self, _: Directive, *words: str) -> None:
        options = dict(word.split("=") for word in words if "=" in word)
        joined = options["joined"].split(",") if "joined" in options else None
        witnesses = [options["witness"]] if "witness" in options else []
        names = [word for word in words if "=" not in word]
        self.cluster = ScheduledCluster.of(names, witnesses=witnesses, joined=joined)

    def do_configure(self, directive: Directive) -> None:
        self.cluster.configure(configured(directive.input))

    def do_settle(self, _: Directive) -> str:
        return "\n".join(self.cluster.settle()) or "nothing"

    def do_plan(self, _: Directive, *words: str) -> str:
        for word in words:
            self.cluster.now = WallTime(self.cluster.now + durations.parse(word.removeprefix("at=+")))
        return written(self.cluster.plan(), self.cluster.now)

    def do_explain(self, _: Directive, resource: str) -> str:
        placement = self.cluster.plan(is_explaining=True).placements[ResourceId(resource)]
        lines = [f"{resource} {placement.verdict}"]
        for score in placement.scores:
            parts = ", ".join(f"{scores.render(part.score)} {part.source}" for part in score.addends)
            objection = f" NOT: {score.objection}" if not score.is_eligible else ""
            lines.append(f"  {score.node} {scores.render(score.score)} = {parts or '0'}{objection}")
        promotion = placement.promotion
        if promotion is not None:
            parts = ", ".join(f"{scores.render(part.score)} {part.source}" for part in promotion.addends)
            lines.append(f"  {str(placement.next_role).lower()} {scores.render(promotion.score)} = {parts or '0'}")
            lines += [f"    to be promoted: {each}" for each in promotion.to_be_promoted]
        return "\n".join(lines)

    def do_win(self, _: Directive, resource: str, node: str) -> str:
        placement = self.cluster.plan(is_explaining=True).placements[ResourceId(resource)]
        score = next(each for each in placement.scores if each.node == node)
        return "\n".join(score.to_win) or f"{node} is chosen"

    def do_lose(self, _: Directive, node: str) -> None:
        self.cluster.lose(node)

    def do_fence(self, _: Directive, node: str) -> None:
        self.cluster.fence(node)

    def do_join(self, _: Directive, node: str, how: str = "") -> None:
        self.cluster.join(node, same_boot=how == "same-boot")

    def do_leave(self, _: Directive, node: str) -> None:
        incarnation = self.cluster.cib.status.nodes[NodeName(node)].incarnation
        assert incarnation is not None
        self.cluster.do(commands.RequestLeave(NodeName(node), incarnation))

    def do_attribute(self, _: Directive, node: str, pair: str) -> None:
        name, _equals, value = pair.partition("=")
        self.cluster.do(commands.SetTransientAttribute(NodeName(node), name, value or None))

    def do_fail(self, _: Directive, resource: str, node: str, operation: str, code: str, reason: str = "") -> None:
        name, _slash, interval = operation.partition("/")
        self.cluster.fail(resource, node, name, durations.parse(interval), ExitCode(int(code)), reason)

    def do_order(self, _: Directive, name: str, resource: str, node: str) -> None:
        wanted = f"{name} {resource} on {node}"
        action = next(item for item in self.cluster.plan().graph.actions.values() if action_line(item) == wanted)
        self.orders.append(self.cluster.order(action))

    def do_end(self, _: Directive, code: str, reason: str = "") -> None:
        order = self.orders.pop(0)
        if code == "unknown":
            self.cluster.answer(order, ExitCode.UNKNOWN, reason, ResultKind.UNKNOWN)
            return
        if order.action == "start" and code == "0":
            self.cluster.running.add((order.resource, order.node))
        if order.action == "stop" and code == "0":
            self.cluster.running.discard((order.resource, order.node))
        self.cluster.answer(order, ExitCode(int(code)), reason)

    def do_cleanup(self, _: Directive, resource: str) -> None:
        self.cluster.do(commands.CleanUp(ResourceId(resource), None))


    def do_devices(self, _: Directive, node: str, count: str, *words: str) -> None:
        options = dict(word.split("=") for word in words)
        link, memory = int(options.get("link", "0")), int(options.get("memory", "143771"))
        self.cluster.publish(node, [
            Device(
                DeviceId(f"{node}-{number}"), bus=f"0000:{number:02x}:00.0", model=options.get("model", "NVIDIA H200"),
                memory_mib=memory, link=str(number // link) if link else "",
            )
            for number in range(int(count))
        ])  # fmt: skip

    def do_device(self, _: Directive, node: str, number: str, state: str, *reasons: str) -> None:
        known = self.cluster.cib.status.devices[NodeName(node)].devices
        name = DeviceId(f"{node}-{number}")
        changed = replace(known[name], state=DeviceState(state), reasons=reasons)
        self.cluster.publish(node, {**known, name: changed}.values())

    def do_steer(self, _: Directive, node: str, number: str, how: str) -> None:
        change = commands.DeviceChange(how)
        self.cluster.do(commands.SteerDevice(NodeName(node), DeviceId(f"{node}-{number}"), change, "root"))

    def do_keep(self, _: Directive) -> None:
        self.cluster.are_devices_kept = True

    def do_free(self, _: Directive, node: str) -> None:
        self.cluster.are_devices_kept = False
        self.cluster.release(NodeName(node))

    def do_claims(self, _: Directive) -> str:
        return "\n".join(
            f"{device}: " + ", ".join(
                f"{claim.resource}{f' {claim.memory_mib} MiB' if claim.memory_mib else ''}"
                f"{' (over)' if claim.is_over else ''}"
                for claim in claims
            )
            for known in self.cluster.cib.status.devices.values()
            for device, claims in sorted(known.claims.items())
        )  # fmt: skip


def written(plan: Plan, now: WallTime) -> str:
    lines = []
    for action in plan.graph.actions.values():
        after = f" after {','.join(map(str, action.inputs))}" if action.inputs else ""
        lines.append(f"{action.id} {action_line(action)}{after}: {action.reason}")
    lines += [f"= {resource}: {placement.verdict}" for resource, placement in plan.placements.items()]
    lines += [f"! {warning}" for warning in plan.warnings]
    lines += [f"forget failures of {resource} on {node}" for node, resource in plan.expired_failures]
    if plan.recheck_at is not None:
        lines.append(f"look again in {durations.render(plan.recheck_at - now)}")
    return "\n".join(lines)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario(path: Path) -> None:
    run_file(path, Scenario().handle)


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 10
