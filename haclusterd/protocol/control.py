"""What `crm` and the daemon say to each other on the control socket.

A frame (`wire.framing`) holds JSON, one object. A client sends requests; for each
the daemon answers any number of `Progress` and then one `Response`, all with the request's id.

Invariant: decoding is total: whatever bytes come, the answer is a value or a `Malformed`.

It is written by hand, and not by `wire.schemas`: every call of `crm` waits for what it imports.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass
from haclusterd.model.requests import ORIGIN, Basis, Options, Progress, Request, Response, ShownReport
from haclusterd.wire.framing import HEADER_BYTES, framed
from haclusterd.wire.json_members import NamedTwiceError, members
from haclusterd.wire.json_outline import VALUES_MAX, has_too_many_values

if TYPE_CHECKING:
    from haclusterd.reports.items import ReportItem

VERSION = 1
DEFAULT_SOCKET = "/run/haclusterd/control.sock"
"""Where clients look for the daemon of their machine; agents, which stand alone, read `agents/cluster_link.py`."""
MAX_FRAME_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 32
"""Of nested JSON values in a request."""
MAX_ID_CHARACTERS = 200
"""Of a request that is answered although it is not as it should be."""
MAX_PLACE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that are not what they should be, with why."""

    problem: str
    request: str | None = None
    """The id of the request, which can be answered then; None: the connection is not used any more."""


Message = Request | Progress | Response


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """A response that has been made into a frame already, where that takes no time of the main loop."""

    frame: bytes

    def decoded(self) -> Response:
        """Return the response itself."""
        response = decode(self.frame[HEADER_BYTES:])
        assert isinstance(response, Response), response
        return response


def shown_report(item: "ReportItem") -> ShownReport:
    """Tell a report."""
    place = "" if item.place is None else str(item.place)
    return ShownReport(str(item.severity), str(item.code), item.message, item.remedy, place)


def encode(message: Message) -> bytes:
    """Return a message as one frame. A response that is too large becomes one that says so."""
    payload = _payload(message)
    if len(payload) > MAX_FRAME_BYTES:
        assert isinstance(message, Response), "only a response grows with the cluster"
        text = f"the answer is larger than {MAX_FRAME_BYTES} bytes"
        problem = ShownReport("error", "TOO_LARGE", text, "ask for less")
        payload = _payload(Response(message.id, 1, (problem,)))
    return framed(payload)


