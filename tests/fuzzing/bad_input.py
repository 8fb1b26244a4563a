"""What a person may give `crm` by mistake: damaged CIBs, crm texts and policies, by seed.

Each case is a file. `crm configure verify` reads it, and `crm simulate --cib` (a CIB) or `crm configure load` (a text).
Demanded of every answer: an error has a place and says what to do about it, no message is Python's, and it takes no
longer than LONGEST_S of CPU and no more than GROWTH_BYTES of memory.

`make fuzz-input CASES=5000 SEED=1` runs more of them; the last line is `RESULT key=value ...`, and a violation names
its seed.
"""

import argparse
import io
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from haclusterd.cli.main import World, run
from haclusterd.cli.session import Streams
from haclusterd.formats.crm.syntax import show
from haclusterd.formats.policy.yaml import dump_policy
from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Response
from tests.administered_clusters import CLONES, CONFIGURATION, ClusterClient, configured, running
from tests.written_cibs import EVERYTHING

LONGEST_S = 5.0
GROWTH_BYTES = 300 * 1024 * 1024
LONGEST_LINE = 5000
DECLARED = '<!DOCTYPE cib [<!ENTITY a "&b;&b;"><!ENTITY b "&c;&c;"><!ENTITY c "x">]>'
WORDS = [
    "", " ", "-1", "0", "00", "1000000", "9" * 30, "9" * 400, "1e400", "INFINITY", "-INFINITY", "x y", "true", "nope",
    "é", "a" * 70_000, "1.5", "%1", "P1D", "P99999999999Y", "99999999999d", "[", "(*", "#uname", "&a;", "${NO}", "n1",
    "9" * 5000, "٣", "\x07", "\ud7ff", "=", ":", "$id=web", "@web", "role=Promoted", "inf:", "::", "'", '"', "\\", "{",
    "web", "%s{0}",
]  # fmt: skip
PYTHON = re.compile(
    r"Traceback|object at 0x|Error\(|NoneType|codec can't|invalid literal|not enough values|list index|unhashable|"
    r"<class |has no attribute|positional argument|recursion|KeyError|expected string|Exceeds the limit"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One file and how it is asked about."""

    name: str
    data: bytes
    commands: tuple[str, ...]


def case(seed: int) -> Case:
    """Make the case of a seed."""
    chance = random.Random(seed)
    kind = chance.choice(("xml", "xml", "crm", "crm", "yaml"))
    samples = {
        "xml": (EVERYTHING,),
        "crm": (CONFIGURATION, CLONES, show(configured(CLONES))),
        "yaml": (dump_policy(configured(CONFIGURATION)), dump_policy(configured(CLONES))),
    }[kind]
    text = chance.choice(samples)
    damage = chance.choice((_words, _words, _words, _cut, _doubled, _nested, _bytes, _declared, _pieces))
    data = damage(text, kind, chance)
    name = f"case.{kind}"
    if kind == "xml":
        commands = (f"crm configure verify xml {name}", f"crm simulate --cib {name}")
    else:
        commands = (f"crm configure verify {name}", f"crm configure load update {name} --dry-run --force")
    return Case(name, data, commands)


def _words(text: str, kind: str, chance: random.Random) -> bytes:
    """Put other words in the place of some."""
    pattern = {"xml": r'"[^"]*"', "crm": r"[^\s=]+", "yaml": r"[^\s:]+"}[kind]
    for _ in range(chance.randint(1, 4)):
        found = chance.choice(list(re.finditer(pattern, text)))
        word = chance.choice(WORDS)
        word = f'"{word}"' if kind == "xml" else word
        text = text[: found.start()] + word + text[found.end() :]
    return text.encode(errors="surrogatepass")


def _cut(text: str, _kind: str, chance: random.Random) -> bytes:
    return text[: chance.randrange(len(text))].encode()


def _doubled(text: str, _kind: str, chance: random.Random) -> bytes:
    """Say some lines twice, and leave some out."""
    lines = text.splitlines()
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(lines))
        if chance.random() < 0.5 and len(lines) > 1:
            del lines[at]
        else:
            lines.insert(chance.randrange(len(lines)), lines[at])
    return "\n".join(lines).encode()


def _nested(text: str, kind: str, chance: random.Random) -> bytes:
    """Nest what can be nested, deeper than anybody would."""
    depth = chance.choice((10, 70, 5000))
    if kind == "xml":
        inside = '<group id="deep">' * depth + "</group>" * depth
        return text.replace("<resources>", f"<resources>{inside}").encode()
    if kind == "yaml":
        return (text + "\nx: " + "[" * depth + "]" * depth).encode()
    return (text + "\norder deep " + "( " * depth + "web " + ") " * depth).encode()


def _bytes(text: str, _kind: str, chance: random.Random) -> bytes:
    """Put bytes between that are no UTF-8, or no text."""
    data = bytearray(text.encode())
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        data[at : at + 1] = chance.choice((b"\xff", b"\x00", b"\xc3", b"\xed\xa0\x80", b"\xff\xfe", b"\x1b[2J"))
    return bytes(data)


def _declared(text: str, kind: str, chance: random.Random) -> bytes:
    if kind != "xml":
        return _words(text, kind, chance)
    return (DECLARED + text.replace('value="', 'value="&a;', 1)).encode()


def _pieces(text: str, _kind: str, chance: random.Random) -> bytes:
    """Change characters anywhere."""
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text))
        piece = chance.choice((*"<>'&{}:-$=\"\\\n\t\u2028\x85", ""))
        text = text[:at] + piece + text[at + chance.choice((0, 0, 1, 3, 40)) :]
    return text.encode()


@dataclass(slots=True)
class Findings:
    """What was demanded and is not so, and how the cases ended."""

    violations: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    longest_s: float = 0.0
    output: str = ""
    """Of the newest case."""


def ask(made: Case, directory: Path, findings: Findings, label: str) -> None:
    """Ask about a case and note what is wrong with the answers."""
    (directory / made.name).write_bytes(made.data)
    for command in made.commands:
        out, err = io.StringIO(), io.StringIO()
        client = ClusterClient(running())
        world = World(
            streams=Streams(io.StringIO(), out, err), environment={}, connect=lambda _: client,  # noqa: B023 (called at once)
            open_file=lambda _: client, setup=lambda _: Response("", 0), version=lambda: "0",  # noqa: B023 (called at once)
        )  # fmt: skip
        words = [word if word != made.name else str(directory / made.name) for word in command.split()[1:]]
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        try:
            status = run(words, world)
        except Exception:  # noqa: BLE001 (this is what is looked for)
            findings.violations.append(f"{label}: {command}: {traceback.format_exc(limit=-3)}")
            continue
        took_s = time.process_time() - began
        growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        findings.statuses[status] += 1
        findings.longest_s = max(findings.longest_s, took_s)
        findings.output = output = err.getvalue()
        wrong = [*_faults(output, status, str(directory / made.name), is_plan=" simulate " in command)]
        if took_s > LONGEST_S:
            wrong.append(f"it took {took_s:.1f} s of CPU")
        if growth > GROWTH_BYTES:
            wrong.append(f"it took {growth >> 20} MiB")
        findings.violations += [f"{label}: {command}: {each}" for each in wrong]


def _faults(output: str, status: int, source: str, *, is_plan: bool) -> list[str]:
    found = []
    if PYTHON.search(output):
        found.append(f"Python's words: {output[:300]}")
    errors = [line for line in output.splitlines() if line.startswith("ERROR")]
    if status and not errors and not is_plan:
        found.append(f"exit status {status} without a word: {output[:200]}")
    found += [f"a line of {len(line)} characters" for line in output.splitlines() if len(line) > LONGEST_LINE]
    for line in errors:
        if not re.search(rf"(?:{re.escape(source)}|uncommitted changes):\d+", line) and "larger than" not in line:
            found.append(f"no place: {line[:200]}")
        if not re.search(r"\(.+\)$", line):
            found.append(f"no remedy: {line[:200]}")
    return found


def main() -> int:
    """Run cases and say what became of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    findings = Findings()
    with tempfile.TemporaryDirectory() as name:
        for seed in range(chosen.seed, chosen.seed + chosen.cases):
            ask(case(seed), Path(name), findings, f"seed {seed}")
    for each in findings.violations[:50]:
        sys.stdout.write(f"{each}\n")
    statuses = ",".join(f"{status}x{count}" for status, count in sorted(findings.statuses.items()))
    sys.stdout.write(
        f"RESULT cases={chosen.cases} violations={len(findings.violations)} longest_s={findings.longest_s:.2f}"
        f" statuses={statuses}\n"
    )
    return 1 if findings.violations else 0


if __name__ == "__main__":
    sys.exit(main())
