"""Three hundred damaged CIBs, crm texts and policies: each answered with a place and a remedy, soon and in bounds."""

from pathlib import Path

import pytest

from tests.fuzzing.bad_input import Case, Findings, ask, case

SHARDS = 6
CASES = 300


@pytest.mark.parametrize("shard", range(SHARDS))
def test_damaged_input_is_answered_with_place_and_remedy(shard: int, tmp_path: Path) -> None:
    findings = Findings()
    for seed in range(shard, CASES, SHARDS):
        ask(case(seed), tmp_path, findings, f"seed {seed}")
    assert findings.violations == []
    assert findings.statuses.total() == 2 * CASES // SHARDS


@pytest.mark.parametrize(
    ("data", "place"), [(b"primitive a\n\xff\n", "2:1"), (b"\xc3", "1:1"), (b"a\nb\xed\xa0\x80", "2:2")]
)
def test_what_is_no_utf8_is_refused_where_it_stands(data: bytes, place: str, tmp_path: Path) -> None:
    findings = Findings()
    ask(Case("x.crm", data, ("crm configure verify x.crm", "crm -f x.crm")), tmp_path, findings, "bytes")
    assert findings.violations == []
    assert set(findings.statuses) == {66}
    assert place in findings.told
