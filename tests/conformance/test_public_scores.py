"""The scores of Pacemaker's public cases, node by node, are ours, and each of ours is the sum of its named parts."""

from datetime import datetime

import pytest

from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.graph import NodeScore
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.scores import INFINITY, add
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.conformance import public_cases

pytestmark = pytest.mark.skipif(bool(public_cases.absence()), reason=public_cases.absence() or "they are there")

EVERY = 6
"""A sample: the scores decide what all cases are compared by."""
OTHERWISE_NUMBERED = {"clone-anon-failcount"}
"""The same scores, for instances of an anonymous clone with other numbers."""
DECIDED_LATER = ("utilization:", "has no more than")
"""How the words begin or end for what forbids a node after Pacemaker has written its scores."""


def _score_then(score: NodeScore) -> int:
    """What the score was when Pacemaker writes it: without what is decided after that."""
    total = 0
    for part in score.addends:
        if not any(word in part.source for word in DECIDED_LATER):
            total = add(total, part.score)
    return total


@pytest.mark.sampled(2)
@pytest.mark.parametrize("remainder", range(EVERY))
def test_scores_are_those_of_pacemaker(remainder: int) -> None:
    compared = 0
    wrong = []
    for case in list(public_cases.cases())[remainder::EVERY]:
        reading = read_cib(case.xml, case.name)
        now = WallTime(int(datetime.fromisoformat(case.expected["date"]).timestamp()) * 1000)
        options = ScheduleOptions(
            is_explaining=True,
            is_pacemaker_compatible=True,
            has_quorum=reading.has_quorum,
            may_fence_without_quorum=reading.may_fence_without_quorum,
        )
        placements = schedule(reading.cib, now, options=options).placements
        for name, wanted in (case.expected.get("scores") or {}).items():
            placement = placements.get(ResourceId(name))
            if placement is None or case.name in OTHERWISE_NUMBERED:
                continue
            ours = {score.node: score for score in placement.scores}
            for node, values in wanted.items():
                compared += 1
                if node in ours and ours[node].score > -INFINITY:
                    assert _score_then(ours[node]) == ours[node].score
                if node not in ours or _score_then(ours[node]) not in values:
                    wrong.append((case.name, name, node, values, ours.get(node)))
    assert compared > 1000
    assert wrong == []
