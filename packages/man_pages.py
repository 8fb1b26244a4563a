"""Manual pages, made from what the programs and agents say of themselves, so that the two cannot differ.

`crm` has a page for itself and one for each of its levels, made of the table of commands; the daemons' pages are made
of their `--help`, those of agents of their metadata. `make reference` writes them into docs/reference/man.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from haclusterd.adapters.agents.metadata import read_description
from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.grammar import Command, Level
from haclusterd.cli.help import EXIT_CODES
from haclusterd.cli.options import HELP
from haclusterd.cli.parsing import usage
from haclusterd.cli.render.agents import render_info
from haclusterd.cli.render.terminal import Screen
from haclusterd.model.records import replace
from haclusterd.verbs.words import Takes

PROGRAMS = {
    "crm": "administer a high-availability cluster",
    "haclusterd": "the peer daemon of one cluster node",
    "haclusterd-pacer": "heartbeats and lease of one cluster node",
    "haclusterd-api": "the REST interface of one cluster node",
}
SECTION = "8"
AGENTS_SECTION = "7"
CHECKOUT = Path(__file__).parents[1]
AGENTS = CHECKOUT / "resource_agents"
ALERT_AGENTS = CHECKOUT / "alert_agents"
ALERTS = {"mail": "send alerts by e-mail", "webhook": "post alerts as JSON"}
ENVIRONMENT = (
    ("HACLUSTERD_SOCKET", "the daemon's socket; else /run/haclusterd/control.sock"),
    ("CIB_file", "work on this state file; no daemon is asked"),
    ("CIB_shadow", "work on this copy of the state; see crm-cib(8)"),
    ("CRM_COMPAT", "crmsh: move, ban and delete do as crmsh does"),
    ("NO_COLOR", "no colours, whatever the value"),
    ("VISUAL, EDITOR", "the program that edits texts"),
)
_WIDE = "1000"
"""Columns for --help: each option on a line of its own."""
_TITLES = {"OPTIONS": "OPTIONS", "EXIT CODES": "EXIT STATUS"}


def pages() -> Mapping[str, Callable[[], str]]:
    """Return file name and maker of each page."""
    found: dict[str, Callable[[], str]] = {f"crm.{SECTION}": _of_crm}
    found |= {f"crm-{level.name}.{SECTION}": partial(_of_level, level) for level in LEVELS}
    found |= {f"{name}.{SECTION}": partial(_of_daemon, name) for name in PROGRAMS if name != "crm"}
    found |= {f"{_alert_name(agent)}.{AGENTS_SECTION}": partial(_of_alert_agent, agent) for agent in alert_agents()}
    return found | {f"{_agent_name(agent)}.{AGENTS_SECTION}": partial(_of_agent, agent) for agent in agents()}


def alert_agents() -> list[Path]:
    """Return the alert agents that come with the program."""
    return sorted(each for each in ALERT_AGENTS.iterdir() if not each.suffix)


def agents() -> list[Path]:
    """Return the resource agents that come with the program; its fence agents are for demonstrations only."""
    return sorted(each for each in AGENTS.iterdir() if not each.suffix and not each.name.startswith("fence_"))


# crm


def _of_crm() -> str:
    levels = [line for level in LEVELS for line in (".TP", f".BR crm\\-{_safe(level.name)} (8)", _safe(level.help))]
    sections: list[tuple[str, Iterable[str]]] = [
        ("SYNOPSIS", (".B crm", "[OPTIONS] [LEVEL] COMMAND [ARGUMENTS]", ".br", ".B crm", "[OPTIONS] [LEVEL]")),
        ("DESCRIPTION", (
            "Shows and changes a cluster, through the daemon of the node on which it is typed. Without a command, "
            "commands are read: from a person at a prompt, or from the standard input.", ".PP",
            "Names of levels and commands may be shortened as long as they are clear. After every command "
            "\\-\\-help shows what it takes, with examples.",
        )),
        ("COMMANDS", [line for command in ROOT.commands for line in _command(ROOT, command)]),
        ("LEVELS", levels),
        ("OPTIONS", _listed(HELP)),
        ("EXIT STATUS", _listed(EXIT_CODES)),
        ("ENVIRONMENT", _listed(ENVIRONMENT)),
        ("EXAMPLES", _typed(("crm status", "crm why web", "crm configure load update web.yaml --dry-run",
                             "crm resource move web n2 --wait"))),
    ]  # fmt: skip
    return _page("crm", SECTION, PROGRAMS["crm"], sections, [*(f"crm-{level.name}" for level in LEVELS), "haclusterd"])


def _of_level(level: Level) -> str:
    sections: list[tuple[str, Iterable[str]]] = [
        ("SYNOPSIS", (f".B crm {_safe(level.name)}", "COMMAND [ARGUMENTS]")),
        ("DESCRIPTION", (f"{_safe(level.help)}.", "Options, exit status and environment: see", ".BR crm (8).")),
        ("COMMANDS", [line for command in level.commands for line in _command(level, command)]),
    ]
    return _page(f"crm-{level.name}", SECTION, _begun_small(level.help), sections, ["crm"])


def _command(level: Level, command: Command) -> Iterator[str]:
    """Yield a command: how it is typed, what it does, its words, examples."""
    yield f".SS {_safe(command.name)}"
    yield f".B {_safe(usage(level, command))}"
    yield ".PP"
    also = f" Also: {', '.join(command.aliases)}." if command.aliases else ""
    yield _safe(f"{command.help}.{also}")
    if any(each.takes is Takes.REST for each in command.parameters):
        yield "A statement of the configuration language; options of crm stand before it."
    words = [(each.label, each.help) for each in command.parameters if each.help and not each.grammar]
    yield from _listed([*words, *((each.usage, each.help) for each in command.options)])
    if command.examples:
        yield ".PP"
        yield from _typed(command.examples)


# Daemons


def _of_daemon(name: str) -> str:
    printed = subprocess.run(
        [Path(sys.executable).parent / name, "--help"], check=True, capture_output=True, text=True,
        env={"COLUMNS": _WIDE, "PYTHONPATH": str(CHECKOUT)},
    ).stdout  # fmt: skip
    sections = [(title, _body(title, lines)) for title, lines in _sections(printed.splitlines())]
    return _page(name, SECTION, PROGRAMS[name], sections, [each for each in PROGRAMS if each != name])


def _alert_name(agent: Path) -> str:
    return f"haclusterd-alert-{agent.name}"


def _of_alert_agent(agent: Path) -> str:
    printed = subprocess.run([agent, "--help"], check=True, capture_output=True, text=True).stdout
    sections = [(title, _body(title, lines)) for title, lines in _sections(printed.splitlines())]
    return _page(_alert_name(agent), AGENTS_SECTION, ALERTS[agent.name], sections, ["crm-alert"])


def _sections(lines: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Cut what a program says into sections: usage, description, and those that it names itself."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        title = re.match(r"([a-z][a-z ]*):(?:\s+(.*))?$", line)
        if title is not None:
            name = title[1].upper()
            found.append(("SYNOPSIS" if name == "USAGE" else _TITLES.get(name, name), [title[2]] if title[2] else []))
        elif found[-1][0] == "SYNOPSIS" and line:
            found.append(("DESCRIPTION", [line]))
        else:
            found[-1][1].append(line)
    return found


def _body(title: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a section: words with their meanings, examples as they are typed, or paragraphs."""
    if title == "SYNOPSIS":
        name, _, rest = lines[0].partition(" ")
        yield from (f".B {_safe(name)}", _safe(rest))
        return
    if title == "EXAMPLES":
        yield from _typed([line.strip() for line in lines if line])
        return
    is_paragraph = False
    for line in lines:
        label, gap, meaning = line.strip().partition("  ")
        if gap:
            yield from _listed([(label, meaning.strip())])
        elif line:
            if not is_paragraph and title != "DESCRIPTION" and line != lines[0]:
                yield ".PP"
            yield _safe(line.strip())
        is_paragraph = bool(line) and not gap


