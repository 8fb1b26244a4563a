"""Digests: what a change of parameters means for what ran before, in our own records and in Pacemaker's."""

import pytest

from haclusterd.model.history import OperationRecord, PacemakerMark
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.scheduler.model.digests import (
    ActionDigests,
    Consequence,
    digest_of,
    pacemaker_digest,
    restart_digest_of,
)
from tests.unpacked_cibs import block, found, primitive, unpacked
from tests.written_cibs import NOTHING, cib, read

WEB = primitive(
    "web",
    block("instance_attributes", "i", ip="10.0.0.1", level="3")
    + '<operations><op id="m" name="monitor" interval="10s" timeout="7s"/></operations>',
)
NOW = {"ip": "10.0.0.1", "level": "3"}
BEFORE = {"ip": "10.0.0.1", "level": "2"}


def record(
    digest: str,
    restart_digest: str = "",
    *,
    interval_ms: int = 0,
    names: tuple[str, ...] | None = None,
    mark: PacemakerMark | None = None,
) -> OperationRecord:
    return OperationRecord(
        "monitor" if interval_ms else "start",
        interval_ms,
        1,
        ExitCode.OK,
        ExecutionStatus.DONE,
        ExitCode.OK,
        WallTime(0),
        WallTime(0),
        digest=digest,
        restart_digest=restart_digest,
        restart_parameters=names,
        pacemaker=mark,
    )


def judged(written: OperationRecord) -> Consequence:
    inventory, settings = unpacked(read(cib(resources=WEB)).cib)
    return ActionDigests(settings).judge(found(inventory, "web"), inventory.nodes[0], written)


def test_the_digest_of_nothing_is_pacemakers() -> None:
    assert pacemaker_digest({}) == NOTHING
    assert pacemaker_digest({"id": "x", "crm_feature_set": "3", "CRM_meta_name": "start", "on_node": "n1"}) == NOTHING


def test_pacemakers_digest_escapes_what_xml_does() -> None:
    assert pacemaker_digest({"a": '"<&>'}) == "13ca6b1b0ca6e296a814d637046ec8d4"


@pytest.mark.parametrize(
    ("value", "digest"),
    [
        ("it's", "4e9bbf1c872f78a4ddd6a0f9c00a7766"), ('"<a> & b"', "73aaac4870af1d48d228dc87cfcb7e52"),
        ("a\tb", "fda5bac64f68fe6f6a83c9311a81bc80"), ("a\nb", "bbd7d5386a91f8561ed7deb1ed1b519f"),
        ("a\rb", "bae95f1a653367ea75dd4f2e89bdf8d9"), ("\x7f", "892856ada849dc745e178bfb5f090a1d"),
        ("\u00e9", "201929066700e22ae78b366e40320f30"), ("\u65e5\u672c", "11500f504948ae147fd65d1d1d6d2d5e"),
    ],
)  # fmt: skip
def test_pacemakers_digest_of_characters_that_it_writes_otherwise(value: str, digest: str) -> None:
    """As `crm_resource --digests` of Pacemaker 2.1.5 prints it."""
    assert pacemaker_digest({"fake": value}) == digest


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (record(""), Consequence.UNCHANGED),
        (record(digest_of(NOW)), Consequence.UNCHANGED),
        (record(digest_of(BEFORE)), Consequence.RESTART),
        (record(digest_of(BEFORE), restart_digest_of(BEFORE, ("ip",)), names=("ip",)), Consequence.RELOAD),
        (record(digest_of(BEFORE), restart_digest_of(BEFORE, ("level",)), names=("level",)), Consequence.RESTART),
        (record(digest_of(NOW, 7000), interval_ms=10_000), Consequence.UNCHANGED),
        (record(digest_of(NOW, 8000), interval_ms=10_000), Consequence.RESCHEDULE),
    ],
)
def test_our_own_records(written: OperationRecord, expected: Consequence) -> None:
    assert judged(written) is expected


MARK = PacemakerMark("web_last_0")
SECRET = PacemakerMark("web_last_0", secure_digest=pacemaker_digest({"ip": "10.0.0.1"}), private_parameters=("level",))
TIMED = {**NOW, "CRM_meta_timeout": "7000"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (record("", mark=MARK), Consequence.RESTART),
        (record("", interval_ms=10_000, mark=MARK), Consequence.RESCHEDULE),
        (record(pacemaker_digest(NOW), mark=MARK), Consequence.UNCHANGED),
        (record(pacemaker_digest(BEFORE), mark=MARK), Consequence.RESTART),
        (record(pacemaker_digest(BEFORE), mark=SECRET), Consequence.UNCHANGED),
        (record(pacemaker_digest(BEFORE), pacemaker_digest(NOW), mark=MARK), Consequence.RELOAD),
        (record(pacemaker_digest(BEFORE), pacemaker_digest(BEFORE), mark=MARK), Consequence.RESTART),
        (record(pacemaker_digest(BEFORE), pacemaker_digest({"ip": "10.0.0.1"}), names=("ip",), mark=MARK),
         Consequence.RELOAD),
        (record(pacemaker_digest(BEFORE), pacemaker_digest({}), names=(), mark=MARK), Consequence.RELOAD),
        (record(pacemaker_digest(NOW), "other", mark=MARK), Consequence.RESTART),
        (record(pacemaker_digest(TIMED), interval_ms=10_000, mark=MARK), Consequence.UNCHANGED),
        (record(pacemaker_digest(NOW), interval_ms=10_000, mark=MARK), Consequence.RESCHEDULE),
    ],
)  # fmt: skip
def test_records_of_pacemaker(written: OperationRecord, expected: Consequence) -> None:
    assert judged(written) is expected


def test_secrets_count_when_a_failure_is_judged() -> None:
    inventory, settings = unpacked(read(cib(resources=WEB)).cib)
    web, n1, digests = found(inventory, "web"), inventory.nodes[0], ActionDigests(settings)
    assert digests.ran_with_others(web, n1, record(pacemaker_digest(BEFORE), mark=SECRET))
    assert not digests.ran_with_others(web, n1, record(pacemaker_digest(NOW), mark=SECRET))
    assert not digests.ran_with_others(web, n1, record("", mark=MARK))
