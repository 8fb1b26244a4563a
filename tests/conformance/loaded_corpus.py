"""Other people's configurations, loaded as a running cluster would load them (`make load-corpus`).

    python -m tests.conformance.loaded_corpus [--only NAME[,NAME]] [--verbose] [--warnings]

The CIBs are Pacemaker's public scheduler cases, the crm scripts those that real crmsh was asked about; both come from
../shared beside this repository, and without it nothing is loaded. The members are the nodes that a document names.
What is installed is not looked at: agents are a matter of the machine.

A configuration is silent when something that it says is neither in the configuration that was made of it, as
`show xml` writes it, nor named by a report at its line.
"""

import argparse
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from haclusterd.cib.commands import ChangeConfiguration
from haclusterd.cib.edits import apply_edits
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.formats.cib_xml.document import read_cib, write_configuration
from haclusterd.formats.cib_xml.tree import Element, parse_tree
from haclusterd.formats.crm.syntax import assemble, parse_script
from haclusterd.model import durations, scores
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.operations import read_role
from haclusterd.model.records import dataclass
from haclusterd.model.rows import read_boolean
from haclusterd.reports.codes import Severity
from haclusterd.reports.items import ReportItem

SHARED = Path(__file__).parents[3] / "shared" / "conformance"
CIBS = SHARED / "scheduler" / "public.tar.xz"
SCRIPTS = SHARED / "crm" / "public"
AUTHOR = "corpus@tests"
SHOWN_REASONS = 40
CIBS_AT_LEAST = 420
"""So many of the 598 public CIBs must come in."""
NOT_BUILT = (
    "bundle", "agent of class nagios", "agent of class upstart", "connection to a Pacemaker Remote",
    "Pacemaker Remote node", "guest node",
)  # fmt: skip
"""What a running cluster does not do yet, as messages name it."""


@dataclass(frozen=True, slots=True)
class Document:
    name: str
    text: str
    format: str
    """`xml` or `crm`."""


@dataclass(slots=True)
class Loaded:
    """What became of one document."""

    name: str
    refusals: tuple[ReportItem, ...] = ()
    warnings: tuple[ReportItem, ...] = ()
    silent: tuple[str, ...] = ()
    """What it says and nobody mentions."""
    configuration: Configuration | None = None


def absence() -> str:
    """Say what is missing for loading anything; empty when nothing is."""
    missing = [str(path) for path in (CIBS, SCRIPTS) if not path.exists()]
    return f"not there: {', '.join(missing)}" if missing else ""


def documents(only: Sequence[str] = ()) -> Iterator[Document]:
    """Yield the CIBs, then the scripts, each in order of their names."""
    with tarfile.open(CIBS) as archive:
        # In the order of the archive: to read backwards is to unpack it again from its beginning.
        found = {Path(each.name).stem: archive.extractfile(each).read() for each in archive if _is_cib(each)}
    for name in sorted(found):
        if not only or name in only:
            yield Document(name, found[name].decode(), "xml")
    for path in sorted(SCRIPTS.glob("*.crm")):
        if not only or path.stem in only:
            yield Document(path.stem, path.read_text(), "crm")


def _is_cib(member: tarfile.TarInfo) -> bool:
    return member.isfile() and member.name.endswith(".xml")


def load(document: Document) -> Loaded:
    """Load a document into a cluster of the nodes that it names, as `crm configure load ... replace` does."""
    arguments = {
        "text": document.text, "source": f"{document.name}.{document.format}", "format": document.format,
        "mode": "replace",
    }  # fmt: skip
    members = _members(document)
    cib = Cib(members={name: Member(name, (), is_witness=False) for name in members})
    outcome = registry.run("configure.load", arguments, Context(cib, WallTime(0), AUTHOR, is_forced=True))
    refusals = tuple(each for each in outcome.reports if each.severity is Severity.ERROR)
    warnings = tuple(each for each in outcome.reports if each.severity is Severity.WARNING)
    found = Loaded(document.name, refusals, warnings)
    if outcome.is_refused:
        return found
    configuration = cib.configuration
    for command in outcome.commands:
        assert isinstance(command, ChangeConfiguration)
        configuration = apply_edits(configuration, command.edits)
    found.configuration = configuration
    if document.format == "xml":
        found.silent = tuple(lost(document.text, write_configuration(configuration), outcome.reports))
    return found