# Agents


def _agent_name(agent: Path) -> str:
    return f"ocf_haclusterd_{agent.name}"


def _of_agent(agent: Path) -> str:
    printed = subprocess.run([agent, "meta-data"], check=True, capture_output=True, text=True).stdout
    described = read_description(printed, f"ocf:haclusterd:{agent.name}", str(agent))
    body = render_info(Screen(), replace(described, shortdesc=""))[2:]
    shown = [".nf", *map(_safe, "\n".join(body).strip("\n").splitlines()), ".fi"]
    summary = _begun_small(described.shortdesc)
    return _page(_agent_name(agent), AGENTS_SECTION, summary, [("DESCRIPTION", shown)], ["crm-ra"])


# Pages


def _page(
    name: str, section: str, summary: str, sections: Iterable[tuple[str, Iterable[str]]], related: Sequence[str]
) -> str:
    lines = [f'.TH {_safe(name.upper())} {section} "" haclusterd', ".SH NAME", f"{_safe(name)} \\- {_safe(summary)}"]
    for title, body in sections:
        lines += [f".SH {title}", *body]
    ends = [","] * (len(related) - 1) + ["."]
    lines += [".SH SEE ALSO", *(f".BR {_safe(each)} (8){end}" for each, end in zip(related, ends, strict=True))]
    return "\n".join(_without_empty([*lines, ".PP", "Documents: /usr/share/doc/haclusterd"])) + "\n"


def _without_empty(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines; an empty one between text is a paragraph's end, as the formatter wants it."""
    is_filled = True
    for line in lines:
        if line in (".nf", ".fi"):
            is_filled = line == ".fi"
        yield line if line or not is_filled else ".PP"


def _begun_small(text: str) -> str:
    """Return a text as a manual page's summary begins, but for names in capitals."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _listed(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return words with what they mean."""
    return [line for label, meaning in rows for line in (".TP", f".B {_safe(label)}", _safe(meaning))]


def _typed(lines: Iterable[str]) -> list[str]:
    """Return what is typed, as it is typed."""
    return [".RS", ".nf", *map(_safe, lines), ".fi", ".RE"]


_SPELLED = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def _safe(text: str) -> str:
    """Return a text in which nothing means anything to the formatter."""
    spelled = "".join(_SPELLED.get(char, char) for char in text)
    return f"\\&{spelled}" if spelled.startswith(".") else spelled
