"""Answers of a daemon as answers of HTTP: what a code is there, and what is in the body."""

import json
from collections.abc import Mapping, Sequence

from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Response, ShownReport
from haclusterd.protocol.control import report_as_json
from haclusterd.reports.codes import Code
from haclusterd.reports.exit_codes import ExitStatus

PROBLEM = "application/problem+json"
JSON = "application/json"
RETRY_AFTER_S = "1"

STATUS_OF: Mapping[ExitStatus, int] = {
    ExitStatus.FAILED: 409,
    ExitStatus.BAD_VALUE: 400,
    ExitStatus.USAGE: 400,
    ExitStatus.DATA: 422,
    ExitStatus.NO_INPUT: 404,
    ExitStatus.UNKNOWN_NODE: 404,
    ExitStatus.UNAVAILABLE: 503,
    ExitStatus.IO: 503,
    ExitStatus.TRY_AGAIN: 503,
    ExitStatus.NOT_PERMITTED: 403,
    ExitStatus.CONFIGURATION: 422,
    ExitStatus.DISCONNECTED: 504,
    ExitStatus.OUTDATED: 409,
    ExitStatus.NO_SUCH_OBJECT: 404,
    ExitStatus.NO_QUORUM: 503,
    ExitStatus.UNSAFE: 409,
    ExitStatus.EXISTS: 409,
    ExitStatus.AMBIGUOUS: 409,
    ExitStatus.INDETERMINATE: 504,
    ExitStatus.TIMEOUT: 504,
}
"""By the exit status of a code; every status that an error can have is here (tested)."""
STATUS_OF_CODE: Mapping[str, int] = {
    Code.NOT_AUTHENTICATED: 401,
    Code.UNKNOWN_VERB: 404,
    Code.TOO_LARGE: 413,
    Code.NOT_ANSWERED: 503,
}
"""Where a code means more to HTTP than its exit status says."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent back."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    """Of the first error; empty: there is none."""


def reply_to(response: Response, *, is_reading: bool, has_precondition: bool = False, has_etag: bool = False) -> Reply:
    """Return an answer of the daemon for HTTP.

    A question that was answered is answered, whatever the answer says: `configure.verify` of a wrong file is a 200.
    """
    errors = response.errors
    headers = _headers(response, has_etag=has_etag)
    if errors and not (is_reading and response.data is not None):
        return _problem(response.reports, errors[0], response, headers, has_precondition=has_precondition)
    data = response.data if isinstance(response.data, Mapping) else {"schema": "haclusterd.reports/1"}
    document: Json = {**data, "reports": [report_as_json(each) for each in response.reports]}
    return Reply(200, dumped(document), JSON, headers)


def dumped(document: Json) -> bytes:
    """Write a document."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _headers(response: Response, *, has_etag: bool) -> dict[str, str]:
    headers = {"Haclusterd-Exit": str(response.exit)}
    basis = response.basis
    if basis is not None:
        headers |= {
            "Haclusterd-Node": basis.node,
            "Haclusterd-Version": str(basis.version),
            "Haclusterd-Index": str(basis.index),
            "Haclusterd-Stale-Ms": str(basis.stale_ms),
        }
        if has_etag:
            headers["ETag"] = f'"{basis.version}"'
    return headers


def _problem(
    reports: Sequence[ShownReport],
    first: ShownReport,
    response: Response,
    headers: dict[str, str],
    *,
    has_precondition: bool,
) -> Reply:
    status = status_of(first.code, response.exit)
    if has_precondition and first.code == Code.CONFLICT:
        status = 412
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="haclusterd"'
    if status == 503:
        headers["Retry-After"] = RETRY_AFTER_S
    document: dict[str, Json] = {
        "type": f"urn:haclusterd:code:{first.code}",
        "title": first.code.replace("_", " ").capitalize(),
        "status": status,
        "detail": first.message,
        "code": first.code,
        "exit": response.exit,
        "place": first.place,
        "remedy": first.remedy,
        "reports": [report_as_json(each) for each in reports],
    }
    if response.data is not None:
        document["data"] = response.data
    return Reply(status, dumped(document), PROBLEM, headers, first.code)


def status_of(code: str, exit_: int) -> int:
    """Return the status of HTTP for a code with its exit status."""
    if code in STATUS_OF_CODE:
        return STATUS_OF_CODE[code]
    try:
        return STATUS_OF.get(ExitStatus(exit_), 409)
    except ValueError:
        return 409
