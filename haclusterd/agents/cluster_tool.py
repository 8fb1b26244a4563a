"""Every tool of Pacemaker that is here (attrd_updater, crm_attribute, crm_mon, cibadmin ...), as a program.

Agents call them several times in each monitor, so a call must be short: this passes the words on to the daemon, which
answers what to print (commands/tools/tools.py), and imports next to nothing, not even os. The start of the interpreter
is nearly all that a call costs. Nothing is waited for without a deadline: without quorum a write is refused in seconds.
"""

import posix
from _json import encode_basestring_ascii as quoted
from _json import make_scanner as scanner
from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM, socket

TYPE_CHECKING = False  # As typing says it; importing that takes longer than all that is done here.
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

SOCKET_VARIABLE = "HACLUSTERD_SOCKET"
DEFAULT_SOCKET = "/run/haclusterd/control.sock"
TIMEOUT_S = 20.0
"""For how long a silent daemon is waited for. It answers within 5 s when there is no quorum."""
LONGEST_ANSWER = 8 * 1024 * 1024
LONGEST_TEXT = 4 * 1024 * 1024
USAGE, DISCONNECTED, TIMED_OUT, NO_INPUT, NOT_WRITTEN = 64, 102, 124, 66, 1
VERSION = "Pacemaker 2.1.5\nWritten for the tools of haclusterd\n"
READERS = {"cibadmin": "tUXxoAN", "crm_verify": "XxS", "crm_simulate": "udfiFtqwgrbeIOGDPNx", "crm_diff": "onp"}
"""Tools that take XML as a file (-x) or on standard input (-p), with their letters that take a value; crm_diff takes
two files."""
OF_FILES = frozenset({"cibadmin", "crm_attribute", "crm_diff", "crm_failcount", "crm_master", "crm_mon", "crm_resource",
                      "crm_rule", "crm_simulate", "crm_standby", "crm_ticket", "crm_verify"})  # fmt: skip
"""Tools that ask and change the file that CIB_file names."""
AS_TOOL = "--as-tool"
"""The first word of a call of `crm` that stands for a call of a tool on a file."""


class ToolError(Exception):
    """Why there is no answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Plain:
    """How JSON's values are read: as they are."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: "dict[str, str]" = {}  # noqa: RUF012 (the reader of the standard library wants it so)


def main(tool: str, words: "Sequence[str]") -> int:
    """Run one of the tools; return its exit status."""
    own = _variable("HACLUSTERD_NODE")
    acting_for = _variable("OCF_RESKEY_CRM_meta_on_node") or own
    try:
        if tool == "pacemakerd" and list(words) in (["-$"], ["--version"]):
            return _print(VERSION, "", 0)
        if _is_of_file(tool, words):
            return _by_crm(tool, words)
        if tool == "crm_node" and acting_for and list(words) in (["-n"], ["--name"]):
            return _print(f"{acting_for}\n", "", 0)
        return _answer(tool, words, acting_for)
    except ToolError as problem:
        if problem.status == DISCONNECTED and _needs_no_cluster(tool, words):
            return _by_crm(tool, words)
        return _print("", f"{tool}: {problem}\n", problem.status)


def _needs_no_cluster(tool: str, words: "Sequence[str]") -> bool:
    """Tell whether a call can be answered where no daemon runs: what it is about, it brings along in files."""
    if tool == "crm_verify":
        return not any(True for _ in _values(tool, words, "L", "--live-check")) and not _is_piped(tool, words)
    return tool in ("crm_diff", "iso8601")


def _is_of_file(tool: str, words: "Sequence[str]") -> bool:
    """Tell whether a call is about a file instead of the cluster.

    Agents' crm_mon with what another tool prints (`CIB_file=<(cibadmin -Q) crm_mon -1`) means the cluster.
    """
    if _variable("CIB_shadow"):
        raise ToolError("CIB_shadow is set, but copies are worked on here by: crm cib; unset it", USAGE)
    file = _variable("CIB_file")
    if file and tool != "iso8601" and not (tool == "crm_mon" and file.startswith("/dev/fd/")):
        if tool not in OF_FILES:
            raise ToolError("CIB_file is set, but this tool asks the cluster: unset it", USAGE)
        return True
    return tool == "crm_simulate" and (_is_piped(tool, words) or any(_values(tool, words, "x", "--xml-file")))


