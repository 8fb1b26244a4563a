"""A change larger than one log entry has its whole effect or none, and what is half staged is bounded."""

import hashlib

import pytest

from haclusterd.cib import apply_staged, commands
from haclusterd.cib.apply import apply
from haclusterd.cib.changes import Applied, RefusalCode
from haclusterd.cib.codec import decode_cib, encode_cib, encode_envelope
from haclusterd.cib.edits import difference
from haclusterd.cib.staging import staged
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import Incarnation, NodeName, RequestId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.steps import Steps, outcome_of
from haclusterd.ports.store import MAX_ENTRY_BYTES
from haclusterd.runtime.replica import Replica
from tests.administered_clusters import NOW, configured, running

COUNT = 3000


def large_change(cib: Cib) -> commands.ChangeConfiguration:
    # Values that hardly compress, so that there are several parts.
    names = (hashlib.sha256(b"%d" % n).hexdigest() for n in range(COUNT))
    lines = (f"primitive r{name[:9]} ocf:haclusterd:dummy params state=/{name}" for name in names)
    new = configured("\n".join(lines), cib.configuration)
    return commands.ChangeConfiguration(cib.version.epoch, difference(cib.configuration, new), "root@n1", "many")


def fold(cib: Cib, command: commands.Command, at: WallTime = NOW) -> Applied:
    index = cib.index + 1
    envelope = commands.Envelope(RequestId(f"r{index}"), NodeName("n1"), at, command)
    assert len(encode_envelope(envelope)) <= MAX_ENTRY_BYTES
    return apply(cib, envelope, index=index, term=Term(4))


@pytest.fixture(scope="module")
def cib() -> Cib:
    return running().cib


@pytest.fixture(scope="module")
def parts(cib: Cib) -> tuple[commands.StageChange | commands.ActivateStaged, ...]:
    made = staged(large_change(cib), "t1")
    assert len(made) >= 3
    return made


def code(applied: Applied) -> RefusalCode | None:
    return None if applied.refusal is None else applied.refusal.code


def test_the_parts_do_what_the_whole_would_have_done(
    cib: Cib, parts: tuple[commands.StageChange | commands.ActivateStaged, ...]
) -> None:
    change = large_change(cib)
    envelope = commands.Envelope(RequestId("whole"), NodeName("n1"), NOW, change)
    whole = apply(cib, envelope, index=cib.index + 1, term=Term(4)).cib
    now = cib
    for part in parts:
        assert now.configuration == cib.configuration
        applied = fold(now, part)
        assert code(applied) is None
        now = applied.cib
    assert now.configuration == whole.configuration
    assert replace(now.version, request=whole.version.request) == whole.version
    assert now.staged == {}


def test_what_is_staged_survives_a_snapshot(
    cib: Cib, parts: tuple[commands.StageChange | commands.ActivateStaged, ...]
) -> None:
    now = cib
    for part in parts[:-1]:
        now = decode_cib(encode_cib(fold(now, part).cib))
    assert code(fold(now, parts[-1])) is None


@pytest.mark.parametrize("missing", [0, 1])
def test_without_a_part_nothing_happens(
    cib: Cib, parts: tuple[commands.StageChange | commands.ActivateStaged, ...], missing: int
) -> None:
    now = cib
    for part in (*parts[:missing], *parts[missing + 1 :]):
        now = fold(now, part).cib
    assert code(fold(now, parts[-1])) is RefusalCode.STAGED_INCOMPLETE
    assert now.configuration == cib.configuration


def test_a_change_that_was_overtaken_is_a_conflict(
    cib: Cib, parts: tuple[commands.StageChange | commands.ActivateStaged, ...]
) -> None:
    now = cib
    for part in parts[:-1]:
        now = fold(now, part).cib
    now = replace(now, version=replace(now.version, epoch=now.version.epoch + 1))
    assert code(fold(now, parts[-1])) is RefusalCode.CONFIGURATION_CONFLICT


def test_damaged_parts_are_refused(cib: Cib, parts: tuple[commands.StageChange | commands.ActivateStaged, ...]) -> None:
    last = parts[-1]
    assert isinstance(last, commands.ActivateStaged)
    now = fold(cib, commands.StageChange("t1", 0, "not what was proposed")).cib
    assert code(fold(now, replace(last, parts=1))) is RefusalCode.UNREADABLE
    garbage = "e30="
    now = fold(cib, commands.StageChange("t2", 0, garbage)).cib
    digest = apply_staged.digest_of([garbage])
    assert code(fold(now, replace(last, transaction="t2", parts=1, digest=digest))) is RefusalCode.UNREADABLE


def test_old_parts_are_dropped_and_all_of_them_are_bounded(cib: Cib, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_staged, "STAGED_CHARACTERS_MAX", 100)
    now = fold(cib, commands.StageChange("a", 0, "x" * 60)).cib
    assert code(fold(now, commands.StageChange("b", 0, "x" * 60))) is RefusalCode.STAGED_INCOMPLETE
    later = fold(now, commands.StageChange("b", 0, "x" * 60), WallTime(NOW + apply_staged.STAGED_AGE_MS_MAX + 1))
    assert list(later.cib.staged) == ["b/0"]


class Nobody:
    """Takes withdrawals, and has none."""

    def withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        raise AssertionError(node)

    def reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        raise AssertionError(node)


def replica(cib: Cib) -> Replica:
    made = Replica(Nobody())
    made.restore(cib)
    return made


@pytest.mark.parametrize("damage", ["none", "a part is damaged", "a part is missing", "it was overtaken"])
def test_a_replica_that_prepares_comes_to_the_bytes_of_one_that_does_not(
    cib: Cib, parts: tuple[commands.StageChange | commands.ActivateStaged, ...], damage: str
) -> None:
    now = cib
    for part in parts[:-1]:
        now = fold(now, part).cib
    name = next(iter(now.staged))
    if damage == "a part is damaged":
        damaged = replace(now.staged[name], data=now.staged[name].data[:-8] + "AAAAAAAA")
        now = replace(now, staged={**now.staged, name: damaged})
    if damage == "a part is missing":
        now = replace(now, staged={key: kept for key, kept in now.staged.items() if key != name})
    if damage == "it was overtaken":
        now = replace(now, version=replace(now.version, epoch=now.version.epoch + 1))
    entry = encode_envelope(commands.Envelope(RequestId("last"), NodeName("n1"), NOW, parts[-1]))
    prepared, other = replica(now), replica(now)
    steps = prepared.prepare(entry)
    assert (steps is None) == (damage == "a part is missing")
    taken = sum(1 for _ in steps or ())
    assert taken > 10 or steps is None, "each step is short"
    assert prepared.snapshot()() == encode_cib(now), "to prepare changes nothing"
    one = prepared.apply(now.index + 1, Term(4), entry)
    two = other.apply(now.index + 1, Term(4), entry)
    assert one == two
    assert encode_cib(one.cib) == encode_cib(two.cib)
    assert (code(one) is None) == (damage == "none")


def test_what_was_prepared_before_a_snapshot_is_not_used_after_it(
    cib: Cib, parts: tuple[commands.StageChange | commands.ActivateStaged, ...]
) -> None:
    now = cib
    for part in parts[:-1]:
        now = fold(now, part).cib
    entry = encode_envelope(commands.Envelope(RequestId("last"), NodeName("n1"), NOW, parts[-1]))
    voter = replica(now)
    outcome_of(voter.prepare(entry) or nothing())
    voter.restore(cib)
    assert code(voter.apply(cib.index + 1, Term(4), entry)) is RefusalCode.STAGED_INCOMPLETE


def nothing() -> Steps[None]:
    yield from ()
