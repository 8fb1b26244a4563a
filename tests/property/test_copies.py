"""Whatever is ordered and whenever results come, the log lets no copy too many begin (safety.md §1).

The DC here orders anything, anywhere, with any parameters that were ever configured, as by a plan that is out of date.
It keeps two rules of the transition machine: one action at a time of a resource on a node, and none on another one when
a migration begins, but at its target; and each action only where it can have a meaning, such as a promotion of what may
be active. Daemons die, nodes are lost, fenced, boot, act alone and leave, and results arrive late and in another order.
So only `apply` stands between these orders and a second copy. What runs is known from the hosts alone.
"""

import random
from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.cib.edits import Delete, Edit, PutResource
from haclusterd.model.activity import may_be_active_or_begin
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import AttributeSet, Clone
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ACTIVATING, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.records import dataclass, field
from tests.examples import examples
from tests.unit.situations import NAMES, Cluster, primitive

Service = tuple[str, Mapping[str, str]]
SERVICES: tuple[Service, ...] = (
    ("ocf:haclusterd:dummy", {"p": "a"}),
    ("ocf:haclusterd:dummy", {"p": "b"}),
    ("ocf:haclusterd:other", {"p": "a"}),
)
FENCE_DEVICE: Service = ("stonith:fence_x", {"p": "a"})
STEPS = 350
START, STOP, MONITOR = ActionName.START, ActionName.STOP, ActionName.MONITOR
PROMOTE, DEMOTE, RELOAD = ActionName.PROMOTE, ActionName.DEMOTE, ActionName.RELOAD_AGENT
MIGRATE_TO, MIGRATE_FROM = ActionName.MIGRATE_TO, ActionName.MIGRATE_FROM
ACTIONS = (*[START] * 6, *[STOP] * 4, *[MONITOR] * 5, *[MIGRATE_TO] * 3, *[MIGRATE_FROM] * 4, RELOAD)
OF_PROMOTABLES = (*ACTIONS, *[PROMOTE] * 5, *[DEMOTE] * 3)
DONE, ERROR, CANCELLED = ExecutionStatus.DONE, ExecutionStatus.ERROR, ExecutionStatus.CANCELLED


@dataclass(frozen=True, slots=True)
class Limits:
    """How many copies under the plain name, how many instances, and how many of them promoted, there may be."""

    copies: int
    instances: int
    promoted: int


@dataclass(slots=True)
class Work:
    """An agent at work."""

    order: Order
    target_boot: int = 0
    """Of a migration: the boot of its target when it began."""
    has_acted: bool = False
    has_moved: bool = False
    is_adopted: bool = False


@dataclass(slots=True)
class Host:
    """A machine, its daemon, and what really runs on it."""

    name: NodeName
    view: Cib
    """What its daemon has seen of the log."""
    boot: int = 1
    token: int = 1
    has_power: bool = True
    is_up: bool = True
    has_joined: bool = True
    has_lease: bool = True
    running: dict[str, bool] = field(default_factory=dict)
    """By service or instance: whether it is promoted."""
    queues: dict[ResourceId, list[Order]] = field(default_factory=dict)
    works: dict[ResourceId, Work] = field(default_factory=dict)
    taken: set[OrderKey] = field(default_factory=set)
    results: list[commands.RecordResults] = field(default_factory=list)
    """Proposed, and not in the log yet."""
    call_id: int = 0

    @property
    def incarnation(self) -> Incarnation:
        return Incarnation(f"{self.name}-boot{self.boot}", f"{self.token:016x}")

    def forget_orders(self) -> None:
        self.queues.clear()
        self.taken.clear()


