"""Pacemaker's CIB as XML, both ways: the door of the rooms `cib_xml_*`.

Reading never raises and never drops anything without a report: what the model cannot hold is NOT_YET with element and
line, an error when a plan could depend on it and a warning when none does.
"""

from dataclasses import dataclass

from haclusterd.formats.cib_xml_configuration import ConfigurationReader
from haclusterd.formats.cib_xml_membership import is_set
from haclusterd.formats.cib_xml_notes import Notes
from haclusterd.formats.cib_xml_status import StatusReader
from haclusterd.formats.cib_xml_tree import Element, parse_tree
from haclusterd.formats.cib_xml_writer import write_configuration
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.configuration import effective
from haclusterd.model.instants import WallTime
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem, in_reading_order, report

__all__ = ["CibReading", "read_cib", "write_configuration"]


@dataclass(frozen=True, slots=True)
class CibReading:
    """What a document says; not to be used without asking when there are errors among the reports."""

    cib: Cib
    has_quorum: bool = True
    """Whether it is to be acted as with a quorum: there is one, or none is asked for."""
    execution_date: WallTime | None = None
    """When the plan was made that the document was saved for."""
    reports: tuple[ReportItem, ...] = ()


def read_cib(text: str, source: str) -> CibReading:
    """Read a CIB with its status; `source` is what reports call the text."""
    root = parse_tree(text, source)
    if isinstance(root, ReportItem):
        return CibReading(Cib(), reports=(root,))
    if root.tag != "cib":
        place = Place(source, root.line)
        return CibReading(Cib(), reports=(report(Code.SYNTAX, place=place, problem=f"<{root.tag}> is not a <cib>"),))
    notes = Notes(source)
    has_quorum = is_set(root.get("have-quorum"))
    configuration, names = ConfigurationReader(root, notes).read()
    status = StatusReader(root, configuration, names, notes).read()
    properties = effective(configuration.properties)
    cib = Cib(
        cluster_name=properties.get("cluster-name", ""),
        members={name: Member(name, ()) for name, entry in configuration.nodes.items() if not entry.is_remote},
        configuration=configuration,
        status=status,
    )
    date = _execution_date(root, notes)
    counts_as_quorate = has_quorum or properties.get("no-quorum-policy") == "ignore"
    return CibReading(cib, counts_as_quorate, date, in_reading_order(notes.reports))


def _execution_date(root: Element, notes: Notes) -> WallTime | None:
    seconds = notes.number(root, "execution-date", 0)
    return WallTime(seconds * 1000) if seconds > 0 else None
