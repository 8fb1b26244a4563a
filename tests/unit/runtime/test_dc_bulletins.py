"""What the DC knows beside the CIB is written to its peers, and shown there as long as it is repeated."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.codec import FEATURE_LEVEL
from haclusterd.model.graph import Plan, TransitionGraph
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.protocol.dc_bulletin import WARNINGS_MAX, DcBulletin, decode, encode
from haclusterd.runtime import dc_bulletins
from haclusterd.runtime.dc_bulletins import REPEAT_MS, SHOWN_MS
from haclusterd.runtime.requests.live_view import live_view
from tests.unit.runtime.one_daemon import N1, N2, N3, Daemon

WARNING = "n3 is lost and no fencing device can fence it"


def dc(*warnings: str) -> Daemon:
    """A DC whose peers can be reached."""
    daemon = Daemon(lambda _cib, _now: Plan(TransitionGraph(), {}, warnings=warnings))
    daemon.peer_messages.peers = (N2, N3)
    return daemon.form(leader=N1)


def written(daemon: Daemon) -> dict[NodeName, DcBulletin]:
    """Return the newest bulletin to each peer, and forget them all."""
    found = {to: decode(message) for to, message in daemon.peer_messages.sent}
    daemon.peer_messages.sent.clear()
    return found


def shown(daemon: Daemon) -> tuple[str, ...]:
    return live_view(daemon.runtime).plan_warnings


def test_the_dc_writes_what_its_plan_warns_of_to_all_it_can_reach_and_repeats_it() -> None:
    daemon = dc(WARNING)
    daemon.clock.run(1_000)
    assert {to: each.warnings for to, each in written(daemon).items()} == {N2: (WARNING,), N3: (WARNING,)}
    daemon.clock.run(REPEAT_MS - 1_500)
    assert written(daemon) == {}, "nothing is new"
    daemon.clock.run(2_000)
    assert set(written(daemon)) == {N2, N3}


def test_who_can_be_reached_again_is_written_to_at_once() -> None:
    daemon = dc(WARNING)
    daemon.peer_messages.peers = (N2,)
    daemon.clock.run(1_000)
    written(daemon)
    daemon.peer_messages.peers = (N2, N3)
    daemon.lead(N1)
    daemon.clock.run(500)
    assert set(written(daemon)) == {N3}


def test_nodes_of_older_versions_are_not_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dc_bulletins, "SINCE_LEVEL", FEATURE_LEVEL + 1)
    daemon = dc(WARNING)
    daemon.put(commands.Join(N3, Incarnation("n3-boot2", "e" * 16), feature_level=FEATURE_LEVEL + 1))
    daemon.clock.run(REPEAT_MS)
    assert set(written(daemon)) == {N3}


def test_who_is_not_dc_writes_nothing() -> None:
    daemon = dc(WARNING)
    daemon.lead(N2, term=2)
    daemon.clock.run(1_000)
    written(daemon)
    daemon.clock.run(2 * REPEAT_MS)
    assert written(daemon) == {}
    assert shown(daemon) == (), "what was its own is another's now"


def test_what_the_dc_writes_is_shown() -> None:
    daemon = Daemon().form(leader=N2)
    daemon.peer_messages.come(N2, encode(DcBulletin(1, (WARNING,), "the scheduler: KeyError", (7, 3, 9))))
    view = live_view(daemon.runtime)
    assert (view.plan_warnings, view.scheduler_error) == ((WARNING,), "the scheduler: KeyError")
    assert view.transition is not None
    assert (view.transition.number, view.transition.done, view.transition.total) == (7, 3, 9)


def test_what_another_writes_or_of_another_term_is_not_shown() -> None:
    daemon = Daemon().form(leader=N2)
    daemon.peer_messages.come(N3, encode(DcBulletin(1, (WARNING,))))
    assert shown(daemon) == ()
    daemon.peer_messages.come(N2, encode(DcBulletin(0, (WARNING,))))
    assert shown(daemon) == ()


def test_a_bulletin_that_is_not_repeated_is_shown_no_more_and_that_is_said() -> None:
    daemon = Daemon().form(leader=N2)
    daemon.clock.run(SHOWN_MS)
    daemon.peer_messages.come(N2, encode(DcBulletin(1, (WARNING,))))
    daemon.clock.run(SHOWN_MS - 1)
    assert shown(daemon) == (WARNING,)
    daemon.clock.run(1)
    assert shown(daemon) == ("n2, which is DC, does not say here what its plan warns of: crm status there",)


def test_a_new_dc_has_time_to_write() -> None:
    daemon = Daemon().form(leader=N2)
    assert shown(daemon) == ()
    daemon.clock.run(SHOWN_MS)
    assert "does not say here" in shown(daemon)[0]
    daemon.lead(N3, term=2)
    daemon.clock.run()
    assert shown(daemon) == ()


def test_damaged_bulletins_are_not_shown() -> None:
    daemon = Daemon().form(leader=N2)
    whole = encode(DcBulletin(1, (WARNING,)))
    for damaged in (whole[:-3], whole[:1], whole + b"x", b"\x02" + whole[2:], b"\x02"):
        daemon.peer_messages.come(N2, damaged)
        assert shown(daemon) == ()


def test_a_long_bulletin_says_what_it_leaves_out() -> None:
    many = tuple(f"warning {number} " + "é" * 1_000 for number in range(WARNINGS_MAX + 5))
    message = encode(DcBulletin(1, many, "x" * 100_000))
    read = decode(message)
    assert len(message) < 256 * 1024
    assert len(read.warnings) == WARNINGS_MAX + 1
    assert read.warnings[-1] == "5 more, which only the DC shows"
    assert len(read.warnings[0]) == 500
