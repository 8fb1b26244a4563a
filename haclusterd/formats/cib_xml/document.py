"""Pacemaker's CIB as XML, both ways: what other packages use of it.

Reading never raises and never drops anything without a report: what the model cannot hold is NOT_YET with element and
line, an error when a plan could depend on it and a warning when none does.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from haclusterd.formats.cib_xml.configuration import ConfigurationReader
from haclusterd.formats.cib_xml.membership import is_set
from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.status import StatusReader
from haclusterd.formats.cib_xml.tree import Element, parse_tree
from haclusterd.formats.cib_xml.upgrade import NEWEST_NAME, name_of_today
from haclusterd.formats.cib_xml.writer import write_configuration
from haclusterd.model.cluster import Cib, ConfigurationVersion, Member
from haclusterd.model.configuration import Configuration, effective
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem, in_reading_order, report
from haclusterd.reports.places import Path, Places

__all__ = ["CibReading", "ConfigurationReading", "read_cib", "read_configuration", "write_configuration"]


EPOCH_DIGITS_MAX = 16
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


def read_configuration(text: str, source: str, *, keeps_ids: bool = False) -> ConfigurationReading:
    """Read the configuration of a CIB, or a `<configuration>` by itself, without any status.

    `keeps_ids`: ids of pairs are kept although nothing refers to them, because a user has written them.
    """
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
        notes.left_out(root, name, "from afar there is REST over TLS here (haclusterd-api), or ssh")
    configuration, _ = ConfigurationReader(root, notes, keeps_ids=keeps_ids).read()
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
        version=ConfigurationVersion(_epoch(root), _author(root), _moment(root.get("cib-last-written") or "")),
    )
    return CibReading(
        cib,
        is_set(root.get("have-quorum")),
        notes.number(root, "no-quorum-panic", 0) != 0,
        _execution_date(root, notes),
        in_reading_order(notes.reports),
        Places() if (section := root.first("configuration")) is None else places_of(section, source),
    )


def _author(root: Element) -> str:
    """Return who changed the configuration last, as `user@node`; empty where it is not said."""
    user = root.get("update-user")
    return f"{user}@{root.get('update-origin') or ''}" if user else ""


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WRITTEN_AT = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})", re.ASCII)


def _moment(text: str) -> WallTime:
    """Read a moment as Pacemaker writes it, `Sun Nov 22 20:00:00 2026`, as UTC; 0 where it is none."""
    match = _WRITTEN_AT.fullmatch(text)
    if match is None or match[1] not in _MONTHS:
        return WallTime(0)
    day, hour, minute, second, year = (int(match[at]) for at in range(2, 7))
    try:
        found = datetime(year, _MONTHS.index(match[1]) + 1, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return WallTime(0)
    return WallTime(int(found.timestamp()) * 1000)


def _epoch(root: Element) -> int:
    """Return the version of the configuration, which each change in the file raises; 0 where it is no number."""
    text = root.get("epoch") or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < EPOCH_DIGITS_MAX else 0


def _execution_date(root: Element, notes: Notes) -> WallTime | None:
    seconds = notes.number(root, "execution-date", 0)
    return WallTime(seconds * 1000) if seconds > 0 else None


_RESOURCES = ("primitive", "group", "clone", "master", "bundle")
_CONSTRAINTS = ("rsc_location", "rsc_colocation", "rsc_order", "rsc_ticket")
_NAMED = {
    **dict.fromkeys(_RESOURCES, "resource"),
    **dict.fromkeys(_CONSTRAINTS, "constraint"),
    "template": "template",
    "tag": "tag",
}
_BLOCKS = {"meta_attributes": "meta", "instance_attributes": "params", "utilization": "utilization"}
_SECTIONS = {"crm_config": "properties", "rsc_defaults": "resource_defaults", "op_defaults": "operation_defaults"}


def places_of(configuration: Element, source: str) -> Places:
    """Return the places of objects, of their names and values, and of operations."""
    known: dict[Path, Place] = {}
    for path, element in _found(configuration):
        known.setdefault(path, Place(source, element.line))
    return Places(known)


def _found(configuration: Element) -> Iterator[tuple[Path, Element]]:
    for section in configuration.children:
        if section.tag in _SECTIONS:
            for name, pair in _pairs(section):
                yield (_SECTIONS[section.tag], name), pair
                yield (_SECTIONS[section.tag], name_of_today(name)), pair
        elif section.tag == "nodes":
            for node in section.children:
                yield from _node(node)
        elif section.tag == "fencing-topology":
            yield from (((("fencing_level", str(index)), level)) for index, level in enumerate(section.children))
        else:
            for element in section.every():
                kind, identifier = _NAMED.get(element.tag), element.get("id")
                if kind is not None and identifier is not None:
                    yield from _object((kind, identifier), element)


def _node(node: Element) -> Iterator[tuple[Path, Element]]:
    path = ("node", node.get("uname") or node.get("id") or "")
    yield path, node
    for block, word in (("instance_attributes", "attributes"), ("utilization", "utilization")):
        for each in node.all(block):
            yield (*path, word), each
            yield from (((*path, word, name), pair) for name, pair in _pairs(each))


def _object(path: Path, element: Element) -> Iterator[tuple[Path, Element]]:
    yield path, element
    operations = 0
    for child in element.children:
        if child.tag in _BLOCKS:
            yield (*path, _BLOCKS[child.tag]), child
            yield from (((*path, _BLOCKS[child.tag], name), pair) for name, pair in _pairs(child))
        elif child.tag == "operations":
            for operation in child.all("op"):
                yield (*path, "operation", str(operations)), operation
                operations += 1
        elif child.tag in _RESOURCES:
            yield (*path, "member", child.get("id") or ""), child


def _pairs(element: Element) -> Iterator[tuple[str, Element]]:
    for pair in element.every():
        name = pair.get("name")
        if pair.tag == "nvpair" and name is not None:
            yield name, pair
