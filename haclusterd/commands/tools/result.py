"""Answers of Pacemaker's tools as XML (`--output-as=xml`): what is inside, and how the call ended."""

from collections.abc import Iterable, Iterator, Sequence

from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools.call import NO_SUCH_OBJECT, USAGE, Given, ToolCall, ToolUsageError, output
from haclusterd.formats.cib_xml.elements import element, quoted, readable
from haclusterd.model.records import replace
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.wire.xml_text import escape

_ENDS = {0: "OK", 1: "Error occurred", 3: "Unimplemented", 4: "Insufficient privileges", USAGE: "Incorrect usage",
         68: "Host does not exist", 74: "I/O error occurred", 76: "Protocol violated",
         78: "Invalid configuration", NO_SUCH_OBJECT: "No such object", 110: "Requested item has expired",
         111: "Requested item is not yet in effect", 124: "Timeout occurred"}  # fmt: skip
"""What an exit status is called (`crm_error --exit`)."""
NO_FORMAT = 1
"""Exit status of a call that asks for a form of output that there is not."""
OUTPUT = {"output": "output-as:", "destination": "output-to:", "fancy": "text-fancy"}
"""Options of the tools that print XML as well."""


def wants_xml(given: Given) -> bool:
    """Tell whether the answer is to be XML. Raises ToolUsageError for what is not done."""
    form = given.text("output", "text")
    if form not in ("text", "xml"):
        raise ToolUsageError(f"Error creating output format {form}: Unknown output format", NO_FORMAT)
    return form == "xml"


def document(call: ToolCall, lines: Iterable[str], status: int = 0, error: str = "") -> str:
    """Write an answer as XML."""
    request = quoted(" ".join((call.tool, *call.words)))
    head = [f'<pacemaker-result api-version="2.25" request={request}>', *_indented(lines)]
    end = f'  <status code="{status}" message={quoted(_ENDS.get(status, "Error occurred"))}'
    if error:
        inside = ["    <errors>", f"      <error>{escape(readable(error), {})}</error>", "    </errors>", "  </status>"]
        return "\n".join([*head, f"{end}>", *inside, "</pacemaker-result>", ""])
    return "\n".join([*head, f"{end}/>", "</pacemaker-result>", ""])


def _indented(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines by one step deeper, except those of a text that is quoted as a whole (CDATA)."""
    is_quoted = False
    for line in lines:
        yield line if is_quoted else f"  {line}"
        is_quoted = "]]>" not in line if "<![CDATA[" in line else is_quoted and "]]>" not in line


def listed(title: str, values: Sequence[str], name: str | None = None) -> list[str]:
    """Return a list of values as XML."""
    items = [line for value in values for line in element("item", {"name": name}, text=value)]
    return list(element("list", {"name": title, "count": str(len(values))}, items))


def as_xml(call: ToolCall, outcome: Outcome[ToolOutput]) -> Outcome[ToolOutput]:
    """Return an outcome whose text is what is inside the XML, as XML; a refused change is reported as always."""
    answer = outcome.answer
    if answer is None:
        return outcome
    status = outcome.exit_status or 0
    is_change = bool(outcome.commands or outcome.waits_by_default)
    inside = () if is_change else answer.out.splitlines()
    text = document(call, inside, status, answer.err.removesuffix("\n"))
    return replace(outcome.showing(output(text)), exit_status=outcome.exit_status)
