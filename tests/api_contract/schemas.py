"""An answer of the REST interface, held against its OpenAPI document."""

from typing import Any

from jsonschema import Draft202012Validator


def objection(document: Any, method: str, path: str, answer: Any) -> str:
    """Return what of an answer is not as the document says; empty when all is."""
    responses = document["paths"][path][method.lower()]["responses"]
    described = responses.get(str(answer.status))
    if described is None:
        return f"status {answer.status} is not in the document"
    kind = answer.headers["Content-Type"].partition(";")[0]
    if kind not in described["content"]:
        return f"{kind} is not in the document for {answer.status}"
    missing = [name for name in described.get("headers", {}) if name not in answer.headers]
    schema = {**described["content"][kind]["schema"], "components": document["components"]}
    faults = [each.message for each in Draft202012Validator(schema).iter_errors(answer.json)]
    return "; ".join([*(f"header {name} is missing" for name in missing), *faults])[:500]
