"""What an agent says of itself, as its meta-data in XML (OCF Resource Agent API 1.1, "Metadata")."""

from collections.abc import Iterator

from haclusterd.formats.cib_xml.elements import element, readable
from haclusterd.model.agents import AgentFacts, ParameterFacts
from haclusterd.wire.xml_text import escape


def agent_as_xml(name: str, facts: AgentFacts) -> Iterator[str]:
    """Yield the lines of an agent's meta-data; long descriptions are not among its facts."""
    parameters = (line for each, known in facts.parameters.items() for line in _parameter(each, known))
    actions = (line for action in facts.action_timeouts_ms for line in element("action", {"name": action}))
    yield from element("resource-agent", {"name": name}, [
        *_text("version", facts.version), *_text("shortdesc", facts.shortdesc),
        *element("parameters", {}, parameters), *element("actions", {}, actions),
    ])  # fmt: skip


def _parameter(name: str, facts: ParameterFacts) -> Iterator[str]:
    options = (line for value in facts.options for line in element("option", {"value": value}))
    attributes = {
        "name": name, "unique": str(int(facts.is_unique)), "required": str(int(facts.is_required)),
        "obsoletes": facts.obsoletes or None,
    }  # fmt: skip
    return element("parameter", attributes, [
        *element("content", {"type": facts.content_type, "default": facts.default}, options),
        *_text("shortdesc", facts.shortdesc),
    ])  # fmt: skip


def _text(tag: str, text: str) -> Iterator[str]:
    if text:
        yield f"<{tag}>{escape(readable(text), {})}</{tag}>"
