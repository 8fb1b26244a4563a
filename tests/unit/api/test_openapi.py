"""The OpenAPI document has every verb, and describes its arguments as the daemon judges them."""

import json
import subprocess
import sys

from haclusterd.api.openapi import arguments_schema, document
from haclusterd.api.routes import routes
from haclusterd.verbs.arguments import Kind

SHAPES = {Kind.WORD: "string", Kind.TEXT: "string", Kind.WORDS: "array", Kind.FLAG: "boolean", Kind.INTEGER: "integer"}


def test_every_route_is_described() -> None:
    paths = document()["paths"]
    assert isinstance(paths, dict)
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    others = {("GET", "/v1/openapi.json"), ("GET", "/v1/operations/{id}"), ("GET", "/v1/events"),
              ("GET", "/metrics")}
    others |= {(method, "/v1/session") for method in ("GET", "POST", "DELETE")}
    assert described == {(route.method, route.path) for route in routes()} | others
    names = [each["operationId"] for methods in paths.values() for each in methods.values()]
    assert len(names) == len(set(names))


def test_arguments_have_their_shapes() -> None:
    for route in routes():
        schema = json.loads(json.dumps(arguments_schema(route)))
        assert schema["additionalProperties"] is False
        for argument in route.verb.arguments:
            assert schema["properties"][argument.name]["type"] == SHAPES[argument.kind]
            assert (argument.name in schema["required"]) is argument.is_required


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(document())
    known = document()["components"]
    assert isinstance(known, dict)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.partition('"')[0] in known["schemas"]


def test_neither_the_daemon_nor_crm_loads_the_http_library() -> None:
    program = (
        "import sys; import haclusterd.entry_points.daemon, haclusterd.entry_points.crm; "
        "sys.exit(any(name.split('.')[0] == 'aiohttp' or name == 'haclusterd.api' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
