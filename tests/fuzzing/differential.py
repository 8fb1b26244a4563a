"""Our scheduler against Pacemaker's, on random CIBs; a difference is shrunk to a small CIB that shows it.

    python -m tests.fuzzing.differential [--cases 2000] [--seed 1] [--only SEED] [--out DIRECTORY] [--keep]
        [--themes common,nodes,fence]

For each seed: a configuration, its plan carried out by `crm_simulate`, something happens, and both plan. They must
agree on where everything is active afterwards, what is fenced, what an administrator would call the change, and the
actions with their order (levels L1-L4). Themes say which generator draws the configuration, one theme for each seed in
turn; a rare one goes through up to three transitions, some with failed actions. What is a matter of Pacemaker's version
stands in known_differences.py. A CIB on which crm_simulate does not end, or on which the comparison itself fails, is
named and counted apart; the run goes on behind each. The last line is for machines:
RESULT name=value ...
"""

import argparse
import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field
from tests.conformance.public_cases import HARNESS, harness
from tests.fuzzing.known_differences import cause_of
from tests.fuzzing.random_cibs import disturb, generate
from tests.fuzzing.themes import COMMON, group_of, named
from tests.outside_modules import load

PEER = os.environ.get("CRM_SIMULATE", "crm_simulate")
"""Another release may be named, as that of Debian 13 in a chroot: it must read and write the paths that it is given."""
PEER_LIMIT_S = 5
"""Processor time for one plan of the peer, which takes some hundredths of a second where it ends at all."""
ENDED_BY_LIMIT = frozenset(code for each in (signal.SIGXCPU, signal.SIGKILL) for code in (-each, 128 + each))
"""As it ends itself, and as the shell does that runs another release."""
DATE = "2023-11-14 22:13:20Z"
LEVELS = ("L1", "L2", "L3", "L4")
SKIPPED, UNENDED = "skipped", "unended"
TELLING = frozenset(
    {
        "group",
        "clone",
        "bundle",
        "fencing-level",
        "rsc_colocation",
        "rsc_order",
        "rsc_location",
        "rsc_ticket",
        "resource_set",
    }
)
"""Elements whose presence tells differences apart."""
REMOVABLE = frozenset(
    {
        "primitive",
        "group",
        "clone",
        "bundle",
        "fencing-topology",
        "fencing-level",
        "template",
        "tags",
        "tag",
        "obj_ref",
        "op",
        "nvpair",
        "meta_attributes",
        "instance_attributes",
        "utilization",
        "rsc_location",
        "rsc_colocation",
        "rsc_order",
        "rsc_ticket",
        "resource_set",
        "resource_ref",
        "node",
        "node_state",
        "lrm_resource",
        "lrm_rsc_op",
        "transient_attributes",
        "operations",
        "ticket_state",
        "rsc_defaults",
        "op_defaults",
    }
)


class PeerDoesNotEndError(Exception):
    """The peer used up its processor time on a CIB."""


def absence() -> str:
    """Say why nothing can be compared; empty when it can."""
    if shutil.which(PEER) is None:
        return f"{PEER} is not installed (apt-get install pacemaker-cli-utils)"
    if shutil.which("prlimit") is None:
        return "prlimit is not installed (apt-get install util-linux)"
    missing = [name for name in ("conformance.py", "pcmk_convert.py") if not (HARNESS / name).is_file()]
    return f"{' and '.join(missing)} not found in {HARNESS}" if missing else ""