def _by_crm(tool: str, words: "Sequence[str]") -> int:
    """Have `crm` of the same installation answer: it reads files without a daemon."""
    above = __file__.rpartition("/haclusterd/agents/")[0]
    for program in (f"{above}/.venv/bin/crm", f"{above}/../../../bin/crm"):
        try:
            posix.execv(program, [program, AS_TOOL, tool, *words])  # It does not return.
        except OSError:
            continue
    raise ToolError("files are read by crm, and there is none beside this tool", NO_INPUT)


def _variable(name: str) -> str:
    return posix.environ.get(name.encode(), b"").decode("utf-8", "replace")


def _answer(tool: str, words: "Sequence[str]", acting_for: str) -> int:
    instance = _variable("OCF_RESOURCE_INSTANCE")
    pairs = [
        f'"tool":{quoted(tool)}', f'"words":[{",".join(map(quoted, words))}]',
        *([f'"instance":{quoted(instance)}'] if instance else []),
        *([f'"node":{quoted(acting_for)}'] if acting_for else []),
        *(f'"{name}":{quoted(text)}' for name, text in texts(tool, words) if text),
    ]  # fmt: skip
    request = f'{{"v":1,"kind":"request","id":"1","verb":"tool.run","arguments":{{{",".join(pairs)}}},"options":{{}}}}'
    for answer in _answers(request.encode()):
        if answer.get("kind") == "response":
            errors = [item["message"] for item in answer.get("reports", ()) if item.get("severity") == "error"]
            return print_answer(tool, words, answer.get("data"), errors, int(answer.get("exit") or 0))
    raise ToolError("the daemon hung up", DISCONNECTED)


def print_answer(tool: str, words: "Sequence[str]", data: "Any", errors: "list[str]", status: int) -> int:
    """Print what was answered, and write the files that belong to it; return the exit status. Raises ToolError."""
    if errors or not isinstance(data, dict):
        message = "; ".join(errors) or f"refused with status {status}"
        return _print("", f"{tool}: Error performing operation: {message}\n", status or 1)
    for name, text in (data.get("files") or {}).items():
        _write(name, text, words)
    out = data["out"]
    return _print(_fitting(out) if tool == "crm_mon" and out[:1] != "<" else out, data["err"], status)


def _write(name: str, text: str, words: "Sequence[str]") -> None:
    """Write a file that the call itself named, with the rights of who called."""
    if not any(word.endswith(name) for word in words):
        raise ToolError(f"{name}: no file that this call named", DISCONNECTED)
    left = text.encode("utf-8", "surrogateescape")
    try:
        descriptor = posix.open(name, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o666)
        try:
            while left:
                left = left[posix.write(descriptor, left) :]
        finally:
            posix.close(descriptor)
    except OSError as error:
        raise ToolError(f"{name}: {error.strerror}", NOT_WRITTEN) from None


def _fitting(text: str) -> str:
    """Break lines that are wider than the terminal, if the standard output is one."""
    try:
        width = posix.get_terminal_size(1).columns
    except OSError:
        return text
    return "\n".join(part for line in text.split("\n") for part in narrowed(line, width)) if width else text


