"""What CIBs of other people say, and crm text can hardly say, is written in every format and read back."""

import re
from collections import Counter

import pytest

from haclusterd.formats.cib_xml.document import read_configuration, write_configuration
from haclusterd.formats.crm.syntax import Arrangement, assemble, parse_script, show
from haclusterd.formats.policy.yaml import dump_policy, load_policy
from haclusterd.model.configuration import Configuration, Location
from haclusterd.reports.items import has_errors
from tests.written_cibs import MEMBER, cib, read, report_lines

TWO = '<primitive id="a" class="ocf" provider="p" type="T"/><primitive id="b" class="ocf" provider="p" type="T"/>'
SETS = (
    '<resource_set id="one"><resource_ref id="a"/></resource_set>'
    '<resource_set id="two" role="Started"><resource_ref id="b"/></resource_set>'
)


def located(rule: str) -> str:
    return cib(resources=TWO, constraints=f'<rsc_location id="l" rsc="a"><rule id="r" {rule}</rule></rsc_location>')


@pytest.mark.parametrize(
    "text",
    [
        cib(resources=TWO, constraints=f'<rsc_location id="l" node="n1" score="5">{SETS}</rsc_location>'),
        cib(resources=TWO, constraints=f'<rsc_location id="l">{SETS}<rule id="r" score="5"><expression id="e" '
            'attribute="x" operation="eq" value="1"/></rule></rsc_location>'),
        located('score="5"><expression id="e" attribute="%1-up" operation="eq" value="1"/>'),
        located('score="5"><expression id="e" attribute="a%0b" operation="defined"/>'),
        located('score="5"><expression id="e" attribute="with space" operation="gt" value="1"/>'),
        located('score="5"><expression id="e" attribute="end:" operation="ne" value="1"/>'),
        located('score="5"><expression id="e" attribute="and" operation="eq" value="or"/>'),
        located('score-attribute="with space"><expression id="e" attribute="x" operation="defined"/>'),
        located('score-attribute="inf"><expression id="e" attribute="x" operation="defined"/>'),
        located('score-attribute="%1"><expression id="e" attribute="x" operation="defined"/>'),
        located('score="5" boolean-op="or"><expression id="e" attribute="x" operation="defined"/>'),
        located('score="5"><expression id="e" attribute="x" operation="defined" type="number"/>'),
        located('score="5"><rule id="i" score="7" boolean-op="or"><expression id="e" attribute="x" '
                'operation="defined"/></rule>'),
        cib(nodes=f'<node id="1" uname="{"n" * 200}"/>', resources=TWO, constraints='<rsc_location id="l" rsc="a" '
            f'node="{"n" * 200}" score="5"/>', more='<fencing-topology><fencing-level id="f" index="1" devices="p" '
            f'target="{"n" * 200}"/></fencing-topology>'),
        cib(resources='<primitive id="a" class="lsb" type="/opt/app/init"/>'),
        cib(resources='<primitive id="a" class="ocf" provider="p" type="/usr/lib/T"/>'),
        cib(resources='<primitive id="a" class="stonith" type="external/ssh"/>'),
    ],
)  # fmt: skip
def test_it_comes_back(text: str) -> None:
    read = read_configuration(text, "cib.xml")
    assert not has_errors(read.reports)
    for format_ in (through_xml, through_crm, through_yaml):
        assert format_(read.configuration) == read.configuration, format_.__name__


def through_xml(configuration: Configuration) -> Configuration:
    return read_configuration(write_configuration(configuration), "written.xml").configuration


def through_crm(configuration: Configuration) -> Configuration:
    script = parse_script(show(configuration, arrangement=Arrangement.DOCUMENT), "written.crm")
    made = assemble(script.statements)
    assert (script.reports, made.reports) == ((), ())
    return made.configuration


def through_yaml(configuration: Configuration) -> Configuration | None:
    found = load_policy(dump_policy(configuration), "written.yaml")
    assert not has_errors(found.reports)
    return found.configuration


@pytest.mark.parametrize(
    ("rule", "dropped"),
    [
        ('score="5"><expression id="e" attribute="x" operation="defined" type="number"/>',
         "<expression type>: defined compares nothing"),
        ('score="5"><rule id="i" score="7"><expression id="e" attribute="x" operation="defined"/></rule>',
         "<rule score>: only the outermost rule has one"),
    ],
)  # fmt: skip
def test_what_says_nothing_is_left_out_by_name(rule: str, dropped: str) -> None:
    (found,) = read_configuration(located(rule), "cib.xml").reports
    assert found.message == f"left out: {dropped}"


def test_what_stands_in_a_reference_is_left_out_by_name() -> None:
    template = '<primitive id="{}" class="ocf" provider="p" type="T"><operations {}><op id="{}" name="monitor" '
    template += 'interval="{}"/></operations></primitive>'
    text = template.format("a", 'id="ops"', "one", "10s") + template.format("b", 'id-ref="ops"', "two", "20s")
    (found,) = read_configuration(cib(resources=text), "cib.xml").reports
    assert found.message == "left out: what is in <operations id-ref=ops>: it refers to another one"


