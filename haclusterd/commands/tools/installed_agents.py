"""crm_resource's questions about agents: which are installed on the node that answers, and what one says of itself."""

from collections.abc import Iterable, Sequence

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools.call import Given, ToolCall, not_found, printed
from haclusterd.commands.tools.result import listed
from haclusterd.formats.cib_xml.agent_writer import agent_as_xml
from haclusterd.formats.cib_xml.elements import Attributes, element
from haclusterd.verbs.answers.cluster import ToolOutput

OPTIONS = {
    "standards": "list-standards", "providers": "list-ocf-providers", "agents": "list-agents:",
    "alternatives": "list-ocf-alternatives:", "metadata": "show-metadata:",
}  # fmt: skip
QUESTIONS = tuple(OPTIONS)
_STANDARDS = ("ocf", "lsb", "service", "systemd", "stonith")


def answer(context: Context, call: ToolCall, given: Given, question: str, *, is_xml: bool) -> Outcome[ToolOutput]:
    """Answer one of the questions."""
    if question == "metadata":
        return _metadata(context, call, given.text("metadata"))
    names = [tuple(name.split(":")) for name in context.agents or ()]
    if question == "standards":
        known = {name[0] for name in names}
        found = [each for each in _STANDARDS if each in known]
        return _printed(found, listed("standards", found) if is_xml else None)
    if question in ("providers", "alternatives"):
        agent = given.text("alternatives")
        found = sorted({name[1] for name in names if name[0] == "ocf" and agent in ("", name[-1])})
        if agent and not found:
            problem = f"No OCF providers found for {agent}\nError performing operation: No such object"
            return not_found(call, problem)
        about: Attributes = {"for": agent} if agent else {"standard": "ocf"}
        return _printed(found, _element("providers", about, "provider", found) if is_xml else None)
    standard, _, provider = given.text("agents").partition(":")
    found = sorted({name[-1] for name in names if name[0] == standard and (not provider or name[1:-1] == (provider,))})
    if not found:
        which = f"standard '{standard}'" + (f" and provider '{provider}'" if provider else "")
        problem = f"No agents found for {which}\nError performing operation: Error occurred"
        return printed(err=f"{call.tool}: {problem}\n", status=1)
    about = {"standard": standard, "provider": provider or None}
    return _printed(found, _element("agents", about, "agent", found) if is_xml else None)


def _printed(found: Iterable[str], xml: Iterable[str] | None) -> Outcome[ToolOutput]:
    return printed("".join(f"{line}\n" for line in (found if xml is None else xml)))


def _element(tag: str, about: Attributes, item: str, values: Sequence[str]) -> list[str]:
    return list(element(tag, about, [line for each in values for line in element(item, {}, text=each)]))


def _metadata(context: Context, call: ToolCall, name: str) -> Outcome[ToolOutput]:
    """Show what an agent says of itself, as far as a configuration is judged by it."""
    facts = (context.agents or {}).get(name)
    if facts is None or facts.is_unreadable:
        is_name = name.partition(":")[0] in _STANDARDS and ":" in name
        problem = (f"Metadata query for {name} failed: No such device or address" if is_name else
                   f"'{name}' is not a valid agent specification")  # fmt: skip
        return not_found(call, f"{problem}\nError performing operation: No such object")
    lines = agent_as_xml(name.rpartition(":")[2], facts)
    return printed('<?xml version="1.0"?>\n' + "".join(f"{line}\n" for line in lines))
