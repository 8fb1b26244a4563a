"""Moves and bans with a lifetime: once it is over the DC takes their constraints away, and nothing else."""

from haclusterd.cib.edits import PutConstraint, PutSets
from haclusterd.machines.moment import Moment
from haclusterd.machines.rule_judge import LOOK_MS, EndedMoves
from haclusterd.model.configuration import Location
from haclusterd.model.ids import ConstraintId
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.lifetimes import end_of, ends, lasting, node_of, score_of
from tests.unit.situations import DB, N2, TERM, Cluster

NOON = WallTime(1_800_000_000_000)


def at(wall: int, now: int = 0) -> Moment:
    return Moment(Instant(now), WallTime(wall), Instant(NEVER))


def ban(end: WallTime | None, id_: str = "cli-ban-db-on-n2") -> Location:
    location = Location(ConstraintId(id_), DB, N2, -INFINITY)
    return location if end is None else lasting(location, end)


def test_what_lasts_is_read_back() -> None:
    location = ban(NOON)
    assert (node_of(location), score_of(location), end_of(location)) == (N2, -INFINITY, NOON)
    assert (node_of(ban(None)), end_of(ban(None))) == (N2, None)


def test_what_has_ended_goes_and_what_has_not_stays() -> None:
    cluster, watch = Cluster(), EndedMoves(TERM)
    own = lasting(Location(ConstraintId("own"), DB, N2, 5), NOON)
    later = ban(WallTime(NOON + 1000), "cli-prefer-db")
    cluster.configure(*(PutConstraint(each) for each in (ban(NOON), later, ban(None, "cli-ban-x"), own)))
    assert cluster.take(watch.step(cluster.cib, at(NOON - 300, now=5))) == []
    assert watch.deadline() == Instant(305)
    assert len(cluster.take(watch.step(cluster.cib, at(NOON, now=305)))) == 1
    assert list(cluster.cib.configuration.constraints) == ["cli-prefer-db", "cli-ban-x", "own"]
    assert cluster.take(watch.step(cluster.cib, at(NOON, now=305))) == []
    assert watch.deadline() == Instant(1305)


def test_a_refused_proposal_is_made_again_over_the_new_version() -> None:
    cluster, watch = Cluster(), EndedMoves(TERM)
    cluster.configure(PutConstraint(ban(NOON)))
    [late] = watch.step(cluster.cib, at(NOON))
    cluster.configure(PutSets("properties", ()))
    cluster.configure(PutConstraint(ban(None, "cli-ban-other")))
    cluster.take([late])
    assert ends(cluster.cib.configuration)
    cluster.take(watch.step(cluster.cib, at(NOON)))
    assert not ends(cluster.cib.configuration)


def test_nothing_is_looked_at_where_nothing_ends_and_a_clock_may_be_set() -> None:
    cluster, watch = Cluster(), EndedMoves(TERM)
    assert watch.step(cluster.cib, at(NOON)) == ()
    assert watch.deadline() == NEVER
    cluster.configure(PutConstraint(ban(WallTime(NOON + 10 * LOOK_MS))))
    watch.step(cluster.cib, at(NOON, now=7))
    assert watch.deadline() == Instant(7 + LOOK_MS)
