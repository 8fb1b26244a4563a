"""Reading damaged, contradicting and hostile CIBs: an error with its line, and an end."""

import pytest

from tests.written_cibs import cib, pair, read, report_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "error cib.xml:1:1: this is no well-formed XML: no element found"),
        ("<cib>\n<a></b></cib>", "error cib.xml:2:6: this is no well-formed XML: mismatched tag"),
        ("<crm/>", "error cib.xml:1: <crm> is not a <cib>"),
        ("<a>" * 100, "error cib.xml:1: elements are nested more than 64 deep"),
        (
            '<!DOCTYPE cib [<!ENTITY a "xxxxxxxxxx"><!ENTITY b "&a;&a;&a;&a;&a;">]>\n<cib id="&b;"/>',
            "error cib.xml:1: a document type declaration is not allowed: a CIB has none",
        ),
        (
            '<!DOCTYPE cib SYSTEM "file:///etc/passwd"><cib/>',
            "error cib.xml:1: a document type declaration is not allowed: a CIB has none",
        ),
        ("<cib a='&undefined;'/>", "error cib.xml:1:1: this is no well-formed XML: undefined entity"),
        ("<cib a='\ud800'/>", "error None: cib.xml is not Unicode text"),
        (cib(resources='<primitive id="w"/>'), "error cib.xml:5: <primitive>: class is missing"),
        (cib(constraints='<rsc_location id="l" rsc="web" node="n1" score="x"/>'), "warning cib.xml:6: <rsc_location s"),
        (cib(constraints='<rsc_order id="o" first="web" then="gone"/>'), "warning cib.xml:6: constraint o: there is"),
        (cib(resources='<primitive id="a" class="lsb" type="x"/>' * 2), "error cib.xml:5: a is defined twice"),
        (cib(status='<node_state id="9" uname="n9"/>'), "warning cib.xml:9: <node_state>: there is no node n9"),
    ],
)
def test_faults_are_reported_with_their_place(text: str, expected: str) -> None:
    assert report_lines(read(text))[0].startswith(expected)


def test_a_file_of_many_elements_is_read_in_time_that_grows_with_it() -> None:
    many = "".join(f'<primitive id="r{n}" class="ocf" provider="pacemaker" type="Dummy"/>' for n in range(20_000))
    made = read(cib(resources=many))
    assert report_lines(made) == []
    assert len(made.cib.configuration.resources) == 20_000


def rules_within_rules() -> str:
    """Return a rule of which every level holds the next ten times."""
    levels = (f'<rule id="r{n}">' + f'<rule id-ref="r{n + 1}"/>' * 10 + "</rule>" for n in range(14))
    last = '<rule id="r14"><expression id="e" attribute="a" operation="defined"/></rule>'
    return f'<rsc_location id="l" rsc="web">{"".join(levels)}{last}</rsc_location>'


def shared_block(count: int) -> str:
    """Return resources that all refer to one large block."""
    large = "".join(f'<nvpair id="x{n}" name="x{n}" value="1"/>' for n in range(5000))
    refer = '<primitive id="p{}" class="lsb" type="x"><instance_attributes id-ref="m"/></primitive>'
    others = "".join(refer.format(n) for n in range(count))
    block = f'<instance_attributes id="m">{large}</instance_attributes>'
    return f'<primitive id="p" class="lsb" type="x">{block}</primitive>{others}'


def shared_template(count: int) -> str:
    """Return resources that are all made from one large template."""
    large = "".join(f'<op id="x{n}" name="monitor" interval="{n}s"/>' for n in range(5000))
    made = "".join(f'<primitive id="p{n}" template="t"/>' for n in range(count))
    return f'<template id="t" class="lsb" type="x"><operations>{large}</operations></template>{made}'


def crowd(count: int) -> str:
    """Return a set of many resources."""
    members = "".join(f'<resource_ref id="r{n}"/>' for n in range(count))
    return f'<rsc_colocation id="c" score="-5"><resource_set id="s">{members}</resource_set></rsc_colocation>'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (cib(constraints=rules_within_rules()), "what the references stand for is larger than 200000 elements"),
        (cib(resources=shared_block(100)), "what the references stand for is larger than 200000 elements"),
        (cib(resources=shared_template(100)), "what the references stand for is larger than 200000 elements"),
        (cib(constraints=crowd(1001)), "<rsc_colocation> is larger than 1000 resources"),
        (
            cib(
                constraints="".join(f'<rsc_order id="o{n}" first="t" then="web"/>' for n in range(20)),
                more='<tags><tag id="t">' + '<obj_ref id="web"/>' * 900 + "</tag></tags>",
            ),
            "what all constraints relate is larger than 2000000 pairs of resources",
        ),
        (
            cib(
                resources=f'<clone id="c"><meta_attributes id="m">{pair("clone-max", "1001")}</meta_attributes>'
                '<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"/></clone>'
            ),
            "<nvpair clone-max>: 1001 is more than 1000",
        ),
    ],
    ids=["rules", "blocks", "templates", "sets", "tags", "instances"],
)
def test_what_would_grow_beyond_all_bounds_is_refused_with_its_line(text: str, expected: str) -> None:
    errors = [line for line in report_lines(read(text)) if line.startswith("error cib.xml:")]
    assert errors
    assert errors[0].endswith(expected)
