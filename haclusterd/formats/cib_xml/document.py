"""Pacemaker's CIB as XML, both ways: what other packages use of it.

Reading never raises and never drops anything without a report: what the model cannot hold is NOT_YET with element and
line, an error when a plan could depend on it and a warning when none does.
"""

from dataclasses import dataclass

from haclusterd.formats.cib_xml.configuration import ConfigurationReader
from haclusterd.formats.cib_xml.membership import is_set
from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.places import places_of
from haclusterd.formats.cib_xml.status import StatusReader
from haclusterd.formats.cib_xml.tree import Element, parse_tree
from haclusterd.formats.cib_xml.upgrade import NEWEST_NAME
from haclusterd.formats.cib_xml.writer import write_configuration
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.configuration import Configuration, effective
from haclusterd.model.instants import WallTime
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem, in_reading_order, report
from haclusterd.reports.places import Places

__all__ = ["CibReading", "ConfigurationReading", "read_cib", "read_configuration", "write_configuration"]


_REMOTE_ADMINISTRATION = ("remote-tls-port", "remote-clear-port")


@dataclass(frozen=True, slots=True)
class CibReading:
    """What a document says; not to be used without asking when there are errors among the reports."""

    cib: Cib
    has_quorum: bool = True
    may_fence_without_quorum: bool = False
    """Whether nodes are fenced although there is no quorum, when that is the policy (`no-quorum-panic`)."""
    execution_date: WallTime | None = None
    """When the plan was made that the document was saved for."""
    reports: tuple[ReportItem, ...] = ()
    places: Places = Places()


@dataclass(frozen=True, slots=True)
class ConfigurationReading:
    """What a document configures; not to be used when there are errors among the reports."""

    configuration: Configuration
    reports: tuple[ReportItem, ...] = ()
    places: Places = Places()


def read_configuration(text: str, source: str) -> ConfigurationReading:
    """Read the configuration of a CIB, or a `<configuration>` by itself, without any status."""
    root = parse_tree(text, source)
    if isinstance(root, ReportItem):
        return ConfigurationReading(Configuration(), (root,))
    if root.tag == "configuration":
        root = Element("cib", {"validate-with": NEWEST_NAME}, root.line, [root])
    section = root.first("configuration")
    if root.tag != "cib" or section is None:
        problem = f"<{root.tag}> is neither a <cib> with a <configuration> nor a <configuration>"
        return ConfigurationReading(
            Configuration(), (report(Code.SYNTAX, place=Place(source, root.line), problem=problem),)
        )
    notes = Notes(source)
    for name in _REMOTE_ADMINISTRATION:
        notes.left_out(root, name, "nobody administers this cluster over TLS: there is its control socket, and ssh")
    configuration, _ = ConfigurationReader(root, notes).read()
    return ConfigurationReading(configuration, in_reading_order(notes.reports), places_of(section, source))


def read_cib(text: str, source: str) -> CibReading:
    """Read a CIB with its status; `source` is what reports call the text."""
    root = parse_tree(text, source)
    if isinstance(root, ReportItem):
        return CibReading(Cib(), reports=(root,))
    if root.tag != "cib":
        place = Place(source, root.line)
        return CibReading(Cib(), reports=(report(Code.SYNTAX, place=place, problem=f"<{root.tag}> is not a <cib>"),))
    notes = Notes(source)
    configuration, names = ConfigurationReader(root, notes).read()
    status = StatusReader(root, configuration, names, notes).read()
    properties = effective(configuration.properties)
    cib = Cib(
        cluster_name=properties.get("cluster-name", ""),
        members={name: Member(name, ()) for name, node in configuration.nodes.items() if not node.is_remote},
        configuration=configuration,
        status=status,
    )
    return CibReading(
        cib,
        is_set(root.get("have-quorum")),
        notes.number(root, "no-quorum-panic", 0) != 0,
        _execution_date(root, notes),
        in_reading_order(notes.reports),
        Places() if (section := root.first("configuration")) is None else places_of(section, source),
    )


def _execution_date(root: Element, notes: Notes) -> WallTime | None:
    seconds = notes.number(root, "execution-date", 0)
    return WallTime(seconds * 1000) if seconds > 0 else None
