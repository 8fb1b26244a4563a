"""Of a node that was started again another boot is let in, of a node that lives on none."""

import pytest

from haclusterd.machines.copied_nodes import FORGOTTEN_MS, REMEMBERED_MAX, CopiedNodes
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
PERIOD = 200
SILENT = 7 * PERIOD
"""Three heartbeats that are missing, and the four of which a follower gets no report."""
FIRST = Incarnation("first", "0" * 15 + "1")
SECOND = Incarnation("second", "0" * 15 + "2")
NOW = 1_000_000


def heard(
    node: NodeName,
    incarnation: Incarnation | None = FIRST,
    age_ms: int | None = 50,
    *,
    answered_at: int | None = None,
    hears: dict[NodeName, tuple[int, Incarnation]] | None = None,
    at: int = NOW,
) -> HeardNode:
    hears = hears or {}
    return HeardNode(
        node,
        incarnation,
        age_ms,
        BrainState.ALIVE,
        0,
        {peer: age for peer, (age, _) in hears.items()},
        heard_at=None if age_ms is None else Instant(at - age_ms),
        hears_token={peer: life.token for peer, (_, life) in hears.items()},
        answered_at=None if answered_at is None else Instant(answered_at),
    )


def report(*nodes: HeardNode, at: int = NOW) -> PacerReport:
    return PacerReport(Instant(at), None, nodes)


class Admission:
    """n1's judgement of who comes as n2."""

    def __init__(self, joined: Incarnation | None = FIRST) -> None:
        self.copied = CopiedNodes()
        self.joined = joined

    def objection(self, boot_id: str, of: PacerReport | None, *, at: int = NOW) -> str:
        return self.copied.objection(
            N2, boot_id, joined=self.joined, report=of, now=Instant(at), heartbeat_ms=PERIOD
        )


ADMISSIONS = {
    "the boot that joined, heard or not": (FIRST, "first", report(heard(N2)), True),
    "the boot that joined, of which a new pacer knows nothing": (FIRST, "first", None, True),
    "another while that is heard": (FIRST, "second", report(heard(N2)), False),
    "another when that has been silent": (FIRST, "second", report(heard(N2, age_ms=SILENT)), True),
    "another a moment too soon": (FIRST, "second", report(heard(N2, age_ms=SILENT - 1)), False),
    "another while a third node hears that": (
        FIRST, "second", report(heard(N2, age_ms=SILENT), heard(N3, hears={N2: (100, FIRST)})), False),
    "another while a third node hears it, too": (
        FIRST, "second", report(heard(N2, SECOND), heard(N3, hears={N2: (100, SECOND)})), True),
    "the one whose heartbeats the pacer has believed": (FIRST, "second", report(heard(N2, SECOND)), True),
    "another while a third boot is heard": (SECOND, "third", report(heard(N2)), False),
    "the first that ever comes": (None, "first", report(heard(N2, None, None)), True),
    "the first that ever comes, and there is no pacer": (None, "first", None, True),
    "another before the first has joined": (None, "second", report(heard(N2)), False),
}  # fmt: skip


@pytest.mark.parametrize("case", ADMISSIONS)
def test_who_is_let_in(case: str) -> None:
    joined, boot_id, given, is_let_in = ADMISSIONS[case]
    assert (Admission(joined).objection(boot_id, given) == "") is is_let_in


def test_a_machine_that_starts_again_at_once_waits_a_moment() -> None:
    admission = Admission()
    assert "heard in an earlier boot" in admission.objection("second", report(heard(N2)))
    later = NOW + SILENT
    assert admission.objection("second", report(heard(N2, age_ms=SILENT - PERIOD), at=later - PERIOD), at=later) == ""


def test_what_the_network_held_back_makes_no_copy_of_a_new_boot() -> None:
    """The old boot is heard after the new one has come, in a heartbeat that it sent before."""
    admission = Admission()
    assert admission.objection("second", report(heard(N2, answered_at=NOW - 60)))
    late = report(heard(N2, age_ms=0, answered_at=NOW - 10), at=NOW + 500)
    assert "heard in an earlier boot" in admission.objection("second", late, at=NOW + 500)
    silent = report(heard(N2, age_ms=SILENT, answered_at=NOW - 10), at=NOW + 500 + SILENT)
    assert admission.objection("second", silent, at=NOW + 500 + SILENT) == ""


def proven_copy() -> Admission:
    admission = Admission()
    admission.objection("second", report(heard(N2, answered_at=NOW - 60)))
    alive = report(heard(N2, answered_at=NOW + 100), at=NOW + 200)
    assert admission.objection("second", alive, at=NOW + 200).startswith("a copy of n2 is kept out")
    return admission


def test_a_copy_stays_out_however_silent_the_first_one_gets() -> None:
    admission = proven_copy()
    for at in (NOW + 10_000, NOW + 10_000_000):
        silent = report(heard(N2, age_ms=at - NOW), at=at)
        assert admission.objection("second", silent, at=at).startswith("a copy of n2 is kept out")
    assert admission.objection("third", silent, at=at) == ""


def test_a_copy_is_reported_while_it_comes() -> None:
    admission = proven_copy()
    assert [text[:14] for text in admission.copied.warnings(Instant(NOW + 300))] == ["a copy of n2 i"]
    assert admission.copied.warnings(Instant(NOW + 200 + FORGOTTEN_MS)) == ()


def test_who_is_kept_out_tells_by_whom_and_why() -> None:
    copied = CopiedNodes()
    copied.kept_out(N3, "for a moment", Instant(NOW))
    copied.kept_out(N3, "because", Instant(NOW + 5))
    assert copied.warnings(Instant(NOW + 6)) == ("n3 does not let this node in: because",)


def test_after_a_start_of_this_pacer_nothing_is_believed_before_it_has_listened() -> None:
    admission = Admission()
    deaf = (None, report(heard(N2, None, None)), report(heard(N2), at=NOW - SILENT))
    for given in deaf:
        assert "not known yet" in admission.objection("second", given)
    assert "heard in an earlier boot" in admission.objection("second", report(heard(N2), at=NOW + 300), at=NOW + 300)


def test_a_node_of_which_no_heartbeat_comes_at_all_is_let_in_in_the_end() -> None:
    admission = Admission()
    for later in (0, SILENT // 2, SILENT - 1):
        assert admission.objection("second", report(heard(N2, None, None), at=NOW + later), at=NOW + later)
    assert admission.objection("second", report(heard(N2, None, None), at=NOW + SILENT), at=NOW + SILENT) == ""


def test_what_was_unheard_once_is_listened_for_again_much_later() -> None:
    admission = Admission()
    assert admission.objection("second", None)
    later = NOW + FORGOTTEN_MS + 1
    assert admission.objection("second", report(heard(N2, None, None), at=later), at=later)


def test_however_many_boots_come_little_is_kept() -> None:
    admission = Admission()
    for number in range(10 * REMEMBERED_MAX):
        admission.objection(f"boot {number}", report(heard(N2)))
        admission.copied.kept_out(NodeName(f"n{number}"), "because", Instant(NOW))
    assert len(admission.copied._asked_at) == REMEMBERED_MAX
    assert len(admission.copied.warnings(Instant(NOW))) == REMEMBERED_MAX