@cache
def converter() -> ModuleType:
    """Load what reads the peer's output."""
    return load(HARNESS / "pcmk_convert.py")


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs for one seed, in the smallest CIB that shows it."""

    seed: int
    theme: str
    levels: tuple[str, ...]
    details: tuple[str, ...]
    xml: str
    error: str = ""

    @property
    def signature(self) -> str:
        """What the smallest CIB consists of, in short."""
        root = ET.fromstring(self.xml)
        words = {each.tag for each in root.iter() if each.tag in TELLING}
        words |= {f"{each.get('name')}={each.get('value')}" for each in root.iterfind("configuration//nvpair")}
        return " ".join(sorted(words))


def peers_plan(root: ET.Element, directory: Path) -> dict[str, Any] | None:
    """Let Pacemaker plan; None when it refuses the CIB."""
    cib, graph = directory / "cib.xml", directory / "graph.xml"
    cib.write_text(ET.tostring(root, encoding="unicode"))
    graph.unlink(missing_ok=True)
    run = _peer(directory, "-x", str(cib), "-S", "-G", str(graph), "-t", DATE)
    if run.returncode or not graph.exists():
        return None
    tree = converter().Tree(str(cib))
    parsed = converter().parse_summary(run.stdout, tree)
    unique = [each.get("id") for each in root.iterfind(".//clone") if _is_unique(each)]
    cloned = (each for each in root.iterfind(".//clone") if each.get("id") in unique)
    return {
        "status": parsed["status"],
        "summary": parsed["summary"],
        "actions": converter().parse_graph(str(graph), tree),
        "unique": [primitive.get("id") for clone in cloned for primitive in clone.iter("primitive")],
    }


def _peer(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    run = subprocess.run(
        ("prlimit", f"--cpu={PEER_LIMIT_S}", "--core=0", PEER, *arguments),
        env={**os.environ, "LC_ALL": "C", "TZ": "UTC", "CIB_shadow_dir": str(directory)},
        text=True,
        capture_output=True,
        check=False,
    )
    if run.returncode in ENDED_BY_LIMIT:
        raise PeerDoesNotEndError
    return run


def _is_unique(clone: ET.Element) -> bool:
    return any(
        pair.get("name") == "globally-unique" and pair.get("value") == "true"
        for pair in clone.iterfind("meta_attributes/nvpair")
    )


def our_plan(root: ET.Element) -> dict[str, Any] | str:
    """Plan; return why not, when it is refused."""
    context = Context(Cib(), WallTime(0), "fuzzer")
    arguments = {"text": ET.tostring(root, encoding="unicode"), "source": "cib.xml", "date": DATE.replace(" ", "T")}
    outcome = registry.run("simulate", arguments, context)
    if outcome.is_refused:
        return "; ".join(item.message for item in outcome.reports if item.severity == "error")
    document: dict[str, Any] = json.loads(json.dumps(outcome.data))
    return document


def evolved(seed: int, directory: Path, theme: str = COMMON) -> ET.Element | None:
    """Return the CIB of a seed: its plan carried out, and something happened since; None when the peer refuses it."""
    if theme != COMMON:
        return _lived(f"{theme}-{seed}", theme, directory)
    root = generate(seed)
    after = root if seed % 5 == 0 else _carried_out(root, directory)
    if after is not None:
        disturb(after, seed)
    return after


def _lived(seed: str, theme: str, directory: Path) -> ET.Element | None:
    chance, group = Random(seed), group_of(theme)
    root: ET.Element | None = group.themes[theme](chance)
    for number in range(chance.choice((0, 1, 1, 1, 2, 2, 3))):
        assert root is not None
        failed = _failed_action(root, chance, directory) if chance.random() < 0.3 else ()
        root = _carried_out(root, directory, *failed)
        if root is None:
            return None
        _forget_cancelled(root)
        if chance.random() < 0.9:
            disturb(root, f"{seed}-{number}", group.events)
    return root


def _forget_cancelled(root: ET.Element) -> None:
    """Remove what crm_simulate records and a cluster does not: that monitors were cancelled, and these monitors."""
    for resource in root.iter("lrm_resource"):
        ended = {each.get("interval") for each in resource.iterfind("lrm_rsc_op[@operation='cancel']")}
        for each in resource.findall("lrm_rsc_op"):
            if each.get("operation") in ("cancel", "monitor") and each.get("interval") in ended:
                resource.remove(each)


def _failed_action(root: ET.Element, chance: Random, directory: Path) -> tuple[str, ...]:
    """Choose an action of the peer's plan; return the arguments by which it fails."""
    before, graph = directory / "before.xml", directory / "failing.xml"
    before.write_text(ET.tostring(root, encoding="unicode"))
    graph.unlink(missing_ok=True)
    run = _peer(directory, "-x", str(before), "-S", "-Q", "-G", str(graph), "-t", DATE)
    if run.returncode or not graph.exists():
        return ()
    actions = [each for each in ET.parse(graph).getroot().iter("rsc_op") if each.get("on_node")]
    if not actions:
        return ()
    chosen = chance.choice(actions)
    return ("-F", f"{chosen.get('operation_key')}@{chosen.get('on_node')}={chance.choice(('1', '1', '5', '7'))}")