def _members(document: Document) -> list[NodeName]:
    if document.format == "xml":
        nodes = read_cib(document.text, document.name).cib.configuration.nodes
        return [name for name, node in nodes.items() if not node.is_remote]
    made = assemble(parse_script(document.text, document.name).statements)
    return [name for name, node in made.configuration.nodes.items() if not node.is_remote]


def lost(text: str, written: str, reports: Sequence[ReportItem]) -> Iterator[str]:
    """Yield what a document says, no report names, and what was written of it does not say."""
    there = {fact for fact, _ in _facts(written)}
    reported = {each.place.line for each in reports if each.place is not None}
    messages = " ".join(each.message for each in reports).lower()
    for fact, lines in _facts(text):
        is_named = reported.intersection(lines) or f"{fact[2]}={fact[3]}" in messages
        if fact not in there and not is_named:
            yield f"line {lines[0]}: {' '.join(fact)}"


_Fact = tuple[str, str, str, str]
"""A kind of element, the id of what it belongs to, a name and a value."""
_ROOTS = ("configuration", "crm_config", "resources", "constraints", "nodes", "rsc_defaults", "op_defaults", "tags",
          "fencing-topology", "operations", "cib", "acls", "alerts", "status", "storage", "network")  # fmt: skip
_WITHOUT_MEANING = {
    ("node", "type", "member"), ("node", "type", "normal"), ("rsc_order", "kind", "mandatory"),
    ("rsc_order", "first-action", "start"), ("rsc_order", "symmetrical", "true"),
    ("rsc_order", "require-all", "true"), ("op", "enabled", "true"), ("op", "start-delay", "0"),
    ("op", "interval", "0"), ("cluster_property_set", "score", "0"), ("rule", "boolean-op", "and"),
}  # fmt: skip
_SPELLED_AGAIN = {("suicide", "no-quorum-policy"), ("poweroff", "fencing-action"), ("poweroff", "stonith-action")}
"""Values that have another word today."""
_TODAYS_NAMES = {"crmd-transition-delay": "transition-delay"}
"""Options that have another name today, and are kept under it (0006, "Older schemas")."""
_NOT_KEPT = ("nvpair", "expression", "date_expression", "rsc_expression", "op_expression", "duration", "date_spec")
"""Elements whose ids nobody refers to: they get new ones."""


def _facts(text: str) -> Iterator[tuple[_Fact, tuple[int, ...]]]:
    """Yield what a document says, spelled in one way, each with its line and those of the elements around it."""
    root = parse_tree(text, "text")
    if isinstance(root, ReportItem):
        return
    section = root if root.tag == "configuration" else root.first("configuration")
    pending = [(each, "", ()) for each in (section.children if section is not None else ())]
    while pending:
        element, owner, above = pending.pop()
        lines = (element.line, *above)
        if element.tag == "lifetime":
            continue
        own = element.get("id-ref") or element.get("id") or owner
        if element.tag == "node":
            own = element.get("uname") or own
        if element.tag == "nvpair" and element.get("id-ref") is None:
            value = (element.get("value") or "").lower()
            name = (element.get("name") or "").lower()
            name = _TODAYS_NAMES.get(name, name)
            if (value, name) not in _SPELLED_AGAIN and value != "#default":
                yield ("nvpair", owner, name, value), lines
        elif element.tag not in _ROOTS:
            key = owner if element.tag in _NOT_KEPT else own
            yield from (
                ((_tag(element.tag), key, name, value), lines)
                for name, value in _attributes_of(element) if (element.tag, name, value) not in _WITHOUT_MEANING
                and value
            )  # fmt: skip
        inside = owner if element.tag in _NOT_KEPT else own
        pending += [(each, inside, lines) for each in element.children]


