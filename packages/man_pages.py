"""Manual pages, made from what the programs and agents say of themselves, so that the two cannot differ."""

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from haclusterd.adapters.agents.metadata import read_description
from haclusterd.cli.command_table import LEVELS
from haclusterd.cli.help import help_for
from haclusterd.cli.render.agents import render_info
from haclusterd.cli.render.terminal import Screen

PROGRAMS = {
    "crm": "administer a high-availability cluster",
    "haclusterd": "the peer daemon of one cluster node",
    "haclusterd-pacer": "heartbeats and lease of one cluster node",
    "haclusterd-api": "the REST interface of one cluster node",
}
SECTION = "8"
AGENTS_SECTION = "7"


def of_programs(directory: Path) -> dict[str, str]:
    """Return file name and page of each program; `directory` is where the programs are."""
    pages = {f"crm.{SECTION}": _of_crm()}
    for name in PROGRAMS.keys() - {"crm"}:
        printed = subprocess.run(
            [directory / name, "--help"], check=True, capture_output=True, text=True, env={"COLUMNS": "80"}
        ).stdout
        pages[f"{name}.{SECTION}"] = _page(name, SECTION, PROGRAMS[name], _sections(printed.splitlines()))
    return pages


def of_agent(agent: Path) -> tuple[str, str]:
    """Return file name and page of an agent of provider haclusterd."""
    printed = subprocess.run([agent, "meta-data"], check=True, capture_output=True, text=True).stdout
    described = read_description(printed, f"ocf:haclusterd:{agent.name}", str(agent))
    name = f"ocf_haclusterd_{agent.name}"
    body = [("DESCRIPTION", render_info(Screen(), replace(described, shortdesc=""))[2:])]
    return f"{name}.{AGENTS_SECTION}", _page(name, AGENTS_SECTION, described.shortdesc.lower(), body)


def _of_crm() -> str:
    sections = _sections(help_for(Screen(), []))
    for level in LEVELS:
        body = [f"{level.help}."]
        for command in level.commands:
            body += ["", *help_for(Screen(), [level.name, command.name])]
        sections.append((level.name.upper(), body))
    return _page("crm", SECTION, PROGRAMS["crm"], sections)


def _sections(lines: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Cut what a program says into sections: usage, description, and those that it names itself."""
    found: list[tuple[str, list[str]]] = [("SYNOPSIS", [])]
    for line in lines:
        label, _, rest = line.partition(":")
        if label.lower() == "usage":
            found[-1][1].append(rest.strip())
        elif found[-1][0] == "SYNOPSIS" and line and not line.startswith(" "):
            found.append((line.rstrip(":").upper(), []) if _is_title(line) else ("DESCRIPTION", [line]))
        elif _is_title(line):
            found.append((label.upper(), [rest.strip()] if rest else []))
        else:
            found[-1][1].append(line)
    return found


def _is_title(line: str) -> bool:
    label, colon, rest = line.partition(":")
    return bool(label) and label[0].isalpha() and len(label.split()) < 3 and (not rest if colon else line[0].isupper())


def _page(name: str, section: str, summary: str, sections: Sequence[tuple[str, Sequence[str]]]) -> str:
    lines = [f'.TH {name.upper()} {section} "" haclusterd', ".SH NAME", f"{_safe(name)} \\- {_safe(summary)}"]
    for title, body in sections:
        kept = "\n".join(body).strip("\n").splitlines()
        lines += [f".SH {title}", ".nf", *map(_safe, kept), ".fi"]
    lines += [".SH SEE ALSO", "/usr/share/doc/haclusterd"]
    return "\n".join(lines) + "\n"


def _safe(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
