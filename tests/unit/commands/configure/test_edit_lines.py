"""A change in lines: what is other in what is changed."""

import pytest

from haclusterd.cib.edits import difference
from haclusterd.commands.configure.edit_lines import DETAILED_MAX, describe_edits
from haclusterd.model.configuration import Configuration
from tests.administered_clusters import configured

BEFORE = """
node n1
primitive a ocf:haclusterd:dummy params state=/x passwd=old op monitor interval=10s timeout=20s
primitive b ocf:haclusterd:dummy op monitor interval=10s timeout=20s
group g a
location l b 50: n1
property no-quorum-policy=stop batch-limit=3
"""


def lines(old: Configuration, new: Configuration) -> list[str]:
    return list(describe_edits(old, new, difference(old, new), None))


@pytest.mark.parametrize(
    ("was", "becomes", "expected"),
    [
        ("state=/x", "state=/y", "~ primitive a: state=/y (was /x)"),
        ("passwd=old", "passwd=new", "~ primitive a"),
        ("state=/x ", "", "~ primitive a: without state=/x"),
        ("state=/x", "state=/x fake='a b'", "~ primitive a: fake=a b"),
        ("group g a", "group g a meta priority=3", "~ group g: priority=3"),
        ("50: n1", "70: n1", "~ location l: 70:, without 50:"),
        ("=stop batch-limit=3", "=freeze", "~ properties: no-quorum-policy=freeze (was stop), without batch-limit=3"),
        ("batch-limit=3", f"batch-limit=3 cluster-name={'x' * 70}", f"~ properties: cluster-name={'x' * 44}..."),
        ("location l b 50: n1\n", "", "- constraint l"),
    ],
)
def test_what_is_other_is_said(was: str, becomes: str, expected: str) -> None:
    assert was in BEFORE
    assert lines(configured(BEFORE), configured(BEFORE.replace(was, becomes))) == [expected]


def test_much_is_cut() -> None:
    words = " ".join(f"p{number}=1" for number in range(9))
    only, = lines(configured(BEFORE), configured(BEFORE.replace("state=/x", f"state=/x {words}")))
    assert only == "~ primitive a: p0=1, p1=1, p2=1, p3=1, p4=1, p5=1, 3 more"


def test_of_many_edits_each_is_named_alone() -> None:
    many = "".join(f"primitive r{number} ocf:haclusterd:dummy params state=/x\n" for number in range(DETAILED_MAX + 1))
    found = lines(configured(many), configured(many.replace("/x", "/y")))
    assert found == [f"~ primitive r{number}" for number in range(DETAILED_MAX + 1)]
