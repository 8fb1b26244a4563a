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
READERS = ("cibadmin", "crm_verify", "crm_simulate", "crm_diff")
"""Tools that take XML as a file (-x) or on standard input (-p); crm_diff takes two files."""


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
        _refuse_files(tool)
        if tool == "crm_node" and acting_for and list(words) in (["-n"], ["--name"]):
            return _print(f"{acting_for}\n", "", 0)
        return _answer(tool, words, acting_for)
    except ToolError as problem:
        return _print("", f"{tool}: {problem}\n", problem.status)


def _refuse_files(tool: str) -> None:
    """Refuse a call that is to ask or change a file: here it would ask and change the cluster.

    Agents' crm_mon with what another tool prints (`CIB_file=<(cibadmin -Q) crm_mon -1`) means the cluster.
    """
    for name in ("CIB_file", "CIB_shadow"):
        value = _variable(name)
        if value and not (tool == "crm_mon" and value.startswith("/dev/fd/")):
            raise ToolError(f"{name} is set, but the cluster itself is asked here: unset it; for files: crm cib", USAGE)


def _variable(name: str) -> str:
    return posix.environ.get(name.encode(), b"").decode("utf-8", "replace")


def _answer(tool: str, words: "Sequence[str]", acting_for: str) -> int:
    instance = _variable("OCF_RESOURCE_INSTANCE")
    pairs = [
        f'"tool":{quoted(tool)}', f'"words":[{",".join(map(quoted, words))}]',
        *([f'"instance":{quoted(instance)}'] if instance else []),
        *([f'"node":{quoted(acting_for)}'] if acting_for else []),
        *([f'"{name}":{quoted(text)}' for name, text in _texts(tool, words) if text] if tool in READERS else []),
    ]  # fmt: skip
    request = f'{{"v":1,"kind":"request","id":"1","verb":"tool.run","arguments":{{{",".join(pairs)}}},"options":{{}}}}'
    for answer in _answers(request.encode()):
        if answer.get("kind") == "response":
            return _print_answer(tool, words, answer)
    raise ToolError("the daemon hung up", DISCONNECTED)


def _print_answer(tool: str, words: "Sequence[str]", answer: "dict[str, Any]") -> int:
    data, status = answer.get("data"), int(answer.get("exit") or 0)
    errors = [item["message"] for item in answer.get("reports", ()) if item.get("severity") == "error"]
    if errors or not isinstance(data, dict):
        message = "; ".join(errors) or f"refused with status {status}"
        return _print("", f"{tool}: Error performing operation: {message}\n", status or 1)
    for name, text in (data.get("files") or {}).items():
        _write(name, text, words)
    return _print(data["out"], data["err"], status)


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


def _texts(tool: str, words: "Sequence[str]") -> "Iterator[tuple[str, str]]":
    """Yield the XML that a call brings along in files or on standard input, by the names of the arguments."""
    if tool == "crm_diff":
        yield "text", _text(words, ("-o", "--original"))
        yield "other", _text(words, ("-n", "--new")) or _text(words, ("-p", "--patch"))
    elif "-p" in words or "--xml-pipe" in words:
        yield "text", _read(0, "standard input")
    else:
        yield "text", _text(words, ("-x", "--xml-file"))


def _text(words: "Sequence[str]", options: "tuple[str, str]") -> str:
    """Return what is in the file that an option names; empty when it is not given."""
    short, long = options
    for at, word in enumerate(words):
        name = ""
        if word in options and at + 1 < len(words):
            name = words[at + 1]
        elif word.startswith(f"{long}="):
            name = word.partition("=")[2]
        elif word.startswith(short) and len(word) > 2:
            name = word[2:]
        if name:
            try:
                return _read(posix.open(name, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOCTTY), name)
            except OSError as error:
                raise ToolError(f"{name}: {error.strerror}", NO_INPUT) from None
    return ""


def _read(descriptor: int, name: str) -> str:
    found = b""
    while len(found) <= LONGEST_TEXT and (piece := posix.read(descriptor, 65536)):
        found += piece
    if len(found) > LONGEST_TEXT:
        raise ToolError(f"{name}: larger than {LONGEST_TEXT} bytes", USAGE)
    return found.decode("utf-8", "replace")
