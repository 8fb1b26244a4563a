"""What `apply` keeps of a reload that did not succeed, and when the question is settled (safety.md §1)."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.activity import possibly_active, possibly_promoted
from haclusterd.cib.changes import RefusalCode
from haclusterd.model.activity import history_says_promoted, ways_of
from haclusterd.model.history import ReloadInDoubt, ResourceHistory
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import Order, ResultKind
from haclusterd.model.records import replace
from tests.unit.situations import DB, DUMMY, N1, N2, Cluster, issue, life, order, record, result

OLD, NEW, NEWEST = (ReloadInDoubt({"pidfile": name}, name) for name in ("old", "new", "newest"))
MONITOR_MS = 10_000


def by(made: Order, way: ReloadInDoubt) -> Order:
    return replace(made, parameters=way.parameters, definition=way.definition)


class Reloading(Cluster):
    """`db` runs on n2 by the older parameters, and is ordered to take the newer over."""

    def __init__(self) -> None:
        super().__init__()
        self._call_id = 0
        self.issue(by(order("start"), OLD))
        self.answers("start", "start")
        self.issue(by(order("reload", ActionName.RELOAD_AGENT), NEW))

    def answers(self, key: str, operation: str, code: ExitCode = ExitCode.OK, *, interval_ms: int = 0) -> None:
        self._call_id += 1
        self.must(record(result(key, operation, code, call_id=self._call_id, interval_ms=interval_ms)))

    def cut_off(self, how: str) -> None:
        if how == "killed":
            self.must(commands.Join(N2, life(N2, token=2)))
        elif how == "unknown":
            self._call_id += 1
            unknown = result("reload", "reload-agent", ExitCode.UNKNOWN, kind=ResultKind.UNKNOWN)
            self.must(record(replace(unknown, call_id=self._call_id)))
        else:
            self.answers("reload", "reload-agent", ExitCode.ERROR)

    def asks(self, action: ActionName, way: ReloadInDoubt, code: ExitCode, *, interval_ms: int = 0) -> None:
        """Order something by a way, and have it answered; any other way is refused."""
        incarnation = self.status(N2).incarnation
        made = order(f"ask{self.index}", action, interval_ms=interval_ms, incarnation=incarnation)
        made = replace(by(made, way), is_probe=action is ActionName.MONITOR and not interval_ms)
        for other in (OLD, NEW, NEWEST):
            if other is not way:
                self.must_refuse(issue(by(replace(made, key=made.key), other)), RefusalCode.STILL_ACTIVE)
        self.issue(made)
        self._call_id += 1
        answer = result(made.key, action, code, call_id=self._call_id, interval_ms=interval_ms)
        self.must(replace(record(answer), incarnation=incarnation))

    @property
    def history(self) -> ResourceHistory:
        return self.status(N2).histories[DB]

    def may_start_on_another(self) -> bool:
        return self.put(issue(by(order(f"other{self.index}", node=N1), NEW))).refusal is None


CUT_OFF = ("killed", "unknown", "failed")


@pytest.mark.parametrize("how", CUT_OFF)
def test_both_ways_count_until_one_of_them_finds_it(how: str) -> None:
    cluster = Reloading()
    cluster.cut_off(how)
    assert ways_of(cluster.status(N2), DB) == ((DUMMY, OLD.parameters), (DUMMY, NEW.parameters))
    cluster.asks(ActionName.MONITOR, OLD, ExitCode.OK)
    assert ways_of(cluster.status(N2), DB) == ((DUMMY, OLD.parameters),)
    assert DB not in cluster.status(N2).unverified


@pytest.mark.parametrize("how", CUT_OFF)
@pytest.mark.parametrize(
    ("action", "code", "interval_ms"),
    [
        (ActionName.STOP, ExitCode.OK, 0),
        (ActionName.MONITOR, ExitCode.NOT_RUNNING, 0),
        (ActionName.MONITOR, ExitCode.NOT_RUNNING, MONITOR_MS),
    ],
    ids=["stop", "probe", "monitor"],
)
def test_what_the_older_parameters_do_not_find_is_looked_for_by_the_newer(
    how: str, action: ActionName, code: ExitCode, interval_ms: int
) -> None:
    cluster = Reloading()
    cluster.cut_off(how)
    cluster.asks(action, OLD, code, interval_ms=interval_ms)
    assert DB in cluster.status(N2).unverified
    assert DB in possibly_active(cluster.status(N2))
    assert not cluster.may_start_on_another()
    cluster.asks(ActionName.MONITOR, NEW, ExitCode.NOT_RUNNING)
    assert DB not in possibly_active(cluster.status(N2))
    assert cluster.may_start_on_another()


@pytest.mark.parametrize("code", [ExitCode.ERROR, ExitCode.NOT_INSTALLED, ExitCode.NOT_CONFIGURED])
def test_an_answer_that_says_neither_settles_nothing(code: ExitCode) -> None:
    cluster = Reloading()
    cluster.cut_off("killed")
    cluster.asks(ActionName.MONITOR, OLD, code)
    cluster.asks(ActionName.STOP, OLD, ExitCode.OK)
    assert not cluster.may_start_on_another()
    cluster.asks(ActionName.STOP, NEW, ExitCode.OK)
    assert cluster.may_start_on_another()


def test_a_demotion_by_the_older_parameters_lets_no_other_be_promoted() -> None:
    cluster = Reloading()
    cluster.cut_off("failed")
    cluster.asks(ActionName.DEMOTE, OLD, ExitCode.OK)
    assert possibly_promoted(cluster.status(N2), DB)
    cluster.asks(ActionName.STOP, OLD, ExitCode.OK)
    assert possibly_promoted(cluster.status(N2), DB)
    cluster.asks(ActionName.MONITOR, NEW, ExitCode.OK)
    assert not possibly_promoted(cluster.status(N2), DB)


def test_a_reload_that_succeeds_settles_it_and_one_that_fails_again_adds_to_it_once() -> None:
    cluster = Reloading()
    cluster.cut_off("failed")
    for number in range(2):
        cluster.issue(by(order(f"r{number}", ActionName.RELOAD_AGENT), NEWEST))
        cluster.answers(f"r{number}", "reload-agent", ExitCode.ERROR)
    assert cluster.history.reloads == (NEW, NEWEST)
    cluster.issue(by(order("r", ActionName.RELOAD_AGENT), NEW))
    cluster.answers("r", "reload-agent")
    assert ways_of(cluster.status(N2), DB) == ((DUMMY, NEW.parameters),)


def test_a_reload_that_was_not_begun_has_done_nothing() -> None:
    cluster = Reloading()
    cluster.must(record(result("reload", "reload-agent", ExitCode.UNKNOWN, kind=ResultKind.NOT_BEGUN, call_id=2)))
    assert cluster.history.reloads == ()


def test_while_it_is_open_both_ways_count() -> None:
    cluster = Reloading()
    assert ways_of(cluster.status(N2), DB) == ((DUMMY, OLD.parameters), (DUMMY, NEW.parameters))


def test_a_boot_ends_the_question() -> None:
    cluster = Reloading()
    cluster.cut_off("unknown")
    cluster.must(commands.Join(N2, life(N2, boot=2)))
    assert cluster.may_start_on_another()


def promoted_and_reloaded() -> Reloading:
    """Return `db` after it was started, promoted, watched as such, and given other parameters."""
    cluster = Reloading()
    cluster.answers("reload", "reload-agent")
    cluster.issue(by(order("promote", ActionName.PROMOTE), NEW))
    cluster.answers("promote", "promote")
    cluster.issue(by(order("again", ActionName.RELOAD_AGENT), NEWEST))
    cluster.answers("again", "reload-agent")
    return cluster


def test_what_is_promoted_stays_so_when_it_is_reloaded() -> None:
    """A reload is recorded as a start, behind which nothing would be promoted: another instance would be too."""
    cluster = promoted_and_reloaded()
    assert history_says_promoted(cluster.history)
    refused = cluster.put(issue(by(order("other", ActionName.PROMOTE, node=N1), NEWEST))).refusal
    assert refused is not None
    assert refused.code is RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS
    cluster.issue(by(order("demote", ActionName.DEMOTE), NEWEST))
    cluster.answers("demote", "demote")
    cluster.issue(by(order("once more", ActionName.RELOAD_AGENT), NEW))
    cluster.answers("once more", "reload-agent")
    assert not history_says_promoted(cluster.history)


def test_it_stays_promoted_when_its_monitor_is_cancelled_after_the_reload() -> None:
    cluster = promoted_and_reloaded()
    cluster.issue(by(order("monitor", ActionName.MONITOR, interval_ms=MONITOR_MS, target=ExitCode.PROMOTED), NEWEST))
    cluster.answers("monitor", "monitor", ExitCode.PROMOTED, interval_ms=MONITOR_MS)
    cluster.issue(by(order("cancel", ActionName.CANCEL, interval_ms=MONITOR_MS), NEWEST))
    cluster.answers("cancel", "cancel", interval_ms=MONITOR_MS)
    assert history_says_promoted(cluster.history)


def test_what_only_a_probe_found_promoted_stays_so_when_it_is_reloaded() -> None:
    cluster = Cluster()
    cluster.issue(replace(order("probe", ActionName.MONITOR), is_probe=True))
    cluster.must(record(result("probe", "monitor", ExitCode.PROMOTED)))
    cluster.issue(order("reload", ActionName.RELOAD_AGENT))
    cluster.must(record(result("reload", "reload-agent", call_id=2)))
    assert history_says_promoted(cluster.status(N2).histories[DB])


def test_a_monitor_of_before_a_reload_that_is_recorded_late_is_none_that_runs() -> None:
    cluster = promoted_and_reloaded()
    cluster.issue(by(order("late", ActionName.MONITOR, interval_ms=MONITOR_MS), NEWEST))
    cluster.must(record(replace(result("late", "monitor", ExitCode.PROMOTED, interval_ms=MONITOR_MS), call_id=3)))
    assert not any(each.interval_ms for each in cluster.history.records.values())
