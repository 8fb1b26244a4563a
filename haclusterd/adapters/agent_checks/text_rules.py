"""The defects of an agent's program that can be found in its text.

They are found by patterns, not by a parser: what is built at run time is not seen. Comments, meta-data and other
here-documents are not taken for code. Each finding names the line.
"""

import ast
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from haclusterd.adapters.agent_checks.finding import Finding, error, note, warning
from haclusterd.adapters.agents.tools import TOOLS

SHELLS = frozenset({"sh", "dash", "bash", "ksh", "ash"})
EXIT_CODES = frozenset(range(10)) | {190, 191}
SYNTAX_TIMEOUT_S = 10

BASHISMS = (
    (re.compile(r"(?<![\w$])\[\["), "[[ ... ]]: write [ ... ]"),
    (re.compile(r"(?<![\[\w$])\[\s[^\]\n]*?[^=!<>]==[^=]"), "== in [ ... ]: write ="),
    (re.compile(r"^\s*function\s+\w+"), "function NAME: write NAME()"),
    (re.compile(r"(?<![<\w])<<<"), "<<<: write a here-document, or printf and a pipe"),
    (re.compile(r"(?<=\s)[<>]\("), "<( ... ): write a temporary file or a pipe"),
    (re.compile(r"(?<![\w&])&>(?!>?\s*&)"), "&>: write >FILE 2>&1"),
    (re.compile(r"\|&"), "|&: write 2>&1 |"),
    (re.compile(r"^\s*source\s"), "source: write ."),
    (re.compile(r"\$\{\w+(//?)[^}]*\}"), "${NAME/...}: use sed"),
    (re.compile(r"\$\{\w+:\s*\d+"), "${NAME:OFFSET}: use cut"),
    (re.compile(r"\$\{!\w"), "${!NAME}: use eval"),
    (re.compile(r"\$\{\w+[\^,]"), "${NAME^} and ${NAME,}: use tr"),
    (re.compile(r"(?<![\w$(])\(\((?!\()"), "(( ... )): write [ $(( ... )) -ne 0 ]"),
    (re.compile(r"^\s*(?:local\s+|declare\s+|typeset\s+)?\w+\+?=\((?!\()"), "an array"),
    (re.compile(r"\$\{\w+\[[^\]]*\]"), "an array"),
    (re.compile(r"^\s*(?:declare|typeset)\s"), "declare: leave it out"),
    (re.compile(r"^\s*let\s"), "let: write $(( ... ))"),
    (re.compile(r"\$RANDOM\b"), "$RANDOM"),
    (re.compile(r"\$''"), "$'...': use printf"),
    (re.compile(r"\bread\s+(?:-r\s+)?-[adnNstu]"), "read with options but -r"),
    (re.compile(r"\becho\s+-e\b"), "echo -e: use printf"),
)
"""Constructs that dash, which is /bin/sh on Debian and Ubuntu, does not support."""
BY_COMMAND_LINE = re.compile(r"\b(?:pgrep|pkill)\s+(?:-\w+\s+)*-\w*f|\bkillall\b|\bps\b[^|\n]*\|\s*(?:e|f)?grep")
HARD_CODED = re.compile(rf"(?<![\w.$}}])(?:/usr)?/s?bin/({'|'.join(sorted(map(re.escape, TOOLS)))})\b")
ENDS_WITH = re.compile(r"(?<![\w$-])(?:exit|return)\s+(-?\d+)\b")
NOT_CONFIGURED = re.compile(r"\b(?:exit|return)\s+(?:6\b|\"?\$\{?OCF_ERR_CONFIGURED)|ha_fail\s+config\b")
ASKS_THIS_MACHINE = re.compile(
    r"(?<![\w$])(?:\[|test)\s+!?\s*-[defrsxSLbw]\s|\bcheck_binary\b|\bhave_binary\b|\bwhich\s"
)
NEEDS = re.compile(r"\b(?:check_binary|have_binary|ha_need)\s+[\"']?([\w./+-]+)|self\.program\(\s*[\"']([\w./+-]+)")
PARAMETER = re.compile(r"OCF_RESKEY_(\w+)")
ASKED_BY_LIBRARY = re.compile(r"self\.(?:text|integer|seconds|boolean)\(\s*[\"'](\w+)[\"']")
DECLARED_BY_LIBRARY = re.compile(r"^\s*ha_param\s+([\w-]+)", re.MULTILINE)
IN_TEMPORARY = re.compile(r"(?:>|>>|=|touch|mkdir)\s*[\"']?/tmp/\w")
CASE = r"(?:^|[\s|(;])[\"']?{}[\"']?\s*(?:\|[^)\n]*)?\)"
HERE_DOCUMENT = re.compile(r"<<-?\s*[\"'\\]?(\w+)")


def language_of(text: str) -> str:
    """Return the interpreter that the first line names: `sh`, `bash`, `python`, ...; empty when there is none."""
    first = text.split("\n", 1)[0]
    if not first.startswith("#!"):
        return ""
    words = [os.path.basename(word) for word in first[2:].split()]
    words = [word for word in words if word != "env" and not word.startswith("-")]
    return re.sub(r"[\d.]+\Z", "", words[0]) if words else ""


def needed_programs(text: str) -> list[str]:
    """Return the programs that an agent declares, in calls of a function that checks for them."""
    found = {one or other for one, other in NEEDS.findall(_code("\n".join(text.splitlines()), is_shell=True))}
    return sorted(found)


