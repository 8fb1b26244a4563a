"""Meta-data of resource agents and fence agents: XML from other programs, parsed defensively.

Agents write warnings before the XML, a DOCTYPE, no version; all that is tolerated. An entity declaration is not: no
agent needs one, and entity expansion can fill the memory. Nothing outside the text is ever fetched.
"""

import re
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from haclusterd.model.agents import ParameterFacts
from haclusterd.model.ids import AgentReference
from haclusterd.ports.agents import ActionMetadata, AgentMetadata
from haclusterd.ports.fencing import FenceMetadata
from haclusterd.verbs.answers.agents import AgentDescription, AgentParameter

UNIT_MS = {"": 1000, "ms": 1, "msec": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}
DURATION = re.compile(r"\s*(\d+)\s*([a-z]*)\s*\Z")
TRUE = frozenset({"1", "true", "yes", "on", "required"})
SHOWN = 60
"""Characters of a faulty text that a message shows."""


class MetadataError(ValueError):
    """The text is not an agent's meta-data; the message says why."""


def read_agent_metadata(text: str, agent: AgentReference) -> AgentMetadata:
    """Parse a resource agent's meta-data (OCF Resource Agent API 1.1). Raises MetadataError."""
    root = read_root(text)
    parameters = {
        element.get("name", ""): _parameter(element) for element in root.iterfind("./parameters/parameter")
    }
    actions: dict[str, ActionMetadata] = {}
    for element in root.iterfind("./actions/action"):
        # Several monitors may be advised, for depths and roles: the first one gives the defaults.
        actions.setdefault(element.get("name", ""), _action(element))
    return AgentMetadata(
        agent=agent,
        version=(root.findtext("./version") or "1.0").strip(),
        shortdesc=_text(root, "shortdesc") or root.get("shortdesc", ""),
        longdesc=_text(root, "longdesc"),
        parameters={name: parameter for name, parameter in parameters.items() if name},
        actions={name: action for name, action in actions.items() if name},
    )


def read_description(text: str, agent: str, file: str) -> AgentDescription:
    """Parse everything that an agent, whose program is `file`, tells users of itself. Raises MetadataError."""
    root = read_root(text)
    return AgentDescription(
        agent=agent,
        file=file,
        shortdesc=_text(root, "shortdesc") or root.get("shortdesc", ""),
        longdesc=_paragraphs(root),
        parameters=tuple(
            AgentParameter(
                name=element.get("name", ""), type=facts.content_type, default=facts.default,
                is_required=facts.is_required, is_unique=facts.is_unique, options=facts.options,
                shortdesc=facts.shortdesc, longdesc=_paragraphs(element),
            )
            for element in root.iterfind("./parameters/parameter")
            for facts in (_parameter(element),)
        ),
        actions=tuple(dict(element.items()) for element in root.iterfind("./actions/action")),
    )  # fmt: skip


def _paragraphs(element: Element) -> str:
    """Return a long description as it is written, without the indentation of the XML around it."""
    return "\n".join(line.strip() for line in (element.findtext("./longdesc") or "").strip().splitlines())


def read_fence_metadata(text: str, agent: str) -> FenceMetadata:
    """Parse a fence agent's metadata (FenceAgentAPI). Raises MetadataError."""
    root = read_root(text)
    actions = list(root.iterfind("./actions/action"))
    parameters = frozenset(element.get("name", "") for element in root.iterfind("./parameters/parameter"))
    return FenceMetadata(
        agent=agent,
        actions=frozenset(element.get("name", "") for element in actions),
        parameters=parameters,
        host_argument="plug" if "plug" in parameters else "port" if "port" in parameters else None,
    )


def read_duration_ms(text: str | None) -> int | None:
    """Return `20`, `20s`, `1min`, `500ms` in ms; a plain number is seconds. None when it is none of these."""
    match = DURATION.match((text or "").lower())
    if match is None or match[2] not in UNIT_MS:
        return None
    return int(match[1]) * UNIT_MS[match[2]]


def read_root(text: str, tag: str = "resource-agent") -> Element:
    """Parse meta-data as XML, whatever is printed around it; `tag`: its root. Raises MetadataError."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = _refuse_entity
    begin = text.find("<")
    if begin < 0:
        printed = text.strip()
        raise MetadataError(f"it printed no XML, but {printed[:SHOWN]!r}" if printed else "it printed nothing")
    end = text.rfind(">") + 1
    whole = text[begin : end if end > begin else None]
    try:
        parser.Parse(whole, True)  # noqa: FBT003 (it takes no names)
        root = builder.close()
    except expat.ExpatError as error:
        line = (whole.splitlines() or [""])[min(error.lineno, len(whole.splitlines())) - 1].strip()
        raise MetadataError(f"not XML: {expat.ErrorString(error.code)}, at {line[:SHOWN]!r}") from error
    except AssertionError as error:
        raise MetadataError(f"not XML: {error}") from error
    if root.tag != tag:
        raise MetadataError(f"the root element is <{root.tag}>, not <{tag}>")
    return root


def _refuse_entity(*_declaration: object) -> None:
    raise MetadataError("it declares entities")


def _parameter(element: Element) -> ParameterFacts:
    content = element.find("content")
    return ParameterFacts(
        is_required=_is_true(element.get("required")),
        is_unique=_is_true(element.get("unique")) or bool(element.get("unique-group")),
        is_reloadable=_is_true(element.get("reloadable")),
        is_private=_is_true(element.get("private")),
        content_type="string" if content is None else content.get("type", "string"),
        default=None if content is None else content.get("default"),
        shortdesc=_text(element, "shortdesc"),
        options=tuple(option.get("value", "") for option in element.iterfind("./content/option")),
        obsoletes=element.get("obsoletes", ""),
    )


def _action(element: Element) -> ActionMetadata:
    known = {"name", "timeout", "interval"}
    return ActionMetadata(
        name=element.get("name", ""),
        timeout_ms=read_duration_ms(element.get("timeout")),
        interval_ms=read_duration_ms(element.get("interval")),
        attributes={name: value for name, value in sorted(element.items()) if name not in known},
    )


def _text(element: Element, child: str) -> str:
    return " ".join((element.findtext(f"./{child}") or "").split())


def _is_true(value: str | None) -> bool:
    return (value or "").lower() in TRUE