def test_the_name_of_a_list_of_operations_is_kept() -> None:
    """As in SUSE's guides for SAP, where others refer to it."""
    script = parse_script(
        "primitive a ocf:p:T operations $id=a-ops op monitor interval=9s\n"
        "primitive b ocf:p:T operations $id-ref=a-ops\nprimitive c ocf:p:T operations $id=empty",
        "text",
    )
    made = assemble(script.statements).configuration
    assert [each.operations_id for each in made.primitives()] == ["a-ops", "", "empty"]
    for again in (through_xml(made), through_crm(made), through_yaml(made)):
        assert again is not None
        assert [each.operations_id for each in again.primitives()] == ["a-ops", "", "empty"]
        assert again.resources == made.resources
    text = write_configuration(made)
    assert text.count('<operations id="a-ops">') == text.count('<operations id-ref="a-ops"/>') == 1
    more = parse_script("primitive d ocf:p:T operations $id-ref=a-ops", "text")
    first, *_, last = assemble(more.statements, base=made).configuration.primitives()
    assert last.operations == first.operations != ()


def test_crmshs_mark_of_a_set_of_two_is_no_resource() -> None:
    text = "primitive a ocf:p:T\nprimitive b ocf:p:T\ncolocation c inf: _rsc_set_ a b\norder o Mandatory: _rsc_set_ a b"
    script = parse_script(text, "text")
    constraints = assemble(script.statements).configuration.constraints.values()
    assert [[each.members for each in constraint.sets] for constraint in constraints] == [[("a", "b")]] * 2


def test_what_a_status_says_in_vain_is_left_out_by_name() -> None:
    record = (
        '<lrm id="1"><lrm_resources><lrm_resource id="web" class="ocf" provider="pacemaker" type="Dummy"><lrm_rsc_op '
        'id="web_last_0" operation="start" interval="0" call-id="3" rc-code="-1" op-status="0" '
        'transition-key="4:1:0:u"/></lrm_resource></lrm_resources></lrm>'
    )
    stray = '<transient_attributes id="1"><nvpair id="x" name="up" value="1"/></transient_attributes>'
    lines = report_lines(read(cib(status=f'<node_state id="1" uname="n1" {MEMBER}>{record}{stray}</node_state>')))
    assert [each.partition(": left out: ")[2] for each in lines] == [
        "the attribute up: it is in no <instance_attributes>",
        "the record web_last_0: its rc-code=-1 is no exit status",
    ]


@pytest.mark.parametrize(
    ("text", "is_score"),
    [
        ("""rule '#health-azure': defined '#uname'""", True),
        ("""rule "#health-azure": defined #uname""", True),
        ("""rule "x:" eq 1""", False),
    ],
)
def test_names_in_rules_may_stand_in_quotes(text: str, is_score: bool) -> None:
    script = parse_script(f"primitive a ocf:p:T\nlocation l /'!h.*'/ {text}", "text")
    (location,) = assemble(script.statements).configuration.constraints.values()
    assert script.reports == ()
    assert isinstance(location, Location)
    assert (location.pattern, location.rules[0].score_attribute) == ("!h.*", "#health-azure" if is_score else None)


@pytest.mark.parametrize(
    "text",
    [
        "primitive a ocf:p:T\nprimitive b ocf:p:T\nlocation l a rule 7: #uname eq n1\nlocation m b rule $id-ref=l",
        "primitive a ocf:p:T params $id=shared x=1\nprimitive b ocf:p:T params $id-ref=shared",
    ],
)
def test_an_id_stands_in_a_document_once(text: str) -> None:
    made = assemble(parse_script(text, "text").statements).configuration
    written = write_configuration(made)
    assert [id_ for id_, count in Counter(re.findall(r' id="([^"]*)"', written)).items() if count > 1] == []
    assert through_xml(made) == made


def test_a_set_that_two_constraints_share_is_written_once() -> None:
    shared = '<rsc_colocation id="{}" score="5"><resource_set {}>{}</rsc_colocation>'
    members = '<resource_ref id="a"/><resource_ref id="b"/></resource_set>'
    both = shared.format("c", 'id="s"', members) + shared.format("d", 'id-ref="s"', "</resource_set>")
    read = read_configuration(cib(resources=TWO, constraints=both), "cib.xml")
    assert not has_errors(read.reports)
    written = write_configuration(read.configuration)
    assert written.count('<resource_set id="s"') == 1
    assert through_xml(read.configuration) == through_crm(read.configuration) == read.configuration


@pytest.mark.parametrize(
    ("meta", "written"),
    [
        ("start-delay=5", 'name="start-delay" value="5"'),
        ("timeout=1 record-pending=yes", 'timeout="1s" record-pending="true"'),
        ("on-fail=Nothing start-delay=0", 'on-fail="ignore"'),
        ("start-delay=0", 'name="start-delay" value="0"'),
        ("rule #uname eq n1 start-delay=5", 'name="start-delay" value="5"'),
        ("enabled=false", 'name="enabled" value="false"'),
    ],
)
def test_settings_in_the_meta_attributes_of_an_operation_are_written_as_they_are_read(meta: str, written: str) -> None:
    script = parse_script(f"primitive a ocf:p:T op start op_meta {meta}", "text")
    made = assemble(script.statements).configuration
    first = write_configuration(made)
    assert written in first
    assert write_configuration(through_xml(made)) == first