class RandomCluster:
    """Random commands to a cluster of three nodes whose names exchange services, which run once."""

    names: tuple[str, ...] = ("x", "y", "z")
    actions: tuple[ActionName, ...] = ACTIONS
    services: tuple[Service, ...] = SERVICES

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster = Cluster()
        self.serial = 0
        self.configured: dict[str, Service] = {}
        self.versions: list[Limits] = []
        """What each version of the configuration allows, where it may change."""
        self.issued: dict[OrderKey, int] = {}
        """By order: the version at which it was issued."""
        self.configure()
        self.hosts = {name: Host(name, self.cluster.cib) for name in NAMES}
        self.events: dict[Callable[[], None], float] = {
            self.order: 24, self.look: 26, self.begin: 26, self.act: 8, self.end: 22, self.deliver: 26, self.void: 2,
            self.die: 0.7, self.lose: 1.2, self.fence: 1.5, self.lose_power: 0.6, self.boot: 5, self.kill_daemon: 1.5,
            self.join: 14, self.end_lease: 0.5, self.act_alone: 1, self.leave: 1.2, self.start_daemon: 5,
            self.clean_up: 1, self.forget: 1.5, self.configure: 2,
        }  # fmt: skip

    def named(self, order: Order) -> str:
        """Return what an order is about."""
        return f"{order.agent} {sorted(order.lasting_parameters.items())}"

    def judge(self) -> None:
        """Raise AssertionError when too much runs."""
        places: dict[str, list[NodeName]] = {}
        for host in self.hosts.values():
            for name in host.running:
                places.setdefault(name, []).append(host.name)
        assert all(len(each) == 1 for each in places.values()), places

    def configure(self) -> None:
        """Each name runs another service than before, or none."""
        names = self.chance.sample(self.names, self.chance.choice((1, 2, 2, 3)))
        wanted = dict(zip(names, self.chance.sample(self.services, len(names)), strict=True))
        if self.chance.random() < 0.25:
            wanted[names[0]] = FENCE_DEVICE
        gone = [Delete("resource", ResourceId(name)) for name in self.configured if name not in wanted]
        self.put(self.edited(*gone, *(PutResource(primitive(name, *each)) for name, each in wanted.items())))
        self.configured = wanted

    def edited(self, *edits: Edit) -> commands.Command:
        return commands.ChangeConfiguration(self.cluster.cib.version.epoch, edits, "test", "")

    def run(self) -> None:
        for event in self.chance.choices(list(self.events), list(self.events.values()), k=STEPS):
            event()
            self.judge()

    def put(self, command: commands.Command) -> bool:
        return self.cluster.put(command).refusal is None

    def status(self, node: NodeName) -> NodeStatus:
        return self.cluster.cib.status.nodes[node]

    def one(self, fits: Callable[[Host], bool]) -> Iterator[Host]:
        """Yield a host of which something is true, if there is one."""
        found = [host for host in self.hosts.values() if fits(host)]
        if found:
            yield self.chance.choice(found)

    # -- the DC -----------------------------------------------------------------------------------------------------

    def order(self) -> None:
        node, name = self.chance.choice(NAMES), ResourceId(self.chance.choice(self.names))
        action, status = self.chance.choice(self.actions), self.status(node)
        other = self.chance.choice([each for each in NAMES if each != node])
        if status.incarnation is None or not self.has_meaning(action, name, node, other):
            return
        self.serial += 1
        agent, parameters = self.service_for(action, name, status)
        if action is RELOAD and agent != str(status.histories[name].agent):
            return
        source, target = (node, other) if action is MIGRATE_TO else (other, node)
        is_recurring = action is MONITOR and self.chance.random() < 0.2
        made = Order(
            OrderKey(f"k{self.serial}"), node, status.incarnation, self.cluster.term, name, action,
            10_000 if is_recurring else 0, AgentReference.parse(agent), parameters,
            {"migrate_source": source, "migrate_target": target}, 20_000, 10_000,
            ExitCode.NOT_RUNNING if action is MONITOR and not is_recurring else ExitCode.OK,
            definition=f"{agent} {parameters}", is_probe=action is MONITOR and not is_recurring,
        )  # fmt: skip
        self.issued[made.key] = len(self.versions) - 1
        self.put(commands.IssueOrders(self.cluster.term, (made,)))

    def service_for(self, action: ActionName, name: ResourceId, status: NodeStatus) -> Service:
        history = status.histories.get(name)
        found = [self.chance.choice(self.services)]
        if str(name) in self.configured:
            found += [self.configured[str(name)]] * (100 if action is RELOAD else 4)
        if history is not None and action is not RELOAD:
            found += [(str(history.agent), history.parameters)] * 4
        return self.chance.choice(found)

    def has_meaning(self, action: ActionName, name: ResourceId, node: NodeName, other: NodeName) -> bool:
        """Tell whether a DC may order that, by its rules for open orders and by what may be active."""
        status, concerned = self.status(node), [node]
        if action is MIGRATE_FROM:
            concerned = list(NAMES)
        elif action is MIGRATE_TO:  # What is under way at the target is left to `apply`.
            concerned = [each for each in NAMES if each != other]
        orders = (order for each in concerned for order in self.status(each).orders.values())
        if any(order.resource == name for order in orders):
            return False
        is_here, is_doubtful = may_be_active_or_begin(status, name), name in status.unverified
        if action is MIGRATE_FROM:
            history = self.status(other).histories.get(name)
            sent = history.records.get("migrate_to_0") if history is not None else None
            return sent is not None and not sent.is_failure and sent.migrate_target == node
        if action is RELOAD:
            is_on_others = any(may_be_active_or_begin(self.status(each), name) for each in NAMES if each != node)
            is_known = is_here and name in status.histories and str(name) in self.configured
            return is_known and not is_doubtful and not is_on_others
        if action is START:
            return not is_here
        return action is MONITOR or (is_here and not (action is MIGRATE_TO and is_doubtful))

    def void(self) -> None:
        keys = [key for status in self.cluster.cib.status.nodes.values() for key in status.orders]
        if keys:
            self.put(commands.VoidOrders(self.cluster.term, (self.chance.choice(keys),)))

    def lose(self) -> None:
        node = self.chance.choice(NAMES)
        self.put(commands.Lost(node, self.status(node).incarnation, self.cluster.term, "silent"))

    def fence(self) -> None:
        for host in self.one(lambda host: self.status(host.name).state is NodeState.LOST):
            self.switch_off(host)
            life = self.status(host.name).incarnation
            self.put(commands.Fenced(host.name, life, None, FenceOutcome.CONFIRMED, ""))

    def clean_up(self) -> None:
        resource = self.chance.choice((None, *map(ResourceId, self.names)))
        self.put(commands.CleanUp(resource, self.chance.choice((None, *NAMES)), reprobe=self.chance.random() < 0.5))

    def forget(self) -> None:
        self.put(commands.ForgetHistory(self.chance.choice(NAMES), ResourceId(self.chance.choice(self.names))))

    # -- the machines -----------------------------------------------------------------------------------------------

    def switch_off(self, host: Host) -> None:
        host.has_power = host.is_up = host.has_joined = False
        host.running.clear()
        host.works.clear()
        host.forget_orders()

    def lose_power(self) -> None:
        self.switch_off(self.hosts[self.chance.choice(NAMES)])

    def boot(self) -> None:
        for host in self.one(lambda host: not host.has_power):
            host.boot, host.token, host.call_id = host.boot + 1, 1, 0
            host.has_power = host.is_up = True

    def kill_daemon(self) -> None:
        for host in self.one(lambda host: host.is_up):
            self.begin_incarnation(host)
            if self.chance.random() < 0.5:
                host.results.clear()

    def begin_incarnation(self, host: Host) -> None:
        host.token += 1
        host.has_joined, host.has_lease = False, True
        host.forget_orders()
        for work in host.works.values():
            work.is_adopted = True

    def start_daemon(self) -> None:
        for host in self.one(lambda host: host.has_power and not host.is_up):
            self.begin_incarnation(host)
            host.is_up = True

    def join(self) -> None:
        for host in self.one(lambda host: host.is_up and not host.has_joined):
            if self.put(commands.Join(host.name, host.incarnation)):
                host.has_joined, host.view = True, self.cluster.cib
                host.call_id = max(host.call_id, self.status(host.name).last_call_id)

    def leave(self) -> None:
        for host in self.one(lambda host: host.is_up and host.has_joined):
            unmanaged = tuple(map(ResourceId, self.names)) if self.chance.random() < 0.3 else ()
            if not self.put(commands.Leaving(host.name, host.incarnation, unmanaged)):
                continue
            is_starting = any(
                work.order.action in ACTIVATING and work.order.agent.standard != "stonith"
                for work in host.works.values()
            )
            has_left = self.status(host.name).state is NodeState.LEFT
            assert not (has_left and (host.running or is_starting)), f"{host.name} left while something ran"
            host.is_up = host.has_joined = False
            host.forget_orders()

    def die(self) -> None:
        for host in self.one(lambda host: bool(host.running)):
            del host.running[self.chance.choice(list(host.running))]

    def end_lease(self) -> None:
        for host in self.one(lambda host: host.is_up and host.has_joined):
            host.has_lease = False

    def act_alone(self) -> None:
        def has_to(host: Host) -> bool:
            status = host.view.status.nodes[host.name]
            is_lost = status.incarnation == host.incarnation and status.state is not NodeState.ONLINE
            return host.is_up and host.has_joined and (is_lost or not host.has_lease)

        for host in self.one(has_to):
            for work in host.works.values():
                if self.chance.random() < 0.4:
                    self.affect(host, work)
            host.works.clear()
            for name in list(host.running):
                if self.chance.random() < 0.85:
                    del host.running[name]
            self.begin_incarnation(host)
            if self.chance.random() < 0.5:
                host.results.clear()

    # -- the executors ----------------------------------------------------------------------------------------------

    def own(self, host: Host) -> NodeStatus | None:
        """Return the status by which its daemon takes orders; None: it takes none."""
        status = host.view.status.nodes[host.name]
        is_own = host.has_joined and status.incarnation == host.incarnation
        return status if is_own and status.state is NodeState.ONLINE else None

    def look(self) -> None:
        for host in self.one(lambda host: host.is_up and host.view is not self.cluster.cib):
            host.view = self.cluster.cib
            status = self.own(host)
            if status is None:
                continue
            for queue in host.queues.values():
                for order in tuple(queue):
                    known = status.orders.get(order.key)
                    if known is None or known.is_voided:
                        queue.remove(order)
                        self.not_begun(host, order)
            for key, order in status.orders.items():
                is_older = order.incarnation != host.incarnation
                if key in host.taken or (is_older and order.resource in host.works):
                    continue
                host.taken.add(key)
                if is_older:
                    how = self.chance.choice((ExecutionStatus.UNKNOWN, CANCELLED))
                    self.answer(host, order, ResultKind.UNKNOWN, ExitCode.UNKNOWN, how)
                elif order.is_voided:
                    self.not_begun(host, order)
                else:
                    host.queues.setdefault(order.resource, []).append(order)

    def begin(self) -> None:
        for host in self.one(lambda host: self.own(host) is not None and bool(self.ready(host))):
            order = self.chance.choice(self.ready(host)).pop(0)
            if order.action in ACTIVATING and not host.has_lease:
                self.not_begun(host, order)
                continue
            other = self.hosts.get(order.other_node) if order.other_node is not None else None
            host.works[order.resource] = Work(order, other.boot if other is not None else 0)

    def ready(self, host: Host) -> list[list[Order]]:
        return [queue for resource, queue in host.queues.items() if queue and resource not in host.works]

    def act(self) -> None:
        for host in self.one(lambda host: any(not work.has_acted for work in host.works.values())):
            self.affect(host, self.chance.choice(list(host.works.values())))

    def affect(self, host: Host, work: Work) -> None:
        """Let an agent have its effect, once."""
        order, running, name = work.order, host.running, self.named(work.order)
        if work.has_acted or order.agent.standard == "stonith":
            return
        work.has_acted = True
        if order.action is START:
            running.setdefault(name, False)
        elif order.action is STOP:
            running.pop(name, None)
        elif order.action in (PROMOTE, DEMOTE) and name in running:
            running[name] = order.action is PROMOTE
        elif order.action is MIGRATE_TO and name in running and order.other_node is not None:
            target = self.hosts[order.other_node]
            if target.has_power and target.boot == work.target_boot:
                target.running[name] = running.pop(name)
                work.has_moved = True
        elif order.action is RELOAD:
            for former in self.reloaded(host, order):
                running[name] = running.pop(former)
        self.judge_begun(order, name)

    def reloaded(self, host: Host, order: Order) -> list[str]:
        """Return what runs and takes other parameters over."""
        history = self.status(host.name).histories.get(order.resource)
        if history is None:
            return []
        sets = (history.parameters, *(reload.parameters for reload in history.reloads))
        names = [f"{history.agent} {sorted(parameters.items())}" for parameters in sets]
        return [name for name in names if name in host.running][:1]

    def judge_begun(self, order: Order, name: str) -> None:
        """Raise AssertionError when an order has made too much run, by what it may rest on."""

    def end(self) -> None:
        for host in self.one(lambda host: bool(host.works)):
            resource = self.chance.choice(list(host.works))
            work = host.works[resource]
            status, code = self.outcome(host, work)
            del host.works[resource]
            if host.is_up and not work.is_adopted:
                self.answer(host, work.order, ResultKind.FINISHED, code, status)

    def outcome(self, host: Host, work: Work) -> tuple[ExecutionStatus, ExitCode]:
        """Return what an agent answers; it may fail before, in the middle of or after its effect."""
        order, name, drawn = work.order, self.named(work.order), self.chance.random()
        if order.action is MONITOR:
            if drawn < 0.12:
                return self.chance.choice((
                    (ExecutionStatus.NOT_INSTALLED, ExitCode.NOT_INSTALLED), (ERROR, ExitCode.NOT_CONFIGURED),
                    (ERROR, ExitCode.ERROR),
                ))  # fmt: skip
            if name not in host.running:
                return DONE, ExitCode.NOT_RUNNING
            return DONE, ExitCode.PROMOTED if host.running[name] else ExitCode.OK
        if drawn > 0.75:
            return self.chance.choice((ERROR, ExecutionStatus.TIMEOUT)), ExitCode.ERROR
        self.affect(host, work)
        needs_it = order.action in (PROMOTE, DEMOTE, MIGRATE_FROM, RELOAD) and name not in host.running
        if needs_it or (order.action is MIGRATE_TO and not work.has_moved):
            return ERROR, ExitCode.ERROR
        return DONE, ExitCode.OK

    def not_begun(self, host: Host, order: Order) -> None:
        self.answer(host, order, ResultKind.NOT_BEGUN, ExitCode.UNKNOWN, CANCELLED)

    def answer(self, host: Host, order: Order, kind: ResultKind, code: ExitCode, status: ExecutionStatus) -> None:
        host.call_id += 1
        made = OperationResult(
            kind, order.key, order.resource, str(order.action), order.interval_ms, code, status, host.call_id,
            WallTime(host.call_id), target_exit_code=order.target_exit_code,
        )  # fmt: skip
        host.results.append(commands.RecordResults(host.name, host.incarnation, (made,)))

    def deliver(self) -> None:
        for host in self.one(lambda host: bool(host.results)):
            is_first = self.chance.random() < 0.85
            self.put(host.results.pop(0 if is_first else self.chance.randrange(len(host.results))))


