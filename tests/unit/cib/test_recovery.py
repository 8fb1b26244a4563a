"""What a cluster begins with that continues another one."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.recovery import asking_what_runs, status_of_the_one_left
from haclusterd.model.activity import Way, ways_of
from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus
from haclusterd.model.configuration import AttributeSet, Configuration
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import OperationResult, Order
from haclusterd.model.records import replace
from tests.unit.situations import DB, DUMMY, N1, N2, Cluster, Log, life, order, probe, record, result


def configured(*pairs: tuple[str, str]) -> Configuration:
    return Configuration(properties=(AttributeSet("options", pairs),))


def test_every_node_is_asked_what_runs_there_whatever_the_other_cluster_was_to_do() -> None:
    before = configured(("enable-startup-probes", "false"), ("node-timeout", "3s"))
    assert asking_what_runs(before) == configured(("node-timeout", "3s"))


def test_a_configuration_that_says_nothing_of_it_stays_the_same_object() -> None:
    configuration = configured(("node-timeout", "3s"))
    assert asking_what_runs(configuration) is configuration


OLD, NEW, SECRET = {"a": "1"}, {"a": "2"}, {"a": "secret:password"}


class Left(Cluster):
    """The cluster is recovered from n2, after what a test has ordered there of `db`."""

    def ordered(self, action: ActionName, parameters: dict[str, str] = OLD) -> Order:
        made = replace(order(f"o{self.index}", action), parameters=parameters)
        self.issue(made)
        return made

    def done(self, action: ActionName, code: ExitCode = ExitCode.OK, parameters: dict[str, str] = OLD) -> None:
        self.ends(self.ordered(action, parameters), code)

    def ends(self, made: Order, code: ExitCode = ExitCode.OK) -> None:
        self.must(record(self.result(made, code)))

    def result(self, made: Order, code: ExitCode) -> OperationResult:
        return replace(result(made.key, made.action, code, target=made.target_exit_code), call_id=self.index)

    def recovered(self, boot: int = 1) -> NodeStatus:
        """Return what is known of n2 when it has joined the cluster that was made of it."""
        found = Log()
        found.cib = Cib(status=status_of_the_one_left(self.cib, N2))
        found.must(commands.FormCluster("other", "test", (Member(N2, (("127.0.0.1", 7000),)),)), by=N2)
        assert found.cib.status.nodes[N2].state is NodeState.UNSEEN
        found.must(commands.Join(N2, life(N2, boot=boot, token=9)), by=N2)
        status = found.cib.status.nodes[N2]
        assert status.unverified == status.histories.keys()
        assert not status.orders
        return status

    def ways(self, boot: int = 1) -> tuple[Way, ...]:
        """Return in which ways `db` may run there."""
        return ways_of(self.recovered(boot), DB)


def test_what_was_started_is_in_doubt_as_it_was_started() -> None:
    cluster = Left()
    cluster.done(ActionName.START)
    assert cluster.ways() == ((DUMMY, OLD),)


def test_after_a_boot_nothing_of_it_runs() -> None:
    cluster = Left()
    cluster.done(ActionName.START)
    assert cluster.recovered(boot=2).histories == {}


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "found stopped"])
def test_what_has_ended_is_looked_for_as_it_is_configured(is_stopped: bool) -> None:
    cluster = Left()
    cluster.done(ActionName.START)
    if is_stopped:
        cluster.done(ActionName.STOP)
    else:
        cluster.issue(replace(probe("probe"), parameters=OLD))
        cluster.must(record(replace(result("probe", "monitor", ExitCode.NOT_RUNNING), call_id=99)))
    assert cluster.recovered().histories == {}


def test_an_open_start_counts_as_it_was_ordered_whatever_ran_before() -> None:
    cluster = Left()
    cluster.done(ActionName.START)
    cluster.done(ActionName.STOP)
    cluster.ordered(ActionName.START, NEW)
    assert cluster.ways() == ((DUMMY, NEW),)


def test_while_it_is_reloaded_both_ways_count() -> None:
    cluster = Left()
    cluster.done(ActionName.START)
    cluster.ordered(ActionName.RELOAD_AGENT, NEW)
    assert cluster.ways() == ((DUMMY, OLD), (DUMMY, NEW))


@pytest.mark.parametrize("source_is_lost", [False, True])
def test_what_is_on_its_way_there_may_have_arrived(source_is_lost: bool) -> None:
    cluster = Left()
    start = replace(order("start", node=N1), parameters=OLD)
    cluster.issue(start)
    cluster.must(record(cluster.result(start, ExitCode.OK), N1))
    meta = {"migrate_source": N1, "migrate_target": N2}
    cluster.issue(replace(order("leaves", ActionName.MIGRATE_TO, node=N1), parameters=OLD, meta=meta))
    if source_is_lost:
        cluster.lose(N1)
    assert cluster.ways() == ((DUMMY, OLD),)


def test_failures_are_forgotten_and_the_doubt_stays() -> None:
    cluster = Left()
    cluster.done(ActionName.START, ExitCode.ERROR)
    history = cluster.recovered().histories[DB]
    assert not history.has_failures
    assert cluster.ways() == ((DUMMY, OLD),)


def test_what_a_secret_belongs_to_is_looked_for_as_it_is_configured() -> None:
    """The secrets of the lost cluster cannot be opened any more."""
    cluster = Left()
    cluster.done(ActionName.START, parameters=SECRET)
    assert cluster.recovered().histories == {}


def test_a_node_of_which_its_log_says_nothing_begins_with_nothing() -> None:
    assert status_of_the_one_left(Cib(), N2).nodes == {}
