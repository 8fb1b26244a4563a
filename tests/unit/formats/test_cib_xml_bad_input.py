"""Reading damaged, contradicting and hostile CIBs: an error with its line, and an end."""

import pytest

from tests.written_cibs import cib, read, told


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
        (cib(constraints='<rsc_location id="l" rsc="web" node="n1" score="x"/>'), "error cib.xml:6: <rsc_location s"),
        (cib(constraints='<rsc_order id="o" first="web" then="gone"/>'), "warning cib.xml:6: constraint o: there is"),
        (cib(resources='<primitive id="a" class="lsb" type="x"/>' * 2), "error cib.xml:5: a is defined twice"),
        (cib(status='<node_state id="9" uname="n9"/>'), "warning cib.xml:9: <node_state>: there is no node n9"),
    ],
)
def test_faults_are_told_with_their_place(text: str, expected: str) -> None:
    assert told(read(text))[0].startswith(expected)


def test_a_file_of_many_elements_is_read_in_time_that_grows_with_it() -> None:
    many = "".join(f'<primitive id="r{n}" class="ocf" provider="pacemaker" type="Dummy"/>' for n in range(20_000))
    made = read(cib(resources=many))
    assert told(made) == []
    assert len(made.cib.configuration.resources) == 20_000
