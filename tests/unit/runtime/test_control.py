"""An administrator's verb in a daemon: decided, proposed, waited for, answered, once."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Never

import pytest

from haclusterd.cib import commands
from haclusterd.cib.edits import PutResource
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.verb import RunnableVerb
from haclusterd.model.access import Principal
from haclusterd.model.api_tokens import digest_of
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import AgentReference, Term
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Options, Progress, Request
from haclusterd.ports.background import WorkFailed
from haclusterd.ports.history import GAP, HistoryAnswer, HistoryQuery, HistoryRow
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.runtime.requests.control import REQUESTS_MAX, REQUESTS_OF_OTHERS_MAX
from haclusterd.runtime.requests.dialogue import (
    COMMIT_WAIT_MS,
    CONFLICT_RETRY_MS,
    MANY_WORDS,
    NO_LEADER_WAIT_MIN_MS,
    NO_LEADER_WAIT_MS,
    PROGRESS_MS,
    READING_WAIT_MS,
    READINGS_MAX,
)
from haclusterd.runtime.requests.request_services import Caller
from haclusterd.verbs.arguments import Arguments
from haclusterd.verbs.verb import Permission
from tests.unit.runtime.desk import PLAIN, Desk, put_on_another_node, status_of
from tests.unit.runtime.one_daemon import N1, N2, N3, Daemon, ListHistory
from tests.unit.situations import primitive

STANDBY = {"node": "n2", "lifetime": "reboot"}


def test_a_question_is_answered_at_once_from_what_is_applied() -> None:
    desk = Desk()
    name = desk.ask("node.show", {"node": "n2"})
    response = desk.response(name)
    assert response is not None
    assert response.exit == 0
    assert isinstance(response.data, Mapping)
    assert response.data["schema"] == "haclusterd.nodes/1"
    assert desk.daemon.store.entries == []


def test_a_change_is_answered_when_it_is_applied_and_not_before() -> None:
    desk = Desk()
    name = desk.ask("node.standby", STANDBY)
    desk.daemon.clock.run(1000)
    assert desk.response(name) is None
    desk.daemon.settle()
    assert status_of(desk, name) == 0
    assert desk.daemon.cib.status.nodes[N2].attributes == {"standby": "on"}


@pytest.mark.parametrize(
    ("role", "is_permitted"), [("viewer", False), ("operator", True), ("admin", True), ("gone", False)]
)
def test_who_may_not_changes_nothing(role: str, is_permitted: bool) -> None:
    desk = Desk()
    name = desk.ask("node.standby", STANDBY, who=Caller("eve", Principal(token="t", token_role=role)))
    desk.daemon.settle()
    assert (desk.daemon.cib.status.nodes[N2].attributes == {"standby": "on"}) is is_permitted
    assert status_of(desk, name) == (0 if is_permitted else ExitStatus.NOT_PERMITTED)


def test_all_other_users_together_leave_room_for_root() -> None:
    desk = Desk()
    eve = desk.control.caller("eve@n1", is_trusted=False)
    desk.daemon.lead(None, term=2)
    waiting = [desk.ask("node.standby", STANDBY, who=eve) for _ in range(REQUESTS_OF_OTHERS_MAX)]
    refused = desk.ask("node.standby", STANDBY, who=eve)
    assert desk.codes(refused) == ["TRY_AGAIN"]
    assert f"{REQUESTS_OF_OTHERS_MAX} requests of users" in str(desk.response(refused))
    assert desk.response(desk.ask("node.standby", STANDBY)) is None
    desk.daemon.clock.run(NO_LEADER_WAIT_MS)
    assert all(desk.codes(name) == ["NO_QUORUM"] for name in waiting)
    assert desk.response(desk.ask("node.standby", STANDBY, who=eve)) is None


MAY_BE_ROOT = {
    "api.token_add", "api.token_list", "api.token_revoke", "assist.template", "assist.weak_bond",
    "cluster.address", "cluster.backup", "cluster.certificates", "cluster.export", "cluster.invite", "cluster.remove",
    "cluster.vote", "configure.apply", "configure.default_timeouts", "configure.delete", "configure.erase",
    "configure.load", "configure.modgroup", "configure.rename", "configure.rollback", "configure.script",
    "configure.set", "configure.statement", "configure.unset", "configure.validate_all", "fencing.confirm",
    "fencing.test", "node.fence", "node.utilization", "resource.secret", "resource.setting", "resource.trace",
    "sbd.device", "sbd.watchdog", "secret.delete", "secret.rotate", "secret.set", "secret.show",
}  # fmt: skip
"""What names agents and parameters, lets machines in, switches them off, or gives secrets away."""


def test_whatever_leads_to_commands_of_roots_choice_needs_the_highest_permission() -> None:
    found = {name for name, verb in registry.VERBS.items() if verb.permission is Permission.ADMINISTER}
    assert found == MAY_BE_ROOT


@pytest.mark.parametrize(
    ("wanted", "verb", "arguments", "is_permitted"),
    [
        (None, "configure.statement", {"words": ["primitive", "x", "ocf:haclusterd:exec"]}, False),
        (None, "configure.show", {"secrets": True}, False),
        (None, "configure.show", {}, True),
        (None, "node.standby", STANDBY, True),
        ("read", "node.standby", STANDBY, False),
        ("administer", "configure.show", {"secrets": True}, True),
        ("administer", "configure.set", {"path": "n2.standby", "value": "on"}, True),
    ],
)
def test_who_is_not_root_may_what_the_property_says_and_is_shown_what_to_do(
    *, wanted: str | None, verb: str, arguments: dict[str, Json], is_permitted: bool
) -> None:
    desk = Desk()
    if wanted is not None:
        text = f"property control-group-permission={wanted}"
        desk.ask("configure.script", {"text": text, "source": "x"}, Options(wait_ms=0))
        desk.daemon.settle()
    name = desk.ask(verb, arguments, Options(wait_ms=0), desk.control.caller("eve@n1", is_trusted=False))
    desk.daemon.settle()
    assert ("NOT_PERMITTED" not in desk.codes(name)) is is_permitted
    response = desk.response(name)
    assert response is not None
    remedies = "".join(each.remedy for each in response.reports)
    assert ("be root" in remedies and "control-group-permission" in remedies) is not is_permitted
    assert desk.control.caller("root@n1", is_trusted=True).principal.is_superuser


def test_an_unknown_verb_is_refused() -> None:
    desk = Desk()
    name = desk.ask("node.explode")
    assert desk.codes(name) == ["UNKNOWN_VERB"]


def test_a_dry_run_proposes_nothing() -> None:
    desk = Desk()
    name = desk.ask("node.standby", STANDBY, Options(dry_run=True))
    assert "DRY_RUN" in desk.codes(name)
    assert desk.daemon.store.entries == []


# -- what becomes of a proposal ---------------------------------------------------------------------------------------


def test_what_is_not_committed_in_time_is_unknown_and_not_repeated() -> None:
    desk = Desk()
    name = desk.ask("node.standby", STANDBY)
    desk.daemon.clock.run(COMMIT_WAIT_MS - 1)
    assert desk.response(name) is None
    desk.daemon.clock.run(1)
    assert (desk.codes(name), status_of(desk, name)) == (["OUTCOME_UNKNOWN"], ExitStatus.INDETERMINATE)
    desk.daemon.store.entries.clear()
    desk.daemon.clock.run(COMMIT_WAIT_MS)
    assert desk.daemon.store.entries == []


def test_without_a_leader_it_is_said_who_is_missing() -> None:
    desk = Desk()
    desk.daemon.lead(None, term=2)
    name = desk.ask("node.standby", STANDBY)
    desk.daemon.clock.run(NO_LEADER_WAIT_MS)
    assert (desk.codes(name), status_of(desk, name)) == (["NO_QUORUM"], ExitStatus.NO_QUORUM)


def test_without_a_leader_what_is_so_already_is_said_to_be_known_from_before() -> None:
    desk = Desk()
    change = {"words": ["property", "batch-limit=3"]}
    desk.ask("configure.statement", change)
    desk.daemon.settle()
    assert desk.codes(desk.ask("configure.statement", change)) == ["NOTHING_TO_DO"]
    desk.daemon.lead(None, term=2)
    desk.daemon.clock.run(10_000)
    assert desk.codes(desk.ask("configure.statement", change)) == ["NOTHING_TO_DO", "STALE"]


def test_what_the_lost_leader_may_have_is_not_said_to_have_failed() -> None:
    desk = Desk()
    name = desk.ask("node.standby", STANDBY)
    desk.daemon.clock.run(1000)
    desk.daemon.lead(None, term=2)
    desk.daemon.clock.run(COMMIT_WAIT_MS)
    assert (desk.codes(name), status_of(desk, name)) == (["OUTCOME_UNKNOWN"], ExitStatus.INDETERMINATE)


def test_several_writes_wait_for_a_leader_once() -> None:
    """A database's agent writes six attributes while it demotes, without a lease: half a minute of it would be ours."""
    desk = Desk()
    desk.daemon.lead(None, term=2)
    desk.daemon.clock.run(NO_LEADER_WAIT_MS - 1000)
    began = desk.daemon.clock.now()
    for number in range(6):
        words = ["-N", "n1", "-n", f"a{number}", "-l", "reboot", "-v", "1"]
        name = desk.ask("tool.run", {"tool": "crm_attribute", "words": words})
        while desk.response(name) is None:
            desk.daemon.clock.run(100)
        assert desk.codes(name) == ["NO_QUORUM"]
    assert desk.daemon.clock.now() - began <= 1000 + 5 * NO_LEADER_WAIT_MIN_MS + 100


