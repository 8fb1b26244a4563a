"""Who is found wrong when replicas differ."""

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.raft.digests import Comparison, Digests

N1, N2, N3, N4 = (NodeName(f"n{number}") for number in range(1, 5))
A, B, C = b"a" * 32, b"b" * 32, b"c" * 32


@pytest.mark.parametrize(
    ("reported", "voters", "linked", "expected"),
    [
        ({N1: A}, (N1,), (), Comparison.EQUAL),
        ({N1: A, N2: A}, (N1, N2, N3), (N2, N3), Comparison.EQUAL),
        ({N1: A, N2: B}, (N1, N2, N3), (N2, N3), Comparison.OPEN),
        ({N1: A, N2: B}, (N1, N2, N3), (N2,), Comparison.CONTESTED),
        ({N1: A, N2: B, N3: B}, (N1, N2, N3), (N2, N3), Comparison.WRONG),
        ({N1: A, N2: B, N3: A}, (N1, N2, N3), (N2, N3), Comparison.EQUAL),
        ({N1: A, N2: B, N3: C}, (N1, N2, N3), (N2, N3), Comparison.CONTESTED),
        ({N1: A, N2: B}, (N1, N2), (N2,), Comparison.CONTESTED),
        ({N2: B, N3: B}, (N1, N2, N3), (N2, N3), Comparison.OPEN),
        ({N1: A, N2: B, N3: B}, (N2, N3), (N2, N3), Comparison.WRONG),
        ({N1: A, N2: A, N3: B, N4: B}, (N1, N2, N3, N4), (N2, N3, N4), Comparison.CONTESTED),
    ],
    ids=["alone", "two of three", "one is missing", "one is away", "minority", "majority", "three ways", "two voters",
         "not known yet", "a learner", "halves"],
)  # fmt: skip
def test_a_node_is_wrong_only_when_a_majority_of_the_voters_agrees_without_it(
    reported: dict[NodeName, bytes], voters: tuple[NodeName, ...], linked: tuple[NodeName, ...], expected: Comparison
) -> None:
    digests = Digests(N1)
    for node, digest in reported.items():
        digests.note(node, 1000, digest)
    assert digests.compare(1000, voters, linked) is expected
