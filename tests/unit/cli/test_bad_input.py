"""Three hundred damaged CIBs, crm texts and policies: each answered with a place and a remedy, soon and in bounds."""

from pathlib import Path

import pytest

from tests.fuzzing.bad_input import Case, Findings, ask, case
from tests.written_cibs import cib, pair

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
    assert place in findings.output


NESTED = 10_000
CLONE = '<clone id="c"><meta_attributes id="m"><nvpair id="n" name="{}" value="{}"/></meta_attributes>{}</clone>'
WEB = '<primitive id="web" class="ocf" provider="haclusterd" type="dummy"/>'
LOCATION = '<rsc_location id="l" rsc="web">{}</rsc_location>'
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n + 1};" * 10}">' for n in range(9)) + '<!ENTITY a9 "ha">'


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("xml", cib(resources=CLONE.format("clone-max", 5_000_000, WEB))),
        ("xml", cib(resources=CLONE.format("clone-node-max", 999_999_999, WEB))),
        ("xml", cib(resources=CLONE.format("promoted-max", 999_999_999, WEB))),
        ("xml", cib(resources='<bundle id="b"><podman image="i" replicas="999999999"/></bundle>')),
        ("xml", cib(constraints=LOCATION.format('<rule id="r" score="5">' * NESTED + "</rule>" * NESTED))),
        ("xml", f"<!DOCTYPE cib [{LAUGHS}]>{cib(properties=pair('cluster-name', '&a0;'))}"),
        ("crm", "primitive web dummy\nclone c web meta clone-max=5000000 clone-node-max=5000000"),
        ("crm", "primitive web dummy\nclone c web meta promotable=true promoted-max=99999999999"),
        ("crm", "primitive web dummy\nlocation l web rule 5: " + "( " * NESTED + "x eq 1 " + ") " * NESTED),
        ("crm", "primitive web dummy\ncolocation c inf: " + "( " * NESTED + "web " + ") " * NESTED),
        ("crm", "primitive web dummy \\\n" * NESTED),
        ("yaml", "resources: " + "[" * NESTED + "]" * NESTED),
        ("yaml", "resources: &a [*a, *a]"),
    ],
)
def test_what_is_huge_costs_little(kind: str, text: str, tmp_path: Path) -> None:
    findings = Findings()
    reading = "verify xml" if kind == "xml" else "verify"
    commands = [f"crm configure {reading} case.{kind}"]
    commands += [f"crm simulate --cib case.{kind}"] if kind == "xml" else []
    ask(Case(f"case.{kind}", text.encode(), tuple(commands)), tmp_path, findings, "huge")
    assert findings.violations == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("primitive x dummy\nclone web x", "2:7"),
        ("primitive y dummy\ngroup db y web", "2:12"),
        ("primitive y dummy\ngroup db site y", "2:10"),
    ],
)
def test_what_breaks_something_that_was_there_is_named_where_it_stands(text: str, place: str, tmp_path: Path) -> None:
    findings = Findings()
    ask(Case("x.crm", text.encode(), ("crm configure load update x.crm --dry-run --force",)), tmp_path, findings, "old")
    assert findings.violations == []
    assert place in findings.output


def test_every_error_of_a_text_is_said_in_one_round(tmp_path: Path) -> None:
    text = "primitive a dummy op monitor interval=x\nlocation l gone inf: n1\nclone c nothing\nproperty batch-limit=x\n"
    findings = Findings()
    ask(Case("x.crm", text.encode(), ("crm configure verify x.crm",)), tmp_path, findings, "all")
    assert findings.violations == []
    lines = {line.split(":")[2] for line in findings.output.splitlines() if line.startswith("ERROR")}
    assert lines == {"1", "2", "3", "4"}