def narrowed(line: str, width: int) -> "Iterator[str]":
    """Yield a line as lines that fit into a width, broken at spaces; what continues is indented like the line."""
    if len(line.expandtabs()) > width:
        line = line.expandtabs()
    start = " " * min(_indent(line) + 2, width // 3)
    while len(line) > width:
        space = line.rfind(" ", _indent(line) + 1, width + 1)
        end = space if space > 0 else max(width, _indent(line) + 1)
        yield line[:end].rstrip(" ")
        line = start + line[end:].lstrip(" ")
    yield line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _print(out: str, err: str, status: int) -> int:
    for stream, text in ((1, out), (2, err)):
        left = text.encode("utf-8", "surrogateescape")
        try:
            while left:
                left = left[posix.write(stream, left) :]
        except BrokenPipeError:
            pass  # The reader has seen enough (`crm_mon -1 | grep -q`).
        except OSError:
            return status or 1
    return status


def _answers(request: bytes) -> "Iterator[dict[str, Any]]":
    path = _variable(SOCKET_VARIABLE) or DEFAULT_SOCKET
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
    read = scanner(_Plain)  # type: ignore[arg-type]  # it reads attributes only, of whatever has them
    try:
        connection.settimeout(TIMEOUT_S)
        connection.connect(path)
        connection.sendall(len(request).to_bytes(4, "big") + request)
        while True:
            size = int.from_bytes(_receive(connection, 4), "big")
            if size > LONGEST_ANSWER:
                raise ToolError(f"an answer of {size} bytes", DISCONNECTED)
            yield read(_receive(connection, size).decode(), 0)[0]
    except TimeoutError:
        raise ToolError("the daemon did not answer in time", TIMED_OUT) from None
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror or error}", DISCONNECTED) from None
    except (ValueError, StopIteration):
        raise ToolError(f"{path}: what answers there is no haclusterd", DISCONNECTED) from None
    finally:
        connection.close()


def _receive(connection: socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ToolError("the daemon hung up", DISCONNECTED)
        data += piece
    return data


def texts(tool: str, words: "Sequence[str]") -> "Iterator[tuple[str, str]]":
    """Yield the XML that a call brings along in files or on standard input, by the names of the arguments.

    Raises ToolError.
    """
    if tool not in READERS:
        return
    if tool == "crm_diff":
        yield "text", _text(tool, words, "o", "--original")
        yield "other", _text(tool, words, "n", "--new") or _text(tool, words, "p", "--patch")
    elif _is_piped(tool, words):
        yield "text", _read(0, "standard input")
    else:
        yield "text", _text(tool, words, "x", "--xml-file")


def _is_piped(tool: str, words: "Sequence[str]") -> bool:
    return any(True for _ in _values(tool, words, "p", "--xml-pipe"))


def _text(tool: str, words: "Sequence[str]", letter: str, long: str) -> str:
    """Return what is in the file that an option names; empty when it is not given."""
    name = ""
    for value in _values(tool, words, letter, long):
        name = value
    if not name:
        return ""
    try:
        return _read(posix.open(name, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOCTTY), name)
    except OSError as error:
        raise ToolError(f"{name}: {error.strerror}", NO_INPUT) from None


def _values(tool: str, words: "Sequence[str]", letter: str, long: str) -> "Iterator[str]":
    """Yield the value of an option each time that it is given, also among other letters (`-Sx FILE`); of one that
    takes none, something."""
    valued = READERS[tool]
    following = [*words[1:], ""][: len(words)]
    is_value = False
    for word, after in zip(words, following, strict=True):
        if is_value:
            is_value = False
        elif word == long:
            yield after
        elif word.startswith(f"{long}="):
            yield word.partition("=")[2]
        elif word.startswith("-") and not word.startswith("--"):
            at = 1
            while at < len(word) and word[at] not in valued and word[at] != letter:
                at += 1
            rest = word[at + 1 :]
            is_value = at < len(word) and word[at] in valued and not rest
            if at < len(word) and word[at] == letter:
                yield rest or after


def _read(descriptor: int, name: str) -> str:
    found = b""
    while len(found) <= LONGEST_TEXT and (piece := posix.read(descriptor, 65536)):
        found += piece
    if len(found) > LONGEST_TEXT:
        raise ToolError(f"{name}: larger than {LONGEST_TEXT} bytes", USAGE)
    return found.decode("utf-8", "replace")