class RandomPromotableCluster(RandomCluster):
    """A promotable clone, one of whose two copies may be promoted."""

    names: tuple[str, ...] = ("x",)
    actions = OF_PROMOTABLES
    services = SERVICES[:1]

    def named(self, order: Order) -> str:
        return str(order.resource)

    def configure(self) -> None:
        meta = (("promotable", "true"), ("clone-max", "2"), ("promoted-max", "1"))
        self.put(self.edited(PutResource(primitive("x", *SERVICES[0])), whole(meta)))
        self.configured = {"x": SERVICES[0]}

    def judge(self) -> None:
        running = [is_promoted for host in self.hosts.values() for is_promoted in host.running.values()]
        assert (len(running) <= 2, sum(running) <= 1) == (True, True)


class RandomShapesCluster(RandomPromotableCluster):
    """A primitive that becomes a clone or a unique clone, with other limits, and one again."""

    names: tuple[str, ...] = ("x", "x:0", "x:1", "x:2")

    def configure(self) -> None:
        most, promoted_max = self.chance.choice((1, 2, 3)), self.chance.choice((1, 2))
        kind = self.chance.choice(("primitive", "anonymous", "unique"))
        meta = (
            ("clone-max", str(most)), ("globally-unique", str(kind == "unique").lower()), ("promotable", "true"),
            ("promoted-max", str(promoted_max)),
        )  # fmt: skip
        is_cloned = ResourceId("whole") in self.cluster.cib.configuration.resources
        edits: list[Edit] = [PutResource(primitive("x", *SERVICES[0]))]
        if kind != "primitive":
            edits.append(whole(meta))
        elif is_cloned:
            edits.append(Delete("resource", ResourceId("whole")))
        if self.put(self.edited(*edits)):
            self.versions.append({
                "primitive": Limits(1, 0, 1),
                "anonymous": Limits(most, 0, promoted_max),
                "unique": Limits(0, most, promoted_max),
            }[kind])  # fmt: skip

    def judge(self) -> None:
        """What has begun was judged when it did: what the present shape does not allow may still have to stop."""

    def judge_begun(self, order: Order, name: str) -> None:
        """Hold what an order has begun against all shapes since it was issued."""
        shapes = self.versions[self.issued[order.key] :]
        running = [(each, is_it) for host in self.hosts.values() for each, is_it in host.running.items()]
        numbered = [each for each, _ in running if ":" in each]
        if order.action is PROMOTE:
            assert sum(is_it for _, is_it in running) <= max(shape.promoted for shape in shapes)
        if order.action is not START:
            return
        assert len(numbered) in (0, len(running)), "never x:0 beside x"
        assert len(set(numbered)) == len(numbered), "each instance runs once"
        if numbered:
            assert len(numbered) <= max(shape.instances for shape in shapes)
        else:
            assert len(running) <= max(shape.copies for shape in shapes)


def whole(meta: tuple[tuple[str, str], ...]) -> PutResource:
    return PutResource(Clone(ResourceId("whole"), ResourceId("x"), meta=(AttributeSet("whole-meta", meta),)))


@pytest.mark.parametrize("made", [RandomCluster, RandomPromotableCluster, RandomShapesCluster])
@settings(max_examples=examples(150), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_order_that_the_log_accepts_makes_a_copy_too_many(made: type[RandomCluster], seed: int) -> None:
    made(seed).run()