def _carried_out(root: ET.Element, directory: Path, *arguments: str) -> ET.Element | None:
    """Let the peer carry out its plan."""
    before, after = directory / "before.xml", directory / "after.xml"
    before.write_text(ET.tostring(root, encoding="unicode"))
    after.unlink(missing_ok=True)
    run = _peer(directory, "-x", str(before), "-S", "-Q", "-O", str(after), "-t", DATE, *arguments)
    if run.returncode or not after.exists():
        return None
    carried_out = ET.parse(after).getroot()
    _forget_cancelled(carried_out)
    return carried_out


def _forget_cancelled(root: ET.Element) -> None:
    """Remove what was cancelled, with the records of cancelling: a cluster keeps neither, `crm_simulate` both."""
    for history in root.iter("lrm_resource"):
        for cancel in history.findall("lrm_rsc_op[@operation='cancel']"):
            history.remove(cancel)
            for record in history.findall(f"lrm_rsc_op[@operation='monitor'][@interval='{cancel.get('interval')}']"):
                if int(record.get("call-id", "0")) < int(cancel.get("call-id", "0")):
                    history.remove(record)


def compared(root: ET.Element, directory: Path) -> tuple[tuple[str, ...], tuple[str, ...], str] | None:
    """Return which levels differ, how, and what went wrong; None when the peer refuses the CIB."""
    wanted = peers_plan(root, directory)
    if wanted is None:
        return None
    made = our_plan(root)
    if isinstance(made, str):
        return ("refused",), (made,), made
    view, differences = harness().View, harness().differences
    unique = set(wanted["unique"])
    theirs, ours = view(wanted, unique).sets, view(made, unique).sets
    levels, details = [], []
    for level in LEVELS:
        missing, extra = differences(theirs[level], ours[level])
        if missing or extra:
            levels.append(level)
            details += [f"{level} - {item}" for item in missing] + [f"{level} + {item}" for item in extra]
    return tuple(levels), tuple(details), ""


def shrink(root: ET.Element, directory: Path, levels: Sequence[str], details: Sequence[str] = ()) -> ET.Element:
    """Take away whatever the difference does not need; it must go on beginning at the same level, with the same entry.

    A refusal has its words as its entry, and these name the element; there the level suffices.
    """
    first = frozenset(details[:1]) if levels[0] in LEVELS else frozenset()
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for number in range(len(list(_removable(root))) - 1, -1, -1):
            smaller = copy.deepcopy(root)
            chosen = list(_removable(smaller))
            if number >= len(chosen):
                continue
            parent, child = chosen[number]
            parent.remove(child)
            try:
                found = compared(smaller, directory)
            except PeerDoesNotEndError:
                continue
            if found is not None and found[0] and found[0][0] == levels[0] and first <= set(found[1]):
                root, is_smaller = smaller, True
    return root


def _removable(root: ET.Element) -> Iterator[tuple[ET.Element, ET.Element]]:
    for parent in root.iter():
        for child in parent:
            if child.tag in REMOVABLE:
                yield parent, child


