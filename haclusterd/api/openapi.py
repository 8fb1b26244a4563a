"""The OpenAPI 3.1 document of the interface, made from the table of verbs."""

from collections.abc import Mapping
from typing import Final

from haclusterd.api.events import PARAMETERS
from haclusterd.api.metrics import TEXT
from haclusterd.api.problems import JSON, PROBLEM, STATUS_OF, STATUS_OF_CODE
from haclusterd.api.routes import PREFIX, Route, routes
from haclusterd.model.json_value import Json
from haclusterd.reports.codes import Severity
from haclusterd.verbs.answers.answer import component, record_schema, records_in
from haclusterd.verbs.answers.table import ANSWERS
from haclusterd.verbs.arguments import MAX_WORD_LENGTH, MAX_WORDS, Argument, Kind
from haclusterd.verbs.verb import Verb

VERSION: Final = "1"
STREAM: Final = "text/event-stream"
STATUSES: Final = sorted({*STATUS_OF.values(), *STATUS_OF_CODE.values(), 400, 405, 408, 412, 415, 422, 500})
_OPTIONS: Final[Mapping[str, tuple[Json, str]]] = {
    "dry_run": ({"type": "boolean"}, "Change nothing; show what would be changed, and what the cluster would do then."),
    "force": ({"type": "boolean"}, "Do what is refused as unsafe."),
    "wait": ({"type": "string"}, "How long to wait until it is done, as 30s; 0: not at all. Each verb has a default."),
    "reason": ({"type": "string", "maxLength": 1000}, "Why, for the history."),
    "no_validate": ({"type": "boolean"}, "Do not ask agents what they say of the parameters that are new."),
    "consistent": ({"type": "boolean"}, "Answer from a state that has every acknowledged change in it."),
}
_INTEGER_HEADER: Final[dict[str, Json]] = {"schema": {"type": "integer"}}
_HEADERS: Final[dict[str, Json]] = {
    "Haclusterd-Exit": {**_INTEGER_HEADER, "description": "What crm would end with."},
    "Haclusterd-Node": {"schema": {"type": "string"}, "description": "The node that answers."},
    "Haclusterd-Version": {**_INTEGER_HEADER, "description": "The version of the configuration."},
    "Haclusterd-Index": {**_INTEGER_HEADER, "description": "The newest entry of the log that was applied."},
    "Haclusterd-Stale-Ms": {**_INTEGER_HEADER, "description": "How old the answer may be; 0: it is current."},
}


def document() -> dict[str, Json]:
    """Return the whole document."""
    paths: dict[str, dict[str, Json]] = {}
    for route in routes():
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    paths[f"{PREFIX}/openapi.json"] = {"get": _open("This document", "openapi", {"type": "object"}) | {"security": []}}
    paths[f"{PREFIX}/operations/{{id}}"] = {"get": {
        **_open("How far an operation is", "operations.show", {"$ref": "#/components/schemas/Operation"}),
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
    }}  # fmt: skip
    paths[f"{PREFIX}/events"] = {"get": _events()}
    text: Json = {"description": "Metrics", "content": {TEXT: {"schema": {"type": "string"}}}}
    measured = _open("Metrics of this node, in the text format of Prometheus", "prometheus", {})
    paths["/metrics"] = {"get": {**measured, "responses": {**_problems(), "200": text}}}
    paths[f"{PREFIX}/session"] = _session()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "haclusterd",
            "version": VERSION,
            "description": "Every verb of crm. Made from the program's table of verbs.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "haclusterd-PORT"},
            },
            "schemas": _schemas(),
        },
    }


def _open(summary: str, name: str, schema: Json) -> dict[str, Json]:
    found: Json = {"description": "The answer", "content": {JSON: {"schema": schema}}}
    return {"operationId": name, "summary": summary, "responses": {"200": found, **_problems()}}


def _events() -> dict[str, Json]:
    several: Json = {"type": "array", "items": {"type": "string"}}
    described = _open("Events as they happen, as server-sent events", "events", {})
    stream: Json = {
        "description": "A stream that does not end. Events without a name are those of the history; `missing` names "
        "entries that this node cannot show, `state` comes every few seconds, `end` says why the stream ends",
        "content": {STREAM: {"schema": {"type": "string"}}},
    }
    parameters: list[Json] = [
        {
            "name": name, "in": "query", "required": False, "description": doc,
            "schema": several if name in ("resources", "kinds") else {"type": "string"},
        }
        for name, doc in PARAMETERS.items()
    ]  # fmt: skip
    parameters.append(_header("Last-Event-ID", "The id of the last event that was received, at any node."))
    return {**described, "parameters": parameters, "responses": {**_problems(), "200": stream}}


def _session() -> dict[str, Json]:
    session: Json = {"$ref": "#/components/schemas/Session"}
    begun = _open("Begin a session of the web page: a cookie stands for the token", "session.begin", session)
    shown = _open("Show the session that a cookie names", "session.show", session)
    ended = _open("End the session", "session.end", {"$ref": "#/components/schemas/Answer"})
    repeated = [_header("Haclusterd-Csrf", "What the session answered, where a cookie stands for the token.")]
    return {
        "post": begun,
        "get": {**shown, "security": [{"session": []}]},
        "delete": {**ended, "security": [{"session": []}], "parameters": repeated},
    }