def text_findings(path: Path, text: str, declared: Sequence[str], actions: Sequence[str]) -> Iterator[Finding]:
    """Yield the defects; `declared` and `actions` are the names in its meta-data, as far as it can be read."""
    language = language_of(text)
    if not language:
        yield error("no-interpreter", "its first line names no interpreter (#!/bin/sh)", 1)
    if "\r\n" in text:
        yield error("line-ends", "its lines end as on Windows: the kernel finds no interpreter of that name", 1)
    is_shell = language in SHELLS
    code = _code(text, is_shell=is_shell)
    yield from _syntax(path, text, language)
    if is_shell:
        lines = code.split("\n")
        if language in ("sh", "dash", "ash"):
            yield from _bashisms(lines)
        yield from _exits(lines)
        yield from _handled(code, actions)
    yield from _lines(code.split("\n"))
    yield from _parameters(code, language, declared)


def _code(text: str, *, is_shell: bool) -> str:
    """Return the text with comments and here-documents emptied, line by line."""
    lines, end = [], ""
    for line in text.split("\n"):
        if end:
            if line.strip() == end:
                end = ""
            # Expansions in a here-document are code: they use parameters.
            lines.append(" ".join(f"${{{each}}}" for each in re.findall(r"\$\{?(\w+)", line)))
            continue
        bare = re.sub(r"(?:^|(?<=\s))#.*$", "", line)
        document = HERE_DOCUMENT.search(bare) if is_shell else None
        if document and "<<<" not in bare:
            end = document[1]
        lines.append(bare)
    return "\n".join(lines)


def _syntax(path: Path, text: str, language: str) -> Iterator[Finding]:
    if language == "python":
        try:
            ast.parse(text)
        except SyntaxError as problem:
            yield error("syntax", f"{problem.msg}", problem.lineno or 0)
        return
    if language not in SHELLS:
        return
    try:
        done = subprocess.run(
            [language, "-n", str(path)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
            timeout=SYNTAX_TIMEOUT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        yield warning("no-interpreter", f"{language} is not on this machine, so its syntax is not judged")
        return
    if done.returncode:
        what = (done.stderr.strip().splitlines() or ["refused"])[0].replace(str(path), "").strip(": ")
        line = re.match(r"(?:line )?(\d+)", what)
        yield error("syntax", what, int(line[1]) if line else 0)


def _bashisms(lines: Sequence[str]) -> Iterator[Finding]:
    for number, line in enumerate(lines, 1):
        bare = re.sub(r"'[^']*'", "''", line)
        for pattern, instead in BASHISMS:
            if pattern.search(bare):
                yield warning("bashism", f"/bin/sh need not know {instead}", number)


def _exits(lines: Sequence[str]) -> Iterator[Finding]:
    for number, line in enumerate(lines, 1):
        for found in ENDS_WITH.finditer(line):
            if int(found[1]) not in EXIT_CODES:
                yield warning("exit-code", f"{found[0]}: no code of OCF, which counts as 1 (error)", number)
        if NOT_CONFIGURED.search(line) and any(ASKS_THIS_MACHINE.search(each) for each in lines[number - 4 : number]):
            what = "6 (not configured) bans the resource from every node; what this node lacks is 5 (not installed)"
            yield note("not-configured", what, number)


def _handled(code: str, actions: Sequence[str]) -> Iterator[Finding]:
    """Yield the actions of the meta-data that the program does not handle."""
    if DECLARED_BY_LIBRARY.search(code):
        return
    for action in sorted({*actions}):
        is_named = re.search(CASE.format(re.escape(action)), code, re.MULTILINE) or f'"{action}"' in code
        if not is_named and not re.search(rf"\|\s*{re.escape(action)}\s*[|)]", code):
            yield warning("not-handled", f"action {action} of its meta-data is nowhere in the program")


def _lines(lines: Sequence[str]) -> Iterator[Finding]:
    for number, line in enumerate(lines, 1):
        if BY_COMMAND_LINE.search(line):
            yield warning("by-name", "a process is looked for by its name: another one may bear it", number)
        tool = HARD_CODED.search(line)
        if tool:
            yield warning("tool-path", f"{tool[0]}: name {tool[1]} alone; clusters have it in different places", number)
        if IN_TEMPORARY.search(line):
            yield warning("temporary", "/tmp may be written by everybody: use $HA_RSCTMP", number)


def _parameters(code: str, language: str, declared: Sequence[str]) -> Iterator[Finding]:
    if not declared:
        return
    used: dict[str, int] = {}
    for number, line in enumerate(code.split("\n"), 1):
        for pattern in (PARAMETER, ASKED_BY_LIBRARY):
            for found in pattern.finditer(line):
                used.setdefault(found[1].removesuffix("_default"), number)
    known = {each.replace("-", "_") for each in declared} | {*declared}
    for name, number in used.items():
        is_internal = name.startswith(("CRM_meta", "crm_feature_set", "trace_", "OCF_")) or name.endswith("_")
        if name not in known and not is_internal:
            yield warning("undeclared", f"parameter {name} is used and is not in its meta-data", number)
    is_by_library = language == "python" or DECLARED_BY_LIBRARY.search(code)
    for name in sorted({*declared}):
        if not is_by_library and name.replace("-", "_") not in used and name not in used and name not in code:
            yield warning("unused", f"parameter {name} of its meta-data is nowhere in the program")