def _payload(message: Message) -> bytes:
    return json.dumps(_as_json(message), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _as_json(message: Message) -> dict[str, Json]:
    match message:
        case Request():
            options = message.options
            return {
                "v": VERSION, "kind": "request", "id": message.id, "verb": message.verb,
                "arguments": message.arguments,
                "options": {
                    "wait_ms": options.wait_ms, "dry_run": options.dry_run, "force": options.force,
                    "reason": options.reason, **({"consistent": True} if options.is_consistent else {}),
                    **({} if options.if_version is None else {"if_version": options.if_version}),
                    **({"no_validate": True} if options.no_validate else {}),
                },
                **({} if message.credential is None else {"credential": message.credential}),
                **({"origin": message.origin} if message.origin else {}),
            }  # fmt: skip
        case Progress():
            return {
                "v": VERSION, "kind": "progress", "id": message.id, "text": message.text,
                "elapsed_ms": message.elapsed_ms,
            }  # fmt: skip
        case Response():
            return {
                "v": VERSION, "kind": "response", "id": message.id, "exit": message.exit,
                "reports": [report_as_json(item) for item in message.reports], "data": message.data,
                **({} if message.basis is None else {"basis": _basis_as_json(message.basis)}),
            }  # fmt: skip


def _basis_as_json(basis: Basis) -> dict[str, Json]:
    return {"node": basis.node, "version": basis.version, "index": basis.index, "stale_ms": basis.stale_ms}


def report_as_json(item: ShownReport) -> dict[str, Json]:
    """Return a report as a JSON object."""
    return {
        "severity": item.severity, "code": item.code, "message": item.message, "remedy": item.remedy,
        "place": item.place,
    }  # fmt: skip


class _BadFieldError(Exception):
    """What is wrong with a message; never leaves this module."""


def decode_request(payload: bytes) -> Message | Malformed:
    """Read what a client sent: what it may be made to take is bounded before anything is judged."""
    if has_too_many_values(payload):
        return Malformed(f"more than {VALUES_MAX} values")
    return decode(payload)


def decode(payload: bytes) -> Message | Malformed:
    """Read one frame's payload."""
    fractions: list[_Fraction] = []

    def take_fraction(text: str) -> _Fraction:
        fractions.append(_Fraction(text[:20]))
        return fractions[-1]

    try:
        document = json.loads(
            payload.decode("utf-8"),
            parse_float=take_fraction,
            parse_constant=take_fraction,
            object_pairs_hook=members,
        )
    except NamedTwiceError as error:
        return Malformed(str(error))
    except (ValueError, RecursionError) as error:
        return Malformed(f"not JSON: {str(error)[:200]}")
    try:
        if fractions:
            _refuse_fractions(document)
        return _message(document)
    except _BadFieldError as error:
        return Malformed(str(error), _request_id(document))


@dataclass(frozen=True, slots=True, eq=False)
class _Fraction:
    """Stands in a document where a number is not whole, or is none."""

    text: str


def _refuse_fractions(document: object) -> None:
    pending = [("", document)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, _Fraction):
            where = place[:MAX_PLACE_CHARACTERS].removeprefix(".").encode(errors="replace").decode() or "message"
            raise _BadFieldError(f"{where}: {value.text} is not a whole number")
        if isinstance(value, dict):
            pending += [(f"{place[:MAX_PLACE_CHARACTERS]}.{name}", part) for name, part in value.items()]
        elif isinstance(value, list):
            pending += [(f"{place[:MAX_PLACE_CHARACTERS]}[{at}]", part) for at, part in enumerate(value)]


def _request_id(document: object) -> str | None:
    """Return the id by which a client knows the answer to a request that is refused."""
    if not isinstance(document, dict) or document.get("kind") != "request":
        return None
    found = document.get("id")
    is_usable = isinstance(found, str) and len(found) <= MAX_ID_CHARACTERS and _is_unicode(found)
    return found if is_usable else None


def _message(document: Json) -> Message:
    fields = _mapping(document, "message")
    version = fields.get("v")
    if version != VERSION or isinstance(version, bool):
        raise _BadFieldError(f"this end speaks version {VERSION}, the other {str(version)[:20]!r}")
    kind = fields.get("kind")
    if kind == "request":
        return _request(fields)
    if kind == "progress":
        return Progress(_text(fields, "id"), _text(fields, "text"), _integer(fields, "elapsed_ms"))
    if kind == "response":
        listed = fields.get("reports")
        if isinstance(listed, str) or not isinstance(listed, Sequence):
            raise _BadFieldError("reports must be a list")
        reports = tuple(_read_report(_mapping(item, "report")) for item in listed)
        basis = None if fields.get("basis") is None else _basis(_mapping(fields["basis"], "basis"))
        return Response(_text(fields, "id"), _integer(fields, "exit"), reports, fields.get("data"), basis)
    raise _BadFieldError(f"unknown kind {str(kind)[:20]!r}")


def _basis(fields: Mapping[str, Json]) -> Basis:
    return Basis(
        _text(fields, "node"), _integer(fields, "version"), _integer(fields, "index"), _integer(fields, "stale_ms")
    )


_OPTIONS = frozenset({"wait_ms", "dry_run", "force", "reason", "consistent", "if_version", "no_validate"})


def _request(fields: Mapping[str, Json]) -> Request:
    arguments = _mapping(fields.get("arguments", {}), "arguments")
    _refuse_depth_and_surrogates(arguments)
    options = _mapping(fields.get("options", {}), "options")
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise _BadFieldError(f"unknown option {unknown[0][:40]!r}")
    wait_ms = None if options.get("wait_ms") is None else _integer(options, "wait_ms")
    if wait_ms is not None and wait_ms < 0:
        raise _BadFieldError("wait_ms must not be negative")
    origin = _text(fields, "origin", "")
    if origin and not ORIGIN.match(origin):
        raise _BadFieldError("origin must be the name of an interface, and for whom")
    return Request(
        id=_text(fields, "id"),
        verb=_text(fields, "verb"),
        arguments=arguments,
        options=Options(
            wait_ms,
            _flag(options, "dry_run"),
            _flag(options, "force"),
            _text(options, "reason", ""),
            _flag(options, "consistent"),
            None if options.get("if_version") is None else _integer(options, "if_version"),
            _flag(options, "no_validate"),
        ),
        credential=None if fields.get("credential") is None else _text(fields, "credential"),
        origin=origin,
    )


def _read_report(fields: Mapping[str, Json]) -> ShownReport:
    return ShownReport(
        _text(fields, "severity"), _text(fields, "code"), _text(fields, "message"), _text(fields, "remedy", ""),
        _text(fields, "place", ""),
    )  # fmt: skip


def _mapping(value: Json, name: str) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise _BadFieldError(f"{name} must be an object")
    return value


def _text(fields: Mapping[str, Json], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or not _is_unicode(value):
        raise _BadFieldError(f"{name} must be a text")
    return value


def _integer(fields: Mapping[str, Json], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2**53:
        raise _BadFieldError(f"{name} must be a whole number")
    return value


def _flag(fields: Mapping[str, Json], name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise _BadFieldError(f"{name} must be true or false")
    return value


def _is_unicode(text: str) -> bool:
    """Return whether it can be written again: JSON's escapes can make half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_depth_and_surrogates(arguments: Mapping[str, Json]) -> None:
    pending: list[tuple[Json, int]] = [(arguments, 1)]
    while pending:
        value, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise _BadFieldError(f"arguments are nested deeper than {MAX_DEPTH}")
        if isinstance(value, str):
            if not _is_unicode(value):
                raise _BadFieldError("arguments contain half a surrogate pair")
        elif isinstance(value, Mapping):
            pending += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, Sequence):
            pending += [(part, depth + 1) for part in value]
