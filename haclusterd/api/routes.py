"""Every verb as a path: derived from the table of verbs, so that a new verb is there without a line here.

Rule: `/v1/`, the verb's name with slashes; GET for what changes nothing, POST for the rest. A reading verb that takes a
whole text can be asked with POST as well, since a text fits into no address. What a request says is only given its type
here; whether it is right, the daemon judges, as it does for `crm`.
"""

import json
import re
from collections.abc import Iterable, Mapping

from haclusterd.model import durations
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass
from haclusterd.model.requests import Options
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.table import VERBS
from haclusterd.verbs.verb import Verb
from haclusterd.wire.json_members import NamedTwiceError, members
from haclusterd.wire.json_outline import VALUES_MAX, has_too_many_values

PREFIX = "/v1"
OPTIONS_OF_CHANGES = ("dry_run", "force", "wait", "reason", "consistent", "no_validate")
OPTIONS_OF_READS = ("consistent",)
LONGEST_REASON = 1000
LONGEST_WAIT_MS = 3_600_000
_INTEGER = re.compile(r"-?[0-9]{1,15}\Z")
_FLAGS = {"true": True, "1": True, "": True, "false": False, "0": False}
_VERSION = re.compile(r'"([0-9]{1,15})"\Z')


@dataclass(frozen=True, slots=True)
class Route:
    """One way to ask a verb."""

    verb: Verb
    method: str
    path: str

    @property
    def has_body(self) -> bool:
        """Whether the arguments come in the body."""
        return self.method == "POST"

    @property
    def options(self) -> tuple[str, ...]:
        """The options that are in the query."""
        return OPTIONS_OF_CHANGES if self.verb.may_change else OPTIONS_OF_READS

    @property
    def has_etag(self) -> bool:
        """Whether what it answers is a view of the configuration alone, so that its version names it."""
        return self.method == "GET" and self.verb.name in ("configure.show", "configure.get_property")


def routes() -> tuple[Route, ...]:
    """Return every route, in order of path."""
    found: list[Route] = []
    for name, verb in sorted(VERBS.items()):
        path = f"{PREFIX}/{name.replace('.', '/')}"
        found.append(Route(verb, "POST" if verb.may_change else "GET", path))
        if not verb.may_change and any(each.kind is Kind.TEXT for each in verb.arguments):
            found.append(Route(verb, "POST", path))
    return tuple(found)


class RefusedError(Exception):
    """A request that is not passed on."""

    def __init__(self, *items: ReportItem, status: int | None = None) -> None:
        super().__init__(items)
        self.items = items
        self.status = status
        """Of HTTP, where the code of the first item does not say it."""


def bad(name: str, problem: str, *, status: int | None = None) -> RefusedError:
    """Return the refusal of one part of a request."""
    return RefusedError(report(Code.BAD_ARGUMENT, name=name, problem=problem), status=status)


def read_query(route: Route, pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, Json], Options]:
    """Cut a query into the verb's arguments and the request's options; raise RefusedError."""
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    options = {name: _single(name, given.pop(name)) for name in route.options if name in given}
    if route.has_body:
        if given:
            shown = next(iter(given))[:80]
            remedy = did_you_mean(shown, route.options, "arguments of the verb belong in the body")
            raise RefusedError(report(Code.UNKNOWN_ARGUMENT, verb=route.verb.name, name=repr(shown), remedy=remedy))
        return {}, _options(options)
    schema = {each.name: each for each in route.verb.arguments}
    arguments = {name: _typed(name, schema.get(name), values) for name, values in given.items()}
    return arguments, _options(options)


def _single(name: str, values: list[str]) -> str:
    if len(values) > 1:
        raise bad(name, "is given more than once")
    return values[0]


def _typed(name: str, argument: Argument | None, values: list[str]) -> Json:
    """Give a word of the query its type; what has none stays a text, and the daemon objects to it."""
    if argument is not None and argument.kind is Kind.WORDS:
        return list(values)
    value = _single(name[:80], values)
    if argument is not None and argument.kind is Kind.FLAG:
        return _FLAGS.get(value, value)
    if argument is not None and argument.kind is Kind.INTEGER and _INTEGER.match(value):
        return int(value)
    return value


def _options(words: Mapping[str, str]) -> Options:
    flags = {}
    for name in ("dry_run", "force", "consistent", "no_validate"):
        found = _FLAGS.get(words.get(name, "false"))
        if found is None:
            raise bad(name, "must be true or false")
        flags[name] = found
    reason = words.get("reason", "")
    if len(reason) > LONGEST_REASON or not reason.isprintable():
        raise bad("reason", f"must be one line of at most {LONGEST_REASON} characters")
    return Options(
        _wait_ms(words.get("wait")), flags["dry_run"], flags["force"], reason, flags["consistent"],
        no_validate=flags["no_validate"],
    )  # fmt: skip


def _wait_ms(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        found = durations.parse(text)
    except ValueError:
        found = -1
    if not 0 <= found <= LONGEST_WAIT_MS:
        raise bad("wait", "must be a span of at most an hour (write it like 30s, or 0 for not at all)")
    return found


def read_body(body: bytes, content_type: str) -> dict[str, Json]:
    """Read the arguments from a body of JSON; raise RefusedError."""
    if not body:
        return {}
    if content_type != "application/json":
        raise bad("Content-Type", "must be application/json", status=415)
    if has_too_many_values(body):
        raise RefusedError(report(Code.TOO_LARGE, what="the body", limit=f"{VALUES_MAX} values"), status=413)
    try:
        document = json.loads(
            body.decode(), parse_float=_refuse, parse_constant=_refuse, object_pairs_hook=members
        )
    except NamedTwiceError as error:
        raise bad("body", str(error)) from None
    except (ValueError, RecursionError) as error:
        raise bad("body", f"is not JSON of whole numbers: {str(error)[:100]}") from None
    if not isinstance(document, dict):
        raise bad("body", "must be a JSON object")
    return document


def _refuse(text: str) -> None:
    raise ValueError(f"{text[:20]} is not a whole number")


def read_version(header: str | None) -> int | None:
    """Read `If-Match`: the version of the configuration for which a change is meant; raise RefusedError."""
    if header is None or header.strip() == "*":
        return None
    found = _VERSION.match(header.strip())
    if found is None:
        raise bad("If-Match", 'must be one version of the configuration, as an ETag: "17"')
    return int(found.group(1))
