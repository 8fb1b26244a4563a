"""One HTTP request with one deadline for all of it: name, connection, and an answer that comes drop by drop.

Made for questions about readiness: the standard library's clients take longer to import than the answer takes, and
their timeout begins again with every piece that arrives.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False  # As typing says it; importing that takes longer than a start of an agent may.
if TYPE_CHECKING:
    import socket

LONGEST_ANSWER = 4 * 1024 * 1024


class Url:
    """An http or https URL in its parts. Raises ValueError when it is none."""

    def __init__(self, text: str) -> None:
        scheme, colon, rest = text.partition("://")
        authority, slash, path = rest.partition("/")
        host, _, port = authority.rpartition(":") if not authority.endswith("]") else (authority, "", "")
        if not host:
            host, port = authority, ""
        if scheme not in ("http", "https") or not colon or not host or (port and not port.isdigit()):
            raise ValueError(f"not an http or https URL: {text!r}")
        self.is_tls = scheme == "https"
        self.host = host.strip("[]")
        self.port = int(port or (443 if self.is_tls else 80))
        self.target = slash + path or "/"


def fetch(
    url: str,
    timeout_s: float,
    *,
    given: bytes | None = None,
    headers: tuple[str, ...] = (),
    trusted: str = "",
    wants_body: bool = True,
) -> tuple[int, str]:
    """Return status and body of an answer; `given` is posted, `trusted` a file of certificates to be verified against.

    Without `wants_body` the body may be cut short. Raises OSError (TimeoutError when it takes too long) or ValueError
    when the answer is not HTTP.
    """
    import socket

    parts = Url(url)
    deadline = time.monotonic() + timeout_s
    with socket.create_connection((parts.host, parts.port), timeout_s) as plain:
        plain.settimeout(_left(deadline))
        connection = _wrap(plain, parts.host, trusted) if parts.is_tls else plain
        lines = [
            f"{'GET' if given is None else 'POST'} {parts.target} HTTP/1.1",
            f"Host: {parts.host}:{parts.port}",
            "User-Agent: haclusterd",
            "Connection: close",
            *([] if given is None else ["Content-Type: application/json", f"Content-Length: {len(given)}"]),
            *headers,
        ]
        connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode() + (given or b""))
        answer = b""
        while len(answer) < LONGEST_ANSWER:
            connection.settimeout(_left(deadline))
            data = connection.recv(65536)
            answer += data
            if not data or _is_whole(answer, wants_body):
                break
    return _read(answer)


def _left(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s


def _is_whole(answer: bytes, wants_body: bool) -> bool:
    """Tell whether enough of an answer is there: servers may keep a connection open though they were asked not to."""
    if not wants_body:
        return b"\r\n" in answer
    head, end, body = answer.partition(b"\r\n\r\n")
    length = _field(head, b"content-length")
    return bool(end) and length.isdigit() and len(body) >= int(length)


def _read(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ValueError("the answer is not HTTP")
    if _field(head, b"transfer-encoding").lower() == b"chunked":
        body = _joined(body)
    return int(words[1]), body.decode("utf-8", "replace")


def _field(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n")[1:]:
        found, _, value = line.partition(b":")
        if found.strip().lower() == name:
            return value.strip()
    return b""


def _joined(body: bytes) -> bytes:
    """Return a body that was sent in chunks as one (RFC 9112 §7.1); what is missing of the last one is left out."""
    found = b""
    while body:
        size, end, body = body.partition(b"\r\n")
        try:
            length = int(size.split(b";")[0], 16)
        except ValueError:
            break
        if not end or not length:
            break
        found, body = found + body[:length], body[length + 2 :]
    return found


def _wrap(plain: socket.socket, host: str, trusted: str) -> socket.socket:
    import ssl

    context = ssl.create_default_context(cafile=trusted or None)
    if not trusted:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=host)
