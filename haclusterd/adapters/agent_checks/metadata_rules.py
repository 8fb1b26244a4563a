"""The defects of an agent's meta-data, by the rules of OCF's schema and by what administrators need of it
(OCF Resource Agent API 1.1, "Meta-data").
"""

import re
from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from haclusterd.adapters.agent_checks.finding import Finding, error, note, warning
from haclusterd.adapters.agents.metadata import read_duration_ms

CONTENT_TYPES = frozenset({"string", "integer", "boolean", "second", "time", "select"})
"""The content types of OCF's schema and DTD, together."""
BOOLEANS = frozenset({"0", "1", "true", "false", "yes", "no", "on", "off"})
MANDATORY = ("start", "stop", "monitor", "meta-data")
KNOWN_ACTIONS = frozenset({
    "start", "stop", "monitor", "status", "meta-data", "validate-all", "reload", "reload-agent", "promote", "demote",
    "notify", "migrate_to", "migrate_from", "recover", "methods", "usage", "help",
})  # fmt: skip
PAIRS = (("promote", "demote"), ("demote", "promote"), ("migrate_to", "migrate_from"), ("migrate_from", "migrate_to"))
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
SECRET = re.compile(r"passw|secret|token|credential|api_?key", re.IGNORECASE)
NO_SECRET = re.compile(r"file|path|dir|name\Z|timeout|ttl|_env\Z|length|opts", re.IGNORECASE)


def metadata_findings(root: Element, type_: str) -> Iterator[Finding]:
    """Yield the defects of meta-data; `type_` is the name of the agent's file."""
    if root.get("name") != type_:
        yield warning("name", f"its meta-data is of {root.get('name', '')!r}, its file is {type_!r}")
    if not (root.findtext("./version") or "").strip():
        yield warning("no-version", "<version>, of the API that it obeys (1.1), is missing: it counts as 1.0")
    for child in ("longdesc", "shortdesc"):
        if not (root.findtext(f"./{child}") or root.get(child) or "").strip():
            yield warning("no-description", f"{child} of the agent is missing")
    parameters = root.findall("./parameters/parameter")
    yield from _twice("parameter", [each.get("name", "") for each in parameters])
    for element in parameters:
        yield from _parameter(element)
    yield from _actions(root, root.findall("./actions/action"))


def _twice(what: str, names: list[str]) -> Iterator[Finding]:
    for name, count in Counter(names).items():
        if count > 1:
            yield error("twice", f"{what} {name} is there {count} times")


def _parameter(element: Element) -> Iterator[Finding]:
    name = element.get("name", "")
    if not NAME.match(name):
        yield error("parameter-name", f"parameter {name!r}: no environment variable can have such a name")
        return
    for flag in ("required", "unique", "reloadable", "private"):
        if element.get(flag, "0") not in BOOLEANS:
            yield warning("schema", f"parameter {name}: {flag}={element.get(flag)!r} is neither 0 nor 1")
    for child in ("longdesc", "shortdesc"):
        if not (element.findtext(f"./{child}") or "").strip():
            yield warning("no-description", f"parameter {name}: {child} is missing")
    is_secret = SECRET.search(name) and not NO_SECRET.search(name)
    if is_secret and element.get("private", "0") in ("0", "false", "no", "off"):
        yield warning("not-private", f'parameter {name} looks like a secret and is not private="1"')
    content = element.find("content")
    if content is None:
        yield error("schema", f"parameter {name}: <content> is missing")
        return
    yield from _content(name, content, is_required=element.get("required", "0") in ("1", "true", "yes", "on"))


def _content(name: str, content: Element, *, is_required: bool) -> Iterator[Finding]:
    kind, default = content.get("type", ""), content.get("default")
    if kind not in CONTENT_TYPES:
        yield warning("schema", f"parameter {name}: type {kind!r} is none of {', '.join(sorted(CONTENT_TYPES))}")
    options = [each.get("value", "") for each in content.iterfind("./option")]
    if kind == "select" and not options:
        yield error("schema", f"parameter {name}: a select without <option>")
    if is_required and default:
        yield warning("required-with-default", f"parameter {name} is required and has the default {default!r}")
    if not is_required and default is None and kind != "string":
        yield note("no-default", f"parameter {name} ({kind}) is not required and has no default")
    if not default:
        return
    is_wrong = {
        "integer": not re.fullmatch(r"[+-]?\d+|[+-]?INFINITY", default),
        "boolean": default.lower() not in BOOLEANS,
        "select": bool(options) and default not in options,
        "second": not default.isdecimal(),
        "time": read_duration_ms(default) is None,
    }
    if is_wrong.get(kind, False):
        yield error("default", f"parameter {name}: its default {default!r} is no {kind}")


def _actions(root: Element, actions: list[Element]) -> Iterator[Finding]:
    names = [each.get("name", "") for each in actions]
    for name in MANDATORY:
        if name not in names:
            yield error("no-action", f"action {name} is not in its meta-data")
    if "validate-all" not in names:
        yield warning("no-action", "action validate-all is not in its meta-data")
    for one, other in PAIRS:
        if one in names and other not in names:
            yield error("no-action", f"it has {one} and no {other}")
    for name in sorted({*names} - KNOWN_ACTIONS):
        yield warning("unknown-action", f"no cluster asks for the action {name!r}")
    yield from _twice("action", [_identity(each) for each in actions])
    for each in actions:
        yield from _action(each)
    yield from _reload(root, names)
    roles = {each.get("role") for each in actions if each.get("name") == "monitor"}
    if "promote" in names and not roles & {"Promoted", "Master"}:
        yield warning("no-role", "it has promote and advises no monitor with role=Promoted")


def _identity(action: Element) -> str:
    parts = (action.get("name", ""), action.get("role", ""), f"depth {action.get('depth', '0')}")
    return " ".join(part for part in parts if part)


def _action(element: Element) -> Iterator[Finding]:
    name, timeout = element.get("name", ""), element.get("timeout")
    if timeout is None:
        yield error("no-timeout", f"action {_identity(element)} has no timeout")
    elif not read_duration_ms(timeout):
        yield error("no-timeout", f"action {_identity(element)}: timeout {timeout!r} is no span of time")
    if name in ("monitor", "status") and read_duration_ms(element.get("interval")) is None:
        yield warning("no-interval", f"action {_identity(element)} has no interval")
    if element.get("role") in ("Master", "Slave"):
        yield note("older-word", f"action {_identity(element)}: OCF 1.1 says Promoted and Unpromoted")


def _reload(root: Element, names: list[str]) -> Iterator[Finding]:
    reloadable = [each.get("name") for each in root.iterfind("./parameters/parameter") if each.get("reloadable") == "1"]
    if reloadable and "reload-agent" not in names:
        yield error("reload", f"parameter {reloadable[0]} is reloadable, and there is no action reload-agent")
    if "reload-agent" in names and not reloadable:
        yield warning("reload", "it has reload-agent, and no parameter is reloadable: it is never asked for it")
