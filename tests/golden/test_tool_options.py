"""Every option of Pacemaker's tools is carried out here, or refused by name with what to do instead; none is ignored.

`tools/options.txt` has what Pacemaker 2.1.5's tools say of themselves (`--help-all`); `RECORD=1` asks them again.
"""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest

from haclusterd.agents.explaining import error_codes
from haclusterd.commands.tools import tools
from haclusterd.commands.tools.call import ToolUsageError, read_options

FILE = Path(__file__).parent / "tools" / "options.txt"
MODULES = Path(tools.__file__).parent
_LINE = re.compile(r" {1,3}(?:-(\S), )?--([\w-]+)(\[?=\S+)?\s?(.*)")
HELP_SPELLINGS = ("-h", "--help", "-?", "--help-all")
NO_EFFECT = {
    "attrd_updater": {
        "block": "the attributes of a node are in one set", "lifetime": "Pacemaker's tool ignores it, too",
        "quiet": "it prints nothing else", "wait": "a write is applied on the node before it is answered",
    },
    "cibadmin": {
        "local": "the node that is asked answers from its own replica", "node": "every node has the same CIB",
        "sync": "a write is applied before it is answered", "timeout": "without quorum a write fails within 5 s",
    },
    "crm_diff": {"old": "the caller's program reads the file", "cib": "whole CIBs alone are compared"},
    "crm_mon": {
        "once": "it always prints once", "interval": "it is checked; it always prints once",
        "plain": "it draws no windows", "pid": "it is for -d, which is refused",
        "external_recipient": "it is for -E, which is refused", "watch_fencing": "it is for -E, which is refused",
    },
    "crm_node": {"force": "it is for -R, which is refused", "quiet": "it prints nothing else"},
    "crm_shadow": dict.fromkeys(("force", "batch", "all", "schema"), "every call is refused"),
    "crm_ticket": {"value": "it is for -S, which is refused", "quiet": "it prints nothing else"},
    "crmadmin": {"timeout": "the daemon answers from memory", "ipc": "there is one daemon"},
    "pacemakerd": {"pid": "Pacemaker's tool ignores it, too", "foreground": "Pacemaker's tool ignores it, too"},
    "stonith_admin": {"tag": "it is for Pacemaker's log"},
}
"""Options that change nothing, with why that is right."""
EVERYWHERE = {"fancy", "verbose"}
"""What the text has by itself, and what only adds to a log."""


def recorded() -> dict[str, list[tuple[str, str, bool]]]:
    """Return the options by tool: the letter (empty: none), the word, and whether it takes a value."""
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for line in FILE.read_text().splitlines():
        tool, letter, word, takes = line.split()
        found.setdefault(tool, []).append((letter.strip("."), word, takes == "="))
    return found


def asked() -> str:
    """Ask Pacemaker's tools."""
    lines = []
    for tool in (*sorted(tools.TOOLS), "crm_error"):
        done = subprocess.run([tool, "--help-all"], capture_output=True, text=True, check=False)
        if "--version" not in done.stdout + done.stderr:
            done = subprocess.run([tool, "--help"], capture_output=True, text=True, check=False)
        for line in (done.stdout + done.stderr).splitlines():
            match = _LINE.match(line)
            if match is not None:
                takes = "=" if (match[3] or "").startswith("=") else "-"
                lines.append(f"{tool} {match[1] or '.'} {match[2]} {takes}\n")
    return "".join(lines)


@pytest.fixture(scope="module", autouse=True)
def _asked_again() -> None:
    if os.environ.get("RECORD"):
        FILE.write_text(asked())


OPTIONS = [(tool, *each) for tool, options in recorded().items() if tool != "crm_error" for each in options]


@pytest.mark.parametrize(("tool", "letter", "word", "takes"), OPTIONS)
def test_an_option_is_understood_or_refused_by_name(tool: str, letter: str, word: str, *, takes: bool) -> None:
    table = tools.TOOLS[tool]
    takes = takes or (tool == "crm_rule" and word in ("xml-text", "date", "rule"))  # Its help does not say so.
    spelled = [[f"--{word}=x"] if takes else [f"--{word}"]]
    spelled += [[f"-{letter}", *(["x"] if takes else [])]] if letter and f"-{letter}" not in HELP_SPELLINGS else []
    names = {read_options(words, table.every_option()).pairs[0][0] for words in spelled}
    assert len(names) == 1
    (name,) = names
    if name in table.refused:
        with pytest.raises(ToolUsageError, match=rf"^--{word}: not done here: .{{10,}}"):
            table.read(spelled[0])
    elif name not in ("help", "version", *EVERYWHERE, *NO_EFFECT.get(tool, ())):
        assert name in _read_names(tool), f"{tool} --{word} is ignored"


def _read_names(tool: str) -> set[str]:
    """Return the texts that the code of a tool mentions, outside the table of its options."""
    found: set[str] = set()
    used = {Path(str(tools.TOOLS[tool].function.__code__.co_filename)).name, "result.py", "tools.py", "call.py"}
    if tool == "crm_mon":
        used |= {each.name for each in MODULES.glob("monitor*.py")}
    if tool == "crm_resource":
        used.add("installed_agents.py")
    if tool == "crm_diff":
        used.add("../../agents/cluster_tool.py")
    for name in used:
        tree = ast.parse((MODULES / name).read_text())
        for statement in tree.body:
            is_table = isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) in ("TOOLS", "_SHARED")
            if not is_table:
                found |= {each.value for each in ast.walk(statement)
                          if isinstance(each, ast.Constant) and isinstance(each.value, str)}  # fmt: skip
    return found


def test_what_has_no_effect_is_an_option() -> None:
    for tool, options in NO_EFFECT.items():
        table = tools.TOOLS[tool]
        assert [name for name in options if name not in table.options or name in table.refused] == [], tool


def test_a_refusal_is_of_an_option_and_says_what_to_do() -> None:
    for tool, table in tools.TOOLS.items():
        bare = [name for name, remedy in table.refused.items() if name not in table.options or len(remedy) < 10]
        assert bare == [], tool


def test_what_crm_error_understands() -> None:
    source = Path(error_codes.__file__).read_text()
    words = [word for _, word, _ in recorded()["crm_error"] if not word.startswith("help-")]
    assert [word for word in words if f'"{word}"' not in source] == []


@pytest.mark.parametrize("tool", [*tools.TOOLS])
def test_every_help_shows_the_options(tool: str) -> None:
    for word in ("--help", "--help-all", "-?"):
        assert "help" in tools.TOOLS[tool].read([word])


@pytest.mark.parametrize("tool", [*tools.TOOLS])
def test_another_option_is_refused(tool: str) -> None:
    with pytest.raises(ToolUsageError, match="--frobnicate"):
        tools.TOOLS[tool].read(["--frobnicate"])