def test_a_person_waits_for_a_leader_however_long_there_was_none() -> None:
    desk = Desk()
    desk.daemon.lead(None, term=2)
    desk.daemon.clock.run(NO_LEADER_WAIT_MS)
    name = desk.ask("node.standby", STANDBY)
    desk.daemon.clock.run(NO_LEADER_WAIT_MS - 1)
    assert desk.response(name) is None
    desk.daemon.lead(N1, term=3)
    desk.daemon.settle()
    assert status_of(desk, name) == 0


def test_a_late_commit_answers_nobody_twice() -> None:
    desk = Desk()
    name = desk.ask("node.standby", STANDBY)
    desk.daemon.clock.run(COMMIT_WAIT_MS)
    desk.daemon.settle()
    assert desk.codes(name) == ["OUTCOME_UNKNOWN"]


def test_a_configuration_that_changed_meanwhile_is_decided_upon_again() -> None:
    desk = Desk()
    name = desk.ask("node.standby", {"node": "n2"})
    put_on_another_node(desk)
    desk.daemon.settle()
    assert status_of(desk, name) == 0
    assert set(desk.daemon.cib.configuration.nodes) == {N2, N3}


def test_after_some_conflicts_it_is_said_who_was_faster() -> None:
    desk = Desk()
    name = desk.ask("node.standby", {"node": "n2"})
    for _ in range(10):
        put_on_another_node(desk)
        desk.daemon.store.commit_all()
        assert desk.response(name) is None
        desk.daemon.clock.run(CONFLICT_RETRY_MS // 10)
    put_on_another_node(desk)
    desk.daemon.store.commit_all()
    assert (desk.codes(name), status_of(desk, name)) == (["CONFLICT"], ExitStatus.OUTDATED)
    [report] = desk.response(name).reports
    assert "bob" in report.message


def test_a_refusal_is_reported() -> None:
    desk = Desk()
    desk.daemon.put(commands.ChangeConfiguration(0, (PutResource(primitive("power", "stonith:x")),), "a", ""))
    desk.daemon.clock.run()
    name = desk.ask("node.fence", {"node": "n3"}, Options(force=True))
    known = desk.daemon.cib.status.nodes[N3].incarnation
    desk.daemon.put(commands.Lost(N3, known, Term(1), "silent"))
    desk.daemon.settle()
    assert desk.codes(name) == ["REFUSED"]


# -- waiting ----------------------------------------------------------------------------------------------------------


def fencing(wait_ms: int | None) -> tuple[Desk, str]:
    desk = Desk()
    desk.daemon.put(commands.ChangeConfiguration(0, (PutResource(primitive("power", "stonith:x")),), "a", ""))
    desk.daemon.clock.run()
    name = desk.ask("node.fence", {"node": "n3"}, Options(force=True, wait_ms=wait_ms))
    desk.daemon.settle()
    assert desk.daemon.cib.status.nodes[N3].state is NodeState.LOST
    return desk, name


@pytest.mark.parametrize("wait_ms", [None, 0])
def test_who_does_not_wait_is_answered_at_the_commit(wait_ms: int | None) -> None:
    desk, name = fencing(wait_ms)
    assert status_of(desk, name) == 0


def fence_n3(desk: Desk) -> None:
    life = desk.daemon.cib.status.nodes[N3].incarnation
    desk.daemon.put(commands.Fenced(N3, life, None, FenceOutcome.CONFIRMED, "down"))
    desk.daemon.clock.run()


def test_who_waits_gets_progress_and_an_answer_when_it_is_so() -> None:
    desk, name = fencing(60_000)
    desk.daemon.clock.run(3 * PROGRESS_MS)
    assert [type(each) for each in desk.answers[name]] == [Progress] * 4
    fence_n3(desk)
    assert status_of(desk, name) == 0
    desk.daemon.clock.run(120_000)
    assert desk.response(name) is not None


def test_who_waited_in_vain_is_answered_so() -> None:
    desk, name = fencing(5000)
    desk.daemon.clock.run(4999)
    assert desk.response(name) is None
    desk.daemon.clock.run(1)
    assert status_of(desk, name) == ExitStatus.TIMEOUT
    fence_n3(desk)
    assert desk.codes(name)[-1] == "TIMEOUT"


def test_there_is_a_limit_of_requests_and_each_answer_makes_room() -> None:
    desk = Desk()
    names = [desk.ask("node.standby", STANDBY) for _ in range(REQUESTS_MAX)]
    assert desk.codes(desk.ask("node.show")) == ["TRY_AGAIN"]
    desk.daemon.settle()
    assert all(desk.response(name) is not None for name in names)
    assert status_of(desk, desk.ask("node.show")) == 0


@pytest.mark.parametrize("kind", [GAP, "written-by-a-later-version"])
def test_a_history_with_rows_that_no_entry_made_is_shown_whole(kind: str) -> None:
    desk = Desk()
    row = HistoryRow(7, 0, WallTime(5), kind, None, None, "entries 3 to 7 are not known here")
    history = desk.daemon.runtime.ports.history
    assert isinstance(history, ListHistory)
    history.rows.append(row)
    response = desk.response(desk.ask("history.events"))
    assert response is not None
    assert response.exit == 0
    assert "entries 3 to 7 are not known here" in str(response.data)


def test_a_daemon_that_has_just_started_lets_requests_wait_until_it_knows_what_the_others_know() -> None:
    daemon = Daemon()
    desk = Desk(daemon)
    name = desk.ask("status")
    assert desk.response(name) is None
    daemon.form()
    response = desk.response(name)
    assert response is not None
    assert "'n1'" in str(response.data)


# -- every repetition and every wait has its end ------------------------------------------------------------------


class SlowHistory(ListHistory):
    """A history that takes time for each answer, or gives none."""

    def __init__(self, desk: Desk, takes_ms: int | None) -> None:
        super().__init__()
        self.queries = 0
        self._clock = desk.daemon.clock
        self._takes_ms = takes_ms
        desk.daemon.runtime.ports.history.query = self.query

    def query(self, query: HistoryQuery, done: Callable[[HistoryAnswer], None]) -> None:
        self.queries += 1
        assert self.queries <= READINGS_MAX, "without end"
        if self._takes_ms is not None:
            until = Instant(self._clock.now() + self._takes_ms)
            self._clock.call_at(until, lambda: done(HistoryAnswer(())))


def test_what_happened_since_a_while_ago_is_read_once_however_long_that_takes() -> None:
    desk = Desk()
    history = SlowHistory(desk, takes_ms=5)
    name = desk.ask("history.events", {"since": "1h", "limit": 100})
    desk.daemon.clock.run(1000)
    assert status_of(desk, name) == 0
    assert history.queries == 1


def endless(context: Context, _arguments: Arguments) -> Outcome[Never]:
    """Ask for something else whenever it is run."""
    assert context.past is not None
    context.past.recall(HistoryQuery(limit=next(ENDLESS)))
    return Outcome()


ENDLESS = count(1)


def test_a_verb_that_never_has_read_enough_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    verb = RunnableVerb("history.endless", Permission.READ, "never ends", function=endless)
    monkeypatch.setitem(registry.VERBS, "history.endless", verb)
    desk = Desk()
    history = SlowHistory(desk, takes_ms=5)
    name = desk.ask("history.endless")
    desk.daemon.clock.run(1000)
    assert (desk.codes(name), status_of(desk, name)) == (["NOT_ANSWERED"], ExitStatus.FAILED)
    assert history.queries == READINGS_MAX


def test_a_history_that_does_not_answer_is_not_waited_for_without_end() -> None:
    desk = Desk()
    SlowHistory(desk, takes_ms=None)
    name = desk.ask("history.events")
    desk.daemon.clock.run(READING_WAIT_MS)
    assert (desk.codes(name), status_of(desk, name)) == (["TAKES_TOO_LONG"], ExitStatus.TIMEOUT)


def must_have_room_for_all(desk: Desk) -> None:
    desk.daemon.lead(None, term=2)
    waiting = [desk.ask("node.standby", STANDBY) for _ in range(REQUESTS_MAX)]
    assert [desk.response(name) for name in waiting] == [None] * REQUESTS_MAX


def test_what_only_the_client_waited_for_ends_when_it_hangs_up() -> None:
    desk = Desk()
    history = SlowHistory(desk, takes_ms=5)
    name = desk.ask("history.transition")
    desk.hang_ups[name]()
    desk.daemon.clock.run(1000)
    assert history.queries == 1
    assert desk.answers[name] == []
    must_have_room_for_all(desk)


def test_a_consistent_read_whose_client_hangs_up_ends_with_its_barrier() -> None:
    desk = Desk()
    name = desk.ask("node.show", options=Options(is_consistent=True))
    desk.hang_ups[name]()
    desk.daemon.settle()
    assert desk.answers[name] == []
    must_have_room_for_all(desk)


def test_what_was_proposed_is_finished_when_the_client_hangs_up() -> None:
    desk = Desk()
    name = desk.ask("node.standby", STANDBY)
    desk.hang_ups[name]()
    desk.daemon.settle()
    assert desk.daemon.cib.status.nodes[N2].attributes == {"standby": "on"}
    assert desk.answers[name] == []
    must_have_room_for_all(desk)


def test_nobody_waits_for_a_client_that_hung_up() -> None:
    desk, name = fencing(wait_ms=60_000)
    desk.hang_ups[name]()
    count = len(desk.answers[name])
    must_have_room_for_all(desk)
    desk.daemon.clock.run(60_000)
    assert len(desk.answers[name]) == count


# -- what takes long --------------------------------------------------------------------------------------------------


LARGE: dict[str, Json] = {
    "text": "\n".join(f"primitive r{number} ocf:haclusterd:dummy op monitor interval=10s" for number in range(600)),
    "source": "x",
}
"""A change that is larger than one entry."""


def desk_with_agent() -> Desk:
    desk = Desk()
    desk.daemon.agents.known = (AgentReference("ocf", "haclusterd", "dummy"),)
    return desk


def test_a_large_change_is_read_while_other_requests_are_answered() -> None:
    desk = desk_with_agent()
    desk.daemon.background.is_held = True
    name = desk.ask("configure.script", LARGE)
    assert desk.response(name) is None
    assert len(desk.daemon.background.held) == 1
    assert status_of(desk, desk.ask("node.show")) == 0
    desk.daemon.background.release_all()
    desk.daemon.settle()
    assert status_of(desk, name) == 0
    assert len(desk.daemon.cib.configuration.resources) == 600


def test_a_large_change_is_decided_again_when_the_configuration_has_changed_meanwhile() -> None:
    usual, disturbed = desk_with_agent(), desk_with_agent()
    rounds = []
    for desk in (usual, disturbed):
        desk.daemon.background.is_held = True
        name = desk.ask("configure.script", LARGE)
        if desk is disturbed:
            put_on_another_node(desk)
        rounds.append(desk.daemon.background.release_all())
        desk.daemon.settle()
        assert status_of(desk, name) == 0
        assert len(desk.daemon.cib.configuration.resources) == 600
    assert rounds[1] == rounds[0] + 1


@pytest.mark.parametrize(
    ("verb", "options"), [("simulate", PLAIN), ("resource.scores", PLAIN), ("node.standby", Options(dry_run=True))]
)
def test_what_asks_the_scheduler_does_so_in_the_background(verb: str, options: Options) -> None:
    desk = Desk()
    desk.daemon.background.is_held = True
    name = desk.ask(verb, STANDBY if verb == "node.standby" else {}, options)
    assert desk.response(name) is None
    desk.daemon.background.release_all()
    assert status_of(desk, name) == 0


@pytest.mark.parametrize("verb", ["configure.show", "configure.delete"])
def test_many_names_are_looked_up_in_the_background(verb: str) -> None:
    """Of each that is unknown the nearest is looked for: a list of thousands would take most of a second."""
    desk = Desk()
    desk.daemon.background.is_held = True
    few, many = (desk.ask(verb, {"ids": [f"r{number}" for number in range(count)]}) for count in (8, MANY_WORDS))
    assert desk.response(few) is not None
    assert desk.response(many) is None
    desk.daemon.background.release_all()
    assert desk.response(many) is not None


def large_desk() -> Desk:
    desk = desk_with_agent()
    loaded = desk.ask("configure.script", LARGE)
    desk.daemon.settle()
    assert status_of(desk, loaded) == 0
    return desk


LARGE_CASES: Mapping[str, dict[str, Json]] = {
    "configure.set": {"path": "r1.is-managed", "value": "false"},
    "node.maintenance": {"node": "n2"},
    "resource.stop": {"resources": ["r1"]},
    "resource.move": {"resource": "r1", "node": "n2"},
    "status": {},
    "configure.show": {},
    "cluster.export": {},
}


@pytest.mark.parametrize("verb", LARGE_CASES)
def test_in_a_large_cluster_what_looks_at_all_of_it_is_not_run_on_the_main_loop(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = large_desk()
    desk.daemon.background.is_held = True
    runs = []
    original = registry.run
    monkeypatch.setattr(registry, "run", lambda *arguments: runs.append(verb) or original(*arguments))
    name = desk.ask(verb, LARGE_CASES[verb], Options(wait_ms=0, force=True))
    desk.daemon.clock.run()
    assert runs == []
    while desk.daemon.background.release_all() or desk.daemon.store.entries:
        desk.daemon.settle()
    assert status_of(desk, name) == 0
    assert len(runs) >= 1


@pytest.mark.parametrize(("is_too_long", "code"), [(True, "TAKES_TOO_LONG"), (False, "NOT_ANSWERED")])
def test_what_goes_too_far_in_another_process_is_an_answer_with_its_reason(*, is_too_long: bool, code: str) -> None:
    desk = Desk()
    desk.daemon.background.failure = WorkFailed("it needs more than 256 MiB of memory", is_too_long)
    name = desk.ask("resource.scores")
    assert desk.codes(name) == [code]
    response = desk.response(name)
    assert response is not None
    assert "256 MiB" in response.reports[0].message


def test_who_waits_for_another_process_hears_of_it_and_who_hangs_up_ends_it() -> None:
    desk = Desk()
    desk.daemon.background.is_held = True
    name = desk.ask("resource.scores")
    desk.daemon.clock.run(3 * PROGRESS_MS)
    assert len(desk.answers[name]) == 3
    desk.hang_ups[name]()
    desk.daemon.background.release_all()
    assert len(desk.answers[name]) == 3
    must_have_room_for_all(desk)


def test_changes_that_take_long_are_decided_one_after_the_other_and_none_in_vain() -> None:
    desk = large_desk()
    desk.daemon.background.is_held = True
    names = [
        desk.ask("configure.set", {"path": f"r{number}.is-managed", "value": "false"}, Options(wait_ms=0))
        for number in range(5)
    ]
    decided = 0
    while desk.daemon.background.held:
        assert len(desk.daemon.background.held) == 1
        desk.daemon.background.release()
        decided += 1
    desk.daemon.settle()
    assert [status_of(desk, name) for name in names] == [0] * 5
    assert decided == 5 * 2, "each is run once more when the agents' meta-data has been read"


def test_a_decision_whose_client_hung_up_keeps_nobody_waiting() -> None:
    desk = large_desk()
    desk.daemon.background.is_held = True
    first, second = (
        desk.ask("configure.set", {"path": f"r{number}.is-managed", "value": "false"}, Options(wait_ms=0))
        for number in range(2)
    )
    desk.hang_ups[first]()
    desk.daemon.background.release_all()
    desk.daemon.settle()
    assert desk.answers[first] == []
    assert status_of(desk, second) == 0
    assert desk.daemon.cib.version.epoch == 2


def test_what_takes_a_plan_to_be_waited_for_is_not_looked_at_on_the_main_loop() -> None:
    """The first plan loads the scheduler, which takes long even in a small cluster."""
    desk = Desk()
    name = desk.ask("node.standby", STANDBY, Options(wait_ms=10_000))
    desk.daemon.background.is_held = True
    desk.daemon.settle()
    assert len(desk.daemon.background.held) == 1
    desk.daemon.background.release_all()
    assert status_of(desk, name) == 0


def test_in_a_large_cluster_what_is_waited_for_is_looked_at_in_the_background() -> None:
    desk = large_desk()
    name = desk.ask("node.standby", STANDBY, Options(wait_ms=60_000))
    desk.daemon.background.is_held = True
    desk.daemon.settle()
    assert desk.response(name) is None
    for _ in range(5):
        desk.daemon.put(commands.SetTransientAttribute(N2, "x", "1"))
        desk.daemon.clock.run(1)
    assert len(desk.daemon.background.held) == 1, "one look at a time"
    desk.daemon.background.is_held = False
    desk.daemon.background.release_all()
    desk.daemon.clock.run(60_000)
    assert desk.response(name) is not None


def test_after_a_wait_that_ended_in_the_midst_of_a_look_the_next_wait_looks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `resource restart` does: it waits for the stop, for a while, and then for the start."""

    def then(_: Cib, is_met: bool) -> Outcome[Never]:
        assert not is_met
        return Outcome(until=lambda *_: True, until_plans=True, waits_by_default=True, wait_ms_max=60_000, commands=(
            commands.SetTransientAttribute(N2, "started", "1"),))  # fmt: skip

    def run(_: Arguments, __: Context) -> Outcome[Never]:
        return Outcome(
            commands=(commands.SetTransientAttribute(N2, "stopped", "1"),),
            until=lambda *_: False, until_plans=True, waits_by_default=True, wait_ms_max=5000, afterwards=then,
        )  # fmt: skip

    verb = RunnableVerb("resource.twice", Permission.OPERATE, "waits twice", function=run)
    monkeypatch.setitem(registry.VERBS, "resource.twice", verb)
    desk = Desk()
    name = desk.ask("resource.twice")
    desk.daemon.background.is_held = True
    desk.daemon.settle()
    assert len(desk.daemon.background.held) == 1, "it is looked"
    desk.daemon.clock.run(5000)
    desk.daemon.settle()
    assert desk.daemon.cib.status.nodes[N2].attributes["started"] == "1"
    desk.daemon.background.is_held = False
    desk.daemon.background.release_all()
    desk.daemon.clock.run(1000)
    assert status_of(desk, name) == 0


@pytest.mark.parametrize(("only_reports", "asked"), [(True, 0), (False, 1)])
def test_what_would_only_be_reported_is_not_waited_for_when_nobody_reads_it(
    monkeypatch: pytest.MonkeyPatch, only_reports: bool, asked: int
) -> None:
    met: list[bool] = []

    def then(_: Cib, is_met: bool) -> Outcome[Never]:
        met.append(is_met)
        return Outcome()

    def run(_: Arguments, __: Context) -> Outcome[Never]:
        return Outcome(
            commands=(commands.SetTransientAttribute(N2, "begun", "1"),), until=lambda *_: False,
            waits_by_default=True, wait_ms_max=5000, afterwards=then, only_reports=only_reports,
        )  # fmt: skip

    monkeypatch.setitem(
        registry.VERBS, "resource.late", RunnableVerb("resource.late", Permission.OPERATE, "waits", function=run)
    )
    desk = Desk()
    gone, left, waiting = (desk.ask("resource.late"), desk.ask("resource.late", options=Options(wait_ms=0)),
                           desk.ask("resource.late"))  # fmt: skip
    desk.daemon.settle()
    desk.hang_ups[gone]()
    desk.daemon.clock.run(5000)
    assert (len(met), status_of(desk, left), status_of(desk, waiting)) == (1 + 2 * asked, 0, 0)


SETTLING: dict[str, Json] = {"tool": "crm_resource", "words": ["--wait", "-T", "5s"]}


def test_what_changes_nothing_may_wait_until_the_cluster_has_settled() -> None:
    desk = Desk()
    desk.daemon.background.is_held = True
    name = desk.ask("tool.run", SETTLING)
    desk.daemon.settle()
    assert desk.response(name) is None
    desk.daemon.background.is_held = False
    desk.daemon.background.release_all()
    assert status_of(desk, name) == 0


def test_it_gives_up_after_its_time_and_when_nobody_listens_any_more() -> None:
    desk = Desk()
    desk.daemon.background.is_held = True
    name, left = desk.ask("tool.run", SETTLING), desk.ask("tool.run", SETTLING)
    desk.daemon.settle()
    desk.hang_ups[left]()
    desk.daemon.clock.run(5000)
    assert status_of(desk, name) == 124
    assert desk.response(left) is None


# API tokens.

STANDING_BY: dict[str, Json] = {"node": "n2", "lifetime": "reboot"}


@pytest.mark.parametrize(
    ("role", "verb", "arguments", "is_permitted"),
    [
        ("viewer", "status", {}, True),
        ("viewer", "configure.show", {"secrets": True}, False),
        ("viewer", "node.standby", STANDING_BY, False),
        ("viewer", "api.token_list", {}, False),
        ("operator", "node.standby", STANDING_BY, True),
        ("operator", "configure.set", {"path": "n2.standby", "value": "on"}, False),
        ("operator", "api.token_add", {"name": "x", "role": "admin", "digest": "0" * 64}, False),
        ("admin", "configure.set", {"path": "n2.standby", "value": "on"}, True),
        ("admin", "api.token_list", {}, True),
    ],
)
def test_a_token_may_what_its_role_says(
    *, role: str, verb: str, arguments: dict[str, Json], is_permitted: bool
) -> None:
    desk = Desk()
    desk.accept_token(role, "hacl_secret", "robot")
    name = desk.ask(verb, arguments, Options(wait_ms=0), desk.control.bearer("hacl_secret"))
    desk.daemon.settle()
    response = desk.response(name)
    assert response is not None
    assert ("NOT_PERMITTED" not in desk.codes(name)) is is_permitted
    assert is_permitted or "crm api token add" in response.reports[0].remedy


@pytest.mark.parametrize("verb", sorted(registry.VERBS))
def test_every_verb_asks_for_a_role(verb: str) -> None:
    """Derived from the table, so that no verb escapes the check: each is refused to the role below its own."""
    below = {Permission.OPERATE: "viewer", Permission.ADMINISTER: "operator"}.get(registry.VERBS[verb].permission)
    desk = Desk()
    assert desk.codes(desk.ask(verb, who=desk.control.bearer("hacl_wrong"))) == ["NOT_AUTHENTICATED"]
    if below is not None:
        desk.accept_token(below, "hacl_secret")
        assert desk.codes(desk.ask(verb, who=desk.control.bearer("hacl_secret"))) == ["NOT_PERMITTED"]


def test_a_token_is_accepted_until_it_expires_or_is_revoked() -> None:
    desk = Desk()
    desk.accept_token("viewer", "hacl_short", "short", "10s")
    desk.accept_token("viewer", "hacl_long", "long", "never")

    def codes(token: str) -> list[str]:
        return desk.codes(desk.ask("status", who=desk.control.bearer(token)))

    assert codes("hacl_short") == codes("hacl_long") == []
    desk.daemon.clock.run(10_000)
    assert codes("hacl_short") == ["NOT_AUTHENTICATED"]
    revoked = desk.ask("api.token_revoke", {"name": "long"})
    desk.daemon.settle()
    assert desk.codes(revoked) == ["REQUESTED"]
    assert codes("hacl_long") == codes("") == codes("x" * 10_000) == ["NOT_AUTHENTICATED"]
    assert list(desk.daemon.cib.api_tokens) == ["short"]


def test_the_history_says_which_token_it_was_and_never_what_it_is() -> None:
    desk = Desk()
    desk.accept_token("operator", "hacl_secret", "robot")
    who = desk.control.bearer("hacl_secret")
    desk.ask("node.standby", STANDBY, Options(reason="new disk"), who)
    desk.daemon.settle()
    history = desk.daemon.runtime.ports.history
    assert isinstance(history, ListHistory)
    rows = [(row.kind, row.text, row.detail_json) for row in history.rows]
    assert any("token:robot@n1" in detail and "new disk" in detail for _, _, detail in rows)
    assert not any("hacl_secret" in f"{text}{detail}" or digest_of("hacl_secret") in f"{text}{detail}"
                   for _, text, detail in rows)  # fmt: skip
    assert "hacl_secret" not in repr(Request("1", "status", credential="hacl_secret"))


def test_the_history_says_by_what_a_change_came() -> None:
    desk = Desk()
    desk.accept_token("operator", "hacl_secret", "ops")
    who = desk.control.bearer("hacl_secret")
    desk.control.handle(Request("a", "node.standby", STANDBY, origin="web for CN:alice"), who, lambda _: None)
    words = ["-N", "n2", "-n", "rack", "-v", "7"]
    tool = desk.ask("tool.run", {"tool": "crm_attribute", "words": words})
    desk.daemon.settle()
    history = desk.daemon.runtime.ports.history
    assert isinstance(history, ListHistory)
    details = [row.detail_json for row in history.rows]
    assert any('"token:ops@n1 via web for CN:alice"' in each for each in details)
    assert any("via crm_attribute" in each for each in details), (details, desk.response(tool))
    whoami = desk.response(desk.ask("api.whoami", who=who))
    assert whoami is not None
    assert whoami.data["author"] == "token:ops@n1"


def test_a_change_for_another_version_is_refused_and_an_answer_says_over_which_it_was_found() -> None:
    desk = Desk()
    asked: dict[str, Json] = {"words": ["node", "n2", "attributes", "rack=4"]}
    late = desk.ask("configure.statement", asked, Options(wait_ms=0, if_version=7))
    desk.daemon.settle()
    assert desk.codes(late) == ["CONFLICT"]
    made = desk.ask("configure.statement", asked, Options(wait_ms=0, if_version=0))
    desk.daemon.settle()
    response = desk.response(made)
    assert response is not None
    assert response.exit == 0
    assert response.basis is not None
    assert (response.basis.node, response.basis.version, response.basis.stale_ms) == ("n1", 1, 0)
