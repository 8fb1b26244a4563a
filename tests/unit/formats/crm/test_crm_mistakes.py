"""Colons and equals signs that are missing, stand apart, or are in another place: the message names them."""

import pytest

from haclusterd.formats.crm.syntax import parse_script
from haclusterd.reports.items import has_errors
from haclusterd.reports.rendering import render


def said(text: str) -> str:
    found = parse_script(text, "site.crm").reports
    assert has_errors(found)
    return " / ".join(map(render, found))


@pytest.mark.parametrize(
    ("text", "column", "expected", "near", "remedy"),
    [
        ("order o Mandatory d1 kvs", 9, "Mandatory:", "Mandatory", "order o Mandatory: d1 kvs"),
        ("order o optional d1 kvs", 9, "optional:", "optional", "order o optional: d1 kvs"),
        ("order o 100 d1 kvs", 9, "100:", "100", "order o 100: d1 kvs"),
        ("order o inf d1 kvs", 9, "inf:", "inf", "order o inf: d1 kvs"),
        ("order o d1 kvs Mandatory", 16, "the kind before", "Mandatory", "order o Mandatory: d1 kvs"),
        ("order o d1 kvs Mandatory:", 16, "the kind before", "Mandatory:", "order o Mandatory: d1 kvs"),
        ("order o kind=Serialize d1 kvs", 9, "the kind before", "kind=Serialize", "order o Serialize: d1 kvs"),
        ("order o Mandatory : d1 kvs", 9, "Mandatory:", "Mandatory :", "Mandatory:"),
        ("order o d1 kvs :start", 12, "kvs:start", "kvs :start", "kvs:start"),
        ("order o d1 kvs symmetrical = false", 16, "symmetrical=false", "symmetrical = false", "symmetrical=false"),
        ("order o d1 kvs symmetrical =false", 16, "symmetrical=false", "symmetrical =false", "symmetrical=false"),
        ("order o d1 kvs symmetrical= false", 16, "symmetrical=false", "symmetrical= false", "symmetrical=false"),
        ("colocation c inf d1 kvs", 14, "inf:", "inf", "colocation c inf: d1 kvs"),
        ("colocation c d1 kvs -inf", 21, "the score before", "-inf", "colocation c -inf: d1 kvs"),
        ("colocation c d1 kvs 100:", 21, "the score before", "100:", "colocation c 100: d1 kvs"),
        ("colocation c score=9 d1 kvs", 14, "the score before", "score=9", "colocation c 9: d1 kvs"),
        ("colocation c d1 kvs", 14, "a score and a colon", "d1", "colocation c inf: d1 kvs"),
        ("location l d1 100 n1", 15, "100:", "100", "location l d1 100: n1"),
        ("location l d1 role=Promoted 100 n1", 29, "100:", "100", "location l d1 100: n1"),
        ("location l d1 n1 100:", 18, "the score between", "100:", "location l d1 100: n1"),
        ("location l d1 n1: 100", 19, "the score between", "100", "location l d1 100: n1"),
        ("location l 100: d1 n1", 12, "the score between", "100:", "location l d1 100: n1"),
        ("location l d1 100:n1", 15, "100: n1", "100:n1", "location l d1 100: n1"),
        ("location l d1 n1", 15, "a score and a colon", "n1", "location l d1 100: n1"),
        ("location l d1 rule -inf #uname eq n1", 20, "-inf:", "-inf", "rule -inf:"),
        ("location l d1 rule 1: #uname == n1", 30, "eq", "==", "#uname eq n1"),
        ("rsc_ticket t paris d1", 14, "paris:", "paris", "rsc_ticket t paris: d1"),
        ("rsc_ticket t d1 paris:", 17, "the ticket before", "paris:", "rsc_ticket t paris: d1"),
        ("rsc_ticket t paris: d1 loss-policy = stop", 24, "loss-policy=stop", "loss-policy = stop",
         "loss-policy=stop"),
        ("group g d1: d2", 9, "d1", "d1:", "d1"),
        ("group g = d1 d2", 9, "no equals sign", "=", "group g"),
        ("group g d1 meta target-role = Stopped", 17, "target-role=Stopped", "target-role = Stopped",
         "target-role=Stopped"),
        ("ms m d1 meta clone-max 2", 14, "clone-max=2", "clone-max 2", "clone-max=2"),
        ("clone c: d1", 7, "c", "c:", "c"),
        ("primitive p ocf:x:y params file /run/x", 28, "file=/run/x", "file /run/x", "file=/run/x"),
        ("primitive p ocf:x:y op monitor interval 10s", 32, "interval=10s", "interval 10s", "interval=10s"),
        ("property stonith-enabled = false", 10, "stonith-enabled=false", "stonith-enabled = false",
         "stonith-enabled=false"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_at_its_place_with_what_to_write(
    text: str, column: int, expected: str, near: str, remedy: str
) -> None:
    message = said(text)
    assert message.startswith(f"ERROR: site.crm:1:{column}: {text.partition(' ')[0]}: expected {expected}"), message
    assert f", near <{near}> (" in message
    assert message.endswith(f"{remedy})") or f" {remedy} " in message


@pytest.mark.parametrize(
    "text",
    [
        'order o "Mandatory" d1', 'order o Mandatory: "Optional" d1', "order o { d1 d2 kind=Optional } d3",
        "order o 100: d1 d2", "order o d1:start d2:promote", "group g d1 meta a= b=1", "group g d1 params a= meta b=1",
        "location l { d1 d2 } 100: n1", "location l d1 100: 5", "rsc_ticket t paris: d1 d2",
    ],
)  # fmt: skip
def test_what_can_be_read_is_no_mistake(text: str) -> None:
    script = parse_script(text, "site.crm")
    assert not has_errors(script.reports), script.reports


def test_another_fault_keeps_its_own_message() -> None:
    assert "not a boolean: 'no-way'" in said("order o Mandatory: d1 kvs symmetrical=no-way")
    assert "not a score: 'much'" in said("colocation c much: d1 kvs")