def _tag(tag: str) -> str:
    return "clone" if tag == "master" else tag


def _attributes_of(element: Element) -> Iterator[tuple[str, str]]:
    for name, text in element.attributes.items():
        if name in ("id", "id-ref") and element.tag in _NOT_KEPT:
            continue
        yield name, _spelled(element.tag, name, text)


def _spelled(tag: str, name: str, text: str) -> str:
    """Write a value as the writer would; what cannot be read stays."""
    reader: Callable[[str], str] | None = None
    if name in ("interval", "timeout", "start-delay") and tag == "op":
        reader = _duration
    elif name in ("score",):
        reader = _score
    elif name in ("symmetrical", "sequential", "require-all", "enabled", "influence", "record-pending"):
        reader = _boolean
    elif name in ("role", "rsc-role", "with-rsc-role"):
        reader = read_role
    try:
        return text.lower() if reader is None and name != "id" else reader(text) if reader else text
    except ValueError:
        return text


def _duration(text: str) -> str:
    span_ms = durations.parse(text)
    return durations.render(span_ms) if span_ms else "0"


def _score(text: str) -> str:
    return scores.render(scores.parse(text))


def _boolean(text: str) -> str:
    return str(read_boolean(text)).lower()


def refused_by_name(item: ReportItem) -> bool:
    """Tell whether a refusal names something that is not built yet, or an option of it."""
    is_construct = item.code == "NOT_YET" and any(word in item.parameters["construct"] for word in NOT_BUILT)
    return is_construct or (item.code in ("BAD_VALUE", "NEEDS_OCF") and "has no effect" in item.message)


def main() -> int:
    given = _arguments()
    if absence():
        print(f"skipped: {absence()}")
        return 0
    only = [name for name in given.only.split(",") if name]
    counts, reasons, examples = Counter[str](), Counter[str](), dict[str, list[str]]()
    silent = 0
    for document in documents(only):
        found = load(document)
        counts[f"{document.format} of"] += 1
        counts[f"{document.format} loaded"] += found.configuration is not None
        silent += bool(found.silent)
        for reason in {reason_of(each) for each in found.refusals}:
            reasons[reason] += 1
            examples.setdefault(reason, []).append(document.name)
        if given.verbose:
            for each in (*found.refusals, *(found.warnings if given.warnings else ())):
                print(f"{document.name}: {render(each)}")
        for each in found.silent:
            print(f"{document.name}: silent: {each}")
    print("why documents are refused, and how many:")
    for reason, count in reasons.most_common(SHOWN_REASONS):
        print(f"  {count:4}  {reason}   ({', '.join(examples[reason][:3])})")
    for format_ in ("xml", "crm"):
        print(f"  {format_}: {counts[f'{format_} loaded']} of {counts[f'{format_} of']}")
    loaded = counts["xml loaded"] + counts["crm loaded"]
    print(f"RESULT loaded={loaded} of={counts['xml of'] + counts['crm of']} silent={silent}"
          f" cibs={counts['xml loaded']} scripts={counts['crm loaded']}")
    return 1 if silent or (not only and counts["xml loaded"] < CIBS_AT_LEAST) else 0


def render(item: ReportItem) -> str:
    return f"{item.severity}: {item.place}: {item.message} ({item.remedy})"


def reason_of(item: ReportItem) -> str:
    """Return what a refusal is about, without the names of one document."""
    words = {name: value for name, value in item.parameters.items() if name in ("construct", "key", "kind")}
    if item.code == "BAD_VALUE":
        words["name"] = item.parameters["name"].rpartition(": ")[2]
        words["problem"] = item.parameters["problem"][:60]
    elif item.code.startswith("UNKNOWN_"):
        words["name"] = item.parameters.get("name", "")
    return " ".join((str(item.code), *words.values()))[:110]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only these, comma-separated")
    parser.add_argument("--verbose", action="store_true", help="show each refusal")
    parser.add_argument("--warnings", action="store_true", help="show each warning too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