def _operation(route: Route) -> dict[str, Json]:
    verb = route.verb
    is_second = route.has_body and not verb.may_change
    parameters = [_option(name) for name in route.options]
    if verb.may_change:
        parameters += [_header("If-Match", "Only while the configuration is this version, as an ETag."),
                       _header("Idempotency-Key", "A repetition with the same key is not carried out again."),
                       _header("Prefer", "`respond-async`: begin it, and answer with an operation.")]  # fmt: skip
    if not route.has_body:
        parameters += [_parameter(each) for each in verb.arguments]
    answer: dict[str, Json] = {
        "description": "The answer, as `crm -o json` prints it",
        "headers": {**_HEADERS, **({"ETag": {"schema": {"type": "string"}}} if route.has_etag else {})},
        "content": {JSON: {"schema": _answered(verb)}},
    }
    responses: dict[str, Json] = {"200": answer, **_problems()}
    if verb.may_change:
        responses["202"] = {
            "description": "It was begun",
            "headers": {"Location": {"schema": {"type": "string"}}},
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/Operation"}}},
        }
    found: dict[str, Json] = {
        "operationId": f"{verb.name}{'.text' if is_second else ''}",
        "summary": verb.help,
        "tags": [verb.name.partition(".")[0]],
        "parameters": parameters,
        "responses": responses,
        "x-haclusterd-permission": str(verb.permission),
    }
    if route.has_body:
        required = any(each.is_required for each in verb.arguments)
        found["requestBody"] = {"required": required, "content": {JSON: {"schema": arguments_schema(route)}}}
    return found


def _answered(verb: Verb) -> Json:
    """Return the schema of what a verb answers."""
    names = (*verb.answers, *(("preview",) if verb.may_change else ()))
    components = [component(ANSWERS[f"haclusterd.{name}/1"]) for name in names]
    return {"anyOf": [{"$ref": f"#/components/schemas/{each}"} for each in (*components, "Reports")]}


def _answer_schemas() -> dict[str, Json]:
    """Return the schema of every answer and of every part of one, by its name among the components."""
    kinds = {part: None for answer in ANSWERS.values() for part in records_in(answer)}
    found: dict[str, Json] = {component(kind): record_schema(kind) for kind in kinds}
    return dict(sorted(found.items()))


def arguments_schema(route: Route) -> dict[str, Json]:
    """Return the schema of a verb's arguments as one JSON object."""
    arguments = route.verb.arguments
    return {
        "type": "object",
        "properties": {each.name: {**schema_of(each), "description": each.doc} for each in arguments},
        "required": [each.name for each in arguments if each.is_required],
        "additionalProperties": False,
    }


def schema_of(argument: Argument) -> dict[str, Json]:
    """Return the schema of one argument."""
    word: dict[str, Json] = {"type": "string", "maxLength": MAX_WORD_LENGTH}
    if argument.is_required:
        word["minLength"] = 1
    match argument.kind:
        case Kind.WORD:
            return {**word, "enum": [str(each) for each in argument.choices]} if argument.choices else word
        case Kind.WORDS:
            least = int(argument.is_required)
            return {"type": "array", "items": {**word}, "maxItems": MAX_WORDS, "minItems": least}
        case Kind.TEXT:
            return {"type": "string", "maxLength": argument.longest}
        case Kind.FLAG:
            return {"type": "boolean"}
        case Kind.INTEGER:
            return {"type": "integer", "minimum": argument.minimum, "maximum": argument.maximum}


def _parameter(argument: Argument) -> Json:
    return {
        "name": argument.name, "in": "query", "required": argument.is_required, "description": argument.doc,
        "schema": schema_of(argument),
    }  # fmt: skip


def _option(name: str) -> Json:
    schema, doc = _OPTIONS[name]
    return {"name": name, "in": "query", "required": False, "description": doc, "schema": schema}


def _header(name: str, doc: str) -> Json:
    return {"name": name, "in": "header", "required": False, "description": doc, "schema": {"type": "string"}}


def _problems() -> dict[str, Json]:
    problem: Json = {
        "description": "Refused, or not answered: `code` says why, `remedy` what to do",
        "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    return {str(status): problem for status in STATUSES}


def _schemas() -> dict[str, Json]:
    text: Json = {"type": "string"}
    reports: Json = {"type": "array", "items": {"$ref": "#/components/schemas/Report"}}
    severities: Json = [str(each) for each in Severity]
    return {
        "Report": _object(severity={"type": "string", "enum": severities}, code=text, message=text, remedy=text,
                          place=text),
        "Answer": {
            "type": "object",
            "properties": {
                "schema": {"type": "string", "pattern": "^haclusterd\\.[a-z_-]+/[0-9]+$"},
                "reports": reports,
            },
            "required": ["schema", "reports"],
        },
        "Reports": _object(schema={"const": "haclusterd.reports/1"}, reports=reports),
        **_answer_schemas(),
        "Problem": {
            **_object(type=text, title=text, status={"type": "integer"}, detail=text, code=text,
                      exit={"type": "integer"}, place=text, remedy=text, reports=reports),
        },
        "Session": _object(
            schema={"const": "haclusterd.session/1"}, author=text, role=text, csrf=text,
            ends_in_s={"type": "integer"}, reports=reports,
        ),
        "Operation": _object(
            schema={"const": "haclusterd.operation/1"}, id=text, verb=text,
            state={"type": "string", "enum": ["running", "ended"]}, waits_for=text,
            elapsed_ms={"type": "integer"}, status={"type": ["integer", "null"]}, result={"type": ["object", "null"]},
        ),
    }  # fmt: skip


def _object(**properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": list(properties)}
