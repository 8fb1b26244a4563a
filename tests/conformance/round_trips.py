"""What is written is read back, and real Pacemaker accepts it (`make round-trips`).

    python -m tests.conformance.round_trips [--only NAME[,NAME]] [--verbose] [--no-verify]

The documents are Pacemaker's public scheduler cases, the random CIBs and the crm scripts of ../shared beside this
repository. Of each that can be read, what is kept of it goes from crm text to XML, to YAML, to crm text and to XML
again: nothing is refused, and both texts are equal to the first ones. Where `crm_verify` is installed it judges the
XML. It may object to what the document itself had wrong in its eyes, and to nothing else; how many of these there are,
and what is wrong with them, is counted.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree as ET

from haclusterd.commands.configure.adoption import adopt
from haclusterd.formats.cib_xml.document import read_configuration, write_configuration
from haclusterd.formats.crm.syntax import Arrangement, assemble, parse_script, show
from haclusterd.formats.policy.yaml import dump_policy, load_policy
from haclusterd.model.configuration import Configuration
from haclusterd.model.properties import CLUSTER_PROPERTIES
from haclusterd.model.records import dataclass
from haclusterd.reports.codes import Severity
from haclusterd.reports.items import ReportItem, has_errors
from tests.conformance.loaded_corpus import SHARED, Document, absence, documents

RANDOM = SHARED / "scheduler" / "random-public.tar.xz"
VERIFY = shutil.which("crm_verify")
VERIFIERS = 2
VERIFY_CPU_S = 10
"""What crm_verify may compute: it needs 30 ms."""
NO_ANSWER = "no answer"
SHOWN_CAUSES = 25
_NOISE = re.compile(r"^\(.*?\)\s*\w+:\s*|\bin line \d+\b|:\d+:|^/\S+?:")
"""Of a line of crm_verify: which function wrote it, and where in the file the thing stands."""
_NO_OBJECTION = re.compile(r"found during check: config (may )?not (be )?valid")
"""A summary."""
_VERSIONS = 'type="version"'
"""A comparison that release 2.1.5 never ends when a word is no version; it judges one of strings in its place."""
_OLDER = {row.name: row.aliases[0] for row in CLUSTER_PROPERTIES if row.aliases}
_OF_TODAY = re.compile(f'name="({"|".join(_OLDER)})"')
"""Properties under names that the installed crm_verify may be too old to know, as it is for `fence` without quorum."""
KNOWN = {
    "rw0095": "three constraints on what is not defined end its own judgement; without them it goes on to its clones",
    "intervals": "the installed crm_verify does not read P40S, which Pacemaker Explained allows; it is written as 40s",
}
"""Documents whose XML crm_verify may object to, and why."""


@dataclass(frozen=True, slots=True)
class Trip:
    """What became of one document."""

    document: Document
    xml: str = ""
    """As it was written first; empty: it could not be read."""
    faults: tuple[str, ...] = ()


def random_documents(only: Sequence[str] = ()) -> Iterator[Document]:
    """Yield the random CIBs, in order of their names."""
    with tarfile.open(RANDOM) as archive:
        members = {Path(each.name).stem: each for each in archive if each.isfile() and each.name.endswith(".xml")}
        for name, member in sorted(members.items()):
            file = archive.extractfile(member)
            if file is not None and (not only or name in only):
                yield Document(name, file.read().decode(), "xml")


def travel(document: Document) -> Trip:
    """Send what is kept of a document through every format."""
    kept, errors = _kept(document)
    if kept is None:
        return Trip(document, "", tuple(f"cannot be read: {_render(each)}" for each in errors))
    crm, xml = show(kept, arrangement=Arrangement.DOCUMENT), write_configuration(kept)
    faults: list[str] = []
    from_crm = _from_crm(crm, faults)
    if from_crm is not None and write_configuration(from_crm) != xml:
        faults.append(f"crm text says something else: {_difference(xml, write_configuration(from_crm))}")
    read = read_configuration(xml, "written.xml")
    faults += [f"XML is refused: {_render(each)}" for each in read.reports if each.severity is Severity.ERROR]
    policy = load_policy(dump_policy(read.configuration), "written.yaml")
    faults += [f"YAML is refused: {_render(each)}" for each in policy.reports if each.severity is Severity.ERROR]
    if policy.configuration is not None and not faults:
        again = show(policy.configuration, arrangement=Arrangement.DOCUMENT)
        expected = show(read.configuration, arrangement=Arrangement.DOCUMENT)
        if again != expected:
            faults.append(f"the second crm text differs: {_difference(expected, again)}")
        last = _from_crm(again, faults)
        if last is not None and write_configuration(last) != xml:
            faults.append(f"the second XML differs: {_difference(xml, write_configuration(last))}")
    return Trip(document, xml, tuple(faults))


def _kept(document: Document) -> tuple[Configuration | None, Sequence[ReportItem]]:
    if document.format == "xml":
        made = adopt(document.text, document.name, Configuration())
        return None if has_errors(made.reports) else made.configuration, made.reports
    script = parse_script(document.text, document.name)
    read = assemble(script.statements)
    reports = (*script.reports, *read.reports)
    return None if has_errors(reports) else read.configuration, reports


def _from_crm(text: str, faults: list[str]) -> Configuration | None:
    script = parse_script(text, "written.crm")
    made = assemble(script.statements)
    errors = [each for each in (*script.reports, *made.reports) if each.severity is Severity.ERROR]
    faults += [f"crm text is refused: {_render(each)}" for each in errors]
    return None if errors else made.configuration


def _difference(one: str, other: str) -> str:
    pairs = zip(one.splitlines(), other.splitlines(), strict=False)
    return next((f"{a.strip()!r} becomes {b.strip()!r}" for a, b in pairs if a != b), "one has more lines")


def _render(item: ReportItem) -> str:
    return f"{item.place}: {item.message}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What crm_verify says of the XML that was written of a document."""

    kind: str
    """`accepted`; `as_document`: it has nothing against it but what it has against the document; `objects`."""
    objections: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    """What it has against the document, too."""


