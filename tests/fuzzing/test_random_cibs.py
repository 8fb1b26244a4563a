"""Random CIBs: the same for the same seed, never too much for the scheduler, and decided as Pacemaker decides."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from random import Random

import pytest

from tests.fuzzing.differential import UNENDED, Tally, absence, evolved, examine, our_plan, shrink
from tests.fuzzing.known_differences import cause_of
from tests.fuzzing.random_cibs import disturb, generate
from tests.fuzzing.themes import GROUPS, group_of, named

SAMPLE = range(90_002, 90_032)


@pytest.mark.parametrize("seed", range(1, 61))
def test_every_random_cib_is_planned_the_same_twice(seed: int) -> None:
    plans = []
    for _ in range(2):
        root = generate(seed)
        disturb(root, seed)
        made = our_plan(root)
        assert not isinstance(made, str), made
        plans.append(json.dumps(made))
    assert plans[0] == plans[1]


@pytest.mark.parametrize("theme", named(GROUPS))
def test_every_rare_cib_is_drawn_the_same_twice_and_planned(theme: str) -> None:
    group = group_of(theme)
    for seed in range(4):
        texts = []
        for _ in range(2):
            root = group.themes[theme](Random(seed))
            disturb(root, seed, group.events)
            texts.append(ET.tostring(root, encoding="unicode"))
        assert texts[0] == texts[1]
        made = our_plan(root)
        assert not isinstance(made, str), made


@pytest.mark.skipif(bool(absence()), reason=absence() or "both are there")
@pytest.mark.parametrize("seed", SAMPLE)
def test_a_sample_is_decided_as_pacemaker_decides(seed: int) -> None:
    found = examine(seed)
    if isinstance(found, str):
        pytest.skip("Pacemaker does not plan this CIB")
    assert found is None or cause_of(found.xml, found.details), (found.details, found.xml)


@pytest.mark.skipif(bool(absence()), reason=absence() or "both are there")
def test_a_difference_is_shrunk_to_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = next(each for each in (evolved(seed, tmp_path) for seed in range(1, 20)) if each is not None)

    def differs(changed: ET.Element, _directory: Path) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        names = [f"L1 - {each.get('id')}" for each in changed.iterfind(".//primitive")]
        return ("L1",) if names else (), tuple(names[::-1]), ""

    monkeypatch.setattr("tests.fuzzing.differential.compared", differs)
    *_, last = root.iterfind(".//primitive")
    smaller = shrink(root, tmp_path, *differs(root, tmp_path)[:2])
    assert [each.get("id") for each in smaller.iterfind(".//primitive")] == [last.get("id")]
    assert not smaller.findall(".//constraints/*")


@pytest.mark.skipif(bool(absence()), reason=absence() or "both are there")
def test_where_the_peer_does_not_end_the_run_goes_on_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = tmp_path / "endless"
    endless.write_text("#!/bin/sh\nwhile :; do :; done\n")
    endless.chmod(0o755)
    monkeypatch.setattr("tests.fuzzing.differential.PEER", str(endless))
    monkeypatch.setattr("tests.fuzzing.differential.PEER_LIMIT_S", 1)
    tally = Tally()
    found = examine(5)
    assert found == UNENDED
    tally.add(5, found)
    tally.add(6, "ValueError: no status (pcmk_convert.py:1)")
    *_, unended, failed, result = tally.lines(1.0)
    assert unended.endswith("does not end on 5")
    assert failed == "the comparison failed on 6"
    assert result.startswith("RESULT cases=0 differences=0 known=0 unexplained=0 unended=1 failed=1 ")


BALANCED = (
    '<cib><configuration><crm_config><nvpair name="placement-strategy" value="{}"/></crm_config><nodes>'
    '<node id="1"><utilization><nvpair name="cpu" value="3"/></utilization></node>'
    '<node id="2"><utilization><nvpair name="memory" value="8"/></utilization></node></nodes>'
    '<resources><primitive id="r1"/></resources></configuration></cib>'
)
OTHER_NODE = ["L1 - ('r1', 'n1', 'active')", "L1 + ('r1', 'n2', 'active')"]
NOTIFIED = (
    '<cib><configuration><nodes><node id="1" uname="n1"><instance_attributes><nvpair name="maintenance" value="{}"/>'
    '</instance_attributes></node></nodes><resources><clone id="c"><meta_attributes>'
    '<nvpair name="notify" value="true"/></meta_attributes><primitive id="m"/></clone><primitive id="r"/>'
    "</resources></configuration></cib>"
)
NOTICES = [f"L3 - ('resource', 'notify', 'm', 'n2', 0, '{when}-start')" for when in ("pre", "post")]
GUEST = (
    '<cib><configuration><resources><primitive id="v"><meta_attributes><nvpair name="remote-node" value="{}"/>'
    "</meta_attributes></primitive></resources></configuration></cib>"
)
ON_GUEST = "L1 - ('r', 'g1', 'active')"
SERIAL = "L4 - (('fence', 'reboot', '', 'n2', 0, ''), ('fence', 'reboot', '', 'n3', 0, ''))"


@pytest.mark.parametrize(
    ("xml", "details", "is_known"),
    [
        (BALANCED.format("balanced"), OTHER_NODE, True),
        (BALANCED.format("utilization"), OTHER_NODE, True),
        (BALANCED.format("default"), OTHER_NODE, False),
        (BALANCED.format("balanced"), OTHER_NODE[1:], False),
        (NOTIFIED.format("true"), NOTICES, True),
        (NOTIFIED.format("false"), NOTICES, False),
        (NOTIFIED.format("true"), [NOTICES[0].replace("start", "stop")], False),
        (NOTIFIED.format("true"), [NOTICES[0].replace("L3 -", "L3 +")], False),
        (NOTIFIED.format("true"), [*NOTICES, "L3 - ('resource', 'start', 'm', 'n2', 0, '')"], False),
        (GUEST.format("g1"), [ON_GUEST], True),
        (GUEST.format("g2"), [ON_GUEST], False),
        (GUEST.format("g1"), [ON_GUEST, "L3 - ('fence', 'off', '', 'g1', 0, '')"], False),
        (BALANCED.format("utilization"), [SERIAL], True),
        (BALANCED.format("utilization"), [SERIAL.replace("L4 -", "L4 +")], False),
    ],
)
def test_a_difference_is_known_by_what_differs(xml: str, details: list[str], *, is_known: bool) -> None:
    assert bool(cause_of(xml, details)) is is_known