def examine(seed: int, theme: str = COMMON, *, is_shrunk: bool = True) -> Difference | None | str:
    """Compare the plans for one seed; where there is nothing to compare, why: SKIPPED, UNENDED."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        directory = Path(name)
        try:
            root = evolved(seed, directory, theme)
            found = compared(root, directory) if root is not None else None
        except PeerDoesNotEndError:
            return UNENDED
        if root is None or found is None:
            return SKIPPED
        if not found[0]:
            return None
        if is_shrunk:
            root = shrink(root, directory, found[0], found[1])
            found = compared(root, directory) or found
        ET.indent(root)
        return Difference(seed, theme, found[0], found[1], ET.tostring(root, encoding="unicode"), found[2])


def _outcome(future: "Future[Difference | None | str]") -> Difference | None | str:
    """Wait for one comparison; return what it found, or what broke it in its process and where."""
    error = future.exception()
    if error is None:
        return future.result()
    [place] = [line for line in str(error.__cause__).splitlines() if line.lstrip().startswith("File ")][-1:] or [""]
    return f"{type(error).__name__}: {error} ({place.strip()})"


@dataclass(slots=True)
class Tally:
    """What became of the seeds."""

    compared: int = 0
    skipped: int = 0
    differences: int = 0
    known: int = 0
    unended: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    by_theme: dict[str, list[int]] = field(default_factory=dict)
    """How many CIBs of each theme were compared, and how many of them differ unexplained."""

    def add(self, seed: int, found: Difference | None | str, theme: str = COMMON) -> str:
        """Count one; return what is to be said of it."""
        if found == SKIPPED:
            self.skipped += 1
            return ""
        if found == UNENDED:
            self.unended.append(seed)
            return f"seed {seed}: {PEER} does not end within {PEER_LIMIT_S} s of processor time"
        if isinstance(found, str):
            self.failed.append(seed)
            return f"seed {seed}: the comparison failed: {found}"
        self.compared += 1
        counts = self.by_theme.setdefault(theme, [0, 0])
        counts[0] += 1
        if found is None:
            return ""
        cause = cause_of(found.xml, found.details)
        counts[1] += not cause
        self.differences += 1
        self.known += bool(cause)
        return f"seed {seed} {theme}: {','.join(found.levels)} {f'known: {cause}' if cause else found.signature}"

    @property
    def unexplained(self) -> int:
        return self.differences - self.known

    def lines(self, seconds: float) -> Iterator[str]:
        """Write the counts, the last line for machines."""
        yield f"{self.compared} CIBs compared, {self.skipped} skipped, {seconds:.0f} s"
        if self.unended:
            yield f"{PEER} does not end on {' '.join(map(str, self.unended))}"
        if self.failed:
            yield f"the comparison failed on {' '.join(map(str, self.failed))}"
        if set(self.by_theme) - {COMMON}:
            yield from (
                f"  {theme}: {made} compared, {left} unexplained" for theme, (made, left) in self.by_theme.items()
            )
        share = 100 * self.unexplained / max(1, self.compared)
        yield (
            f"RESULT cases={self.compared} differences={self.differences} known={self.known}"
            f" unexplained={self.unexplained} unended={len(self.unended)} failed={len(self.failed)} percent={share:.2f}"
        )


def main() -> int:
    """Compare many seeds; exit 1 when a difference is not known, or a comparison failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--out", type=Path, help="write the smallest CIBs here")
    parser.add_argument("--keep", action="store_true", help="do not shrink")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--themes", default=COMMON, help="what is drawn, comma-separated; see themes.py")
    arguments = parser.parse_args()
    themes = named(arguments.themes.split(","))
    if absence():
        print(f"nothing is compared: {absence()}")
        return 0
    seeds = [arguments.only] if arguments.only is not None else range(arguments.seed, arguments.seed + arguments.cases)
    began = time.monotonic()
    tally = Tally()
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        drawn = {seed: themes[seed % len(themes)] for seed in seeds}
        futures = {seed: pool.submit(examine, seed, drawn[seed], is_shrunk=not arguments.keep) for seed in seeds}
        for seed, future in futures.items():
            found = _outcome(future)
            summary = tally.add(seed, found, drawn[seed])
            if summary:
                print(summary, flush=True)
            if isinstance(found, Difference):
                _show(found, arguments.out, is_whole=arguments.only is not None)
    print("\n".join(tally.lines(time.monotonic() - began)))
    return 1 if tally.unexplained or tally.failed else 0


def _show(found: Difference, out: Path | None, *, is_whole: bool) -> None:
    lines = found.details if is_whole else found.details[:6]
    for line in lines:
        print(f"    {line}", flush=True)
    if is_whole:
        print(found.xml)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{found.seed}.xml").write_text(found.xml)
        (out / f"{found.seed}.txt").write_text("\n".join(found.details) + "\n")


if __name__ == "__main__":
    sys.exit(main())