def judge(trip: Trip, folder: Path) -> Judgement:
    """Have crm_verify judge what was written of a document."""
    path = folder / f"{trip.document.name}.xml"
    ours = _verdict(trip.xml, path)
    if not ours:
        return Judgement("accepted")
    own = _original(trip.document)
    known = _verdict(own, folder / f"{trip.document.name}.own.xml") if own else set()
    if ours - known or NO_ANSWER in ours:
        return Judgement("objects", tuple(sorted(ours - known)) or (NO_ANSWER,))
    return Judgement("as_document", (), tuple(sorted(ours)))


def cause(line: str) -> str:
    """Return an objection without the names of one document."""
    return re.sub(r"\b[\w.:-]*\d[\w.:-]*", "X", line)


def _original(document: Document) -> str:
    """Return the configuration of a document as Pacemaker's own text, without a status; empty: there is none."""
    if document.format != "xml":
        made = SHARED / "crm" / "public" / f"{document.name}.xml"
        text = made.read_text() if made.exists() else ""
    else:
        text = document.text
    if not text:
        return ""
    root = ET.fromstring(text)
    for status in root.findall("status"):
        # Without the section nothing is planned, and half of the checks are not made.
        status.clear()
    for pair in root.iter("nvpair"):
        if pair.get("name") == "have-watchdog":
            # It is left out by name, and counts as a way to fence in Pacemaker.
            pair.set("value", "false")
    # The installed crm_verify may be older than the document's schema.
    found = re.fullmatch(r"pacemaker-(\d+)\.(\d+)", root.get("validate-with", ""))
    if found is None or (int(found[1]), int(found[2])) > (3, 9):
        root.set("validate-with", "pacemaker-3.9")
    return ET.tostring(root, encoding="unicode")


def _verdict(text: str, path: Path) -> set[str]:
    assert VERIFY is not None
    older = _OF_TODAY.sub(lambda found: f'name="{_OLDER[found[1]]}"', text)
    older = older.replace('name="no-quorum-policy" value="fence"', 'name="no-quorum-policy" value="suicide"')
    path.write_text(older.replace(_VERSIONS, 'type="string"'))
    try:
        command = ("prlimit", f"--cpu={VERIFY_CPU_S}", VERIFY, "-V", "-x", path)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        path.unlink()
    if done.returncode < 0:
        return {NO_ANSWER}
    if done.returncode == 0:
        return set()
    lines = [line for line in done.stderr.splitlines() if not _NO_OBJECTION.search(line)]
    if not lines and "Errors found" not in done.stderr:
        # Warnings that it keeps to itself are about nodes whose state it does not know.
        return set()
    complaints = (_in_words_of_today(" ".join(_NOISE.sub(" ", line).split())) for line in lines)
    return set(complaints) or {f"exit status {done.returncode}"}


def _in_words_of_today(line: str) -> str:
    return line.replace("'Master'", "'Promoted'").replace("'Slave'", "'Unpromoted'")


def main() -> int:
    given = _arguments()
    if absence():
        print(f"skipped: {absence()}")
        return 0
    only = [name for name in given.only.split(",") if name]
    trips = [travel(each) for source in (documents, random_documents) for each in source(only)]
    read = [each for each in trips if each.xml]
    wrong = [each for each in read if each.faults]
    for each in trips if given.verbose else wrong:
        for fault in each.faults:
            print(f"{each.document.name}: {fault}"[:600])
    counts, refused = (None, 0) if VERIFY is None or given.no_verify else _verified(read)
    kinds = "" if counts is None else "".join(f" {name}={count}" for name, count in counts)
    verified = f"{len(read) - refused}{kinds}" if counts is not None else "skipped"
    print(f"RESULT equal={len(read) - len(wrong)} read={len(read)} of={len(trips)} verified={verified}")
    return 1 if wrong or refused else 0


def _verified(read: Sequence[Trip]) -> tuple[list[tuple[str, int]], int]:
    """Have crm_verify judge what was read, print what it objects to; return the judgements and the refusals."""
    kinds, causes, refused = Counter[str](), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(VERIFIERS) as pool:
        for each, found in zip(read, pool.map(lambda trip: judge(trip, Path(folder)), read), strict=True):
            is_known = each.document.name in KNOWN
            kinds["known" if is_known and found.objections else found.kind] += 1
            refused += bool(found.objections) and not is_known
            causes.update({cause(line) for line in found.shared})
            for line in found.objections:
                print(f"{each.document.name}: crm_verify: {line}"[:600])
    print("what it has against documents themselves, and against how many:")
    for line, count in causes.most_common(SHOWN_CAUSES):
        print(f"  {count:4}  {line}"[:200])
    return sorted(kinds.items()), refused


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only these, comma-separated")
    parser.add_argument("--verbose", action="store_true", help="show why documents cannot be read, too")
    parser.add_argument("--no-verify", action="store_true", help="do not ask crm_verify")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
