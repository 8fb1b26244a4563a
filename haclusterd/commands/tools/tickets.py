"""crm_ticket: tickets, what needs them, and who holds them.

Options and output are those of crm_ticket(8) of Pacemaker 2.1.5. A change goes through the verbs of `crm ticket`; what
would take a ticket away or give it is refused without `--force`, as there.
"""

from collections.abc import Iterable, Iterator

from haclusterd.commands import ticket
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools.call import (
    INSUFFICIENT_PRIVILEGES,
    NO_SUCH_OBJECT,
    Given,
    Tool,
    ToolCall,
    ToolUsageError,
    carry_out,
    not_found,
    printed,
)
from haclusterd.formats.cib_xml.constraint_writer import constraint_lines
from haclusterd.formats.cib_xml.elements import BlockWriter
from haclusterd.formats.cib_xml.status_writer import ticket_lines
from haclusterd.formats.cib_xml.writer import written_at
from haclusterd.model.cluster import TicketState
from haclusterd.model.configuration import TicketConstraint
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.verbs.answers.cluster import ToolOutput

_VERBS = {each.name: each for each in ticket.VERBS}
_CHANGES = ("grant", "revoke", "standby", "activate", "cleanup")
_QUESTIONS = ("info", "details", "raw", "xml", "constraints", "get")
_TIMES = ("last-granted", "expires")
"""Attributes that are seconds since 1970, and shown as dates."""


def tickets(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_ticket: list, grant, revoke, put in standby, activate."""
    action = given.any_of(*_QUESTIONS, *_CHANGES)
    name = given.text("ticket")
    if not action:
        raise ToolUsageError("Must supply a command")
    if not name and action in _CHANGES:
        raise ToolUsageError("Must supply ticket ID with -t")
    state = context.cib.status.tickets.get(name)
    if action == "constraints":
        return _constraints(context, call, name)
    if action == "get":
        return _attribute(state, given) if name else not_found(call, "Must supply ticket ID with -t")
    if name and state is None and (action == "cleanup" or action not in _CHANGES):
        problem = "Could not query ticket XML: No such device or address" if action == "xml" else ""
        return not_found(call, problem or f"No such ticket '{name}'")
    return _changed(context, given, action) if action in _CHANGES else _shown_tickets(context, name, action)


def _shown_tickets(context: Context, name: str, action: str) -> Outcome[ToolOutput]:
    shown = [state for each, state in sorted(context.cib.status.tickets.items()) if name in ("", each)]
    if action == "xml":
        lines = list(ticket_lines({each.id: each for each in shown}))
        alone = [line.removeprefix("  ") for line in lines[1:-1]]
        return printed("".join(f"{line}\n" for line in ("State XML:", "", *(alone if name else lines))))
    if action == "raw":
        return printed("".join(f"{each.id}\n" for each in shown))
    return printed("".join(_lines(shown, has_details=action == "details")))


def _lines(shown: Iterable[TicketState], *, has_details: bool) -> Iterator[str]:
    for state in shown:
        word = "granted" if state.is_granted else "revoked"
        line = f"{state.id}\t{word}{' [standby]' if state.is_standby else '          '}"
        attributes = _attributes(state)
        if has_details:
            line += f" ({', '.join(f'{key}={_shown(key, value)}' for key, value in attributes.items())})"
        elif state.last_granted:
            line += f" last-granted={_shown('last-granted', attributes['last-granted'])}"
        yield f"{line}\n"


def _attributes(state: TicketState) -> dict[str, str]:
    own = {"granted": str(state.is_granted).lower(), "standby": str(state.is_standby).lower()}
    if state.last_granted:
        own["last-granted"] = str(state.last_granted // 1000)
    return {**own, **{key: value for key, value in state.attributes.items() if key != "id"}}


def _shown(name: str, value: str) -> str:
    is_time = name in _TIMES and value.isascii() and value.isdigit() and len(value) <= len("253402300799")
    return f"'{written_at(WallTime(int(value) * 1000))}'" if is_time else value


def _attribute(state: TicketState | None, given: Given) -> Outcome[ToolOutput]:
    found = None if state is None else _attributes(state).get(given.text("get"))
    if found is None and "default" in given:
        found = given.text("default")
    return printed(status=NO_SUCH_OBJECT) if found is None else printed(f"{found}\n")


def _constraints(context: Context, call: ToolCall, name: str) -> Outcome[ToolOutput]:
    constraints = context.cib.configuration.constraints.values()
    found = [each for each in constraints if isinstance(each, TicketConstraint) and name in ("", each.ticket)]
    if not found:
        return not_found(call, "Could not show ticket constraints: No such device or address")
    lines = [line for each in found for line in constraint_lines(each, BlockWriter())]
    if len(found) > 1:
        lines = ["<xpath-query>", *(f"  {line}" for line in lines), "</xpath-query>"]
    return printed("".join(f"{line}\n" for line in ("Constraints XML:", "", *lines)))


_WARNINGS = {
    "grant": "This command cannot help you verify whether '{0}' has been already granted elsewhere.\n"
             "If you really want to grant '{0}' to this site now, ",
    "revoke": "Revoking '{0}' can trigger the specified 'loss-policy'(s) relating to '{0}'.\n\n"
              "You can check that with:\ncrm_ticket --ticket {0} --constraints\n\n"
              "Otherwise before revoking '{0}', you may want to make '{0}' standby with:\n"
              "crm_ticket --ticket {0} --standby\n\nIf you really want to revoke '{0}' from this site now, ",
}  # fmt: skip


def _changed(context: Context, given: Given, action: str) -> Outcome[ToolOutput]:
    name = given.text("ticket")
    state = context.cib.status.tickets.get(name)
    takes_away = action == "cleanup" and state is not None and state.is_granted
    warning = "revoke" if takes_away else action
    if warning in _WARNINGS and "force" not in given:
        text = f"{_WARNINGS[warning].format(name)}and you know what you are doing,\nplease specify --force.\n"
        problem = "crm_ticket: Ticket modification not allowed\n" if action != "cleanup" else ""
        return printed(text, problem, INSUFFICIENT_PRIVILEGES)
    forced = replace(context, is_forced="force" in given or context.is_forced)
    arguments = {"ticket": name, "action": "delete" if action == "cleanup" else action}
    out = f"Cleaned up {name}\n" if action == "cleanup" else ""
    return carry_out(forced, _VERBS["ticket.change"], arguments, out)


TOOLS = {
    "crm_ticket": Tool(tickets, {
        "info": "l info", "details": "L details", "raw": "w raw", "xml": "q query-xml", "constraints": "c constraints",
        "ticket": "t: ticket:", "grant": "g grant", "revoke": "r revoke", "standby": "s standby",
        "activate": "a activate", "get": "G: get-attr:", "set": "S: set-attr:", "delete": "D: delete-attr:",
        "cleanup": "C cleanup", "value": "v: attr-value:", "default": "d: default:", "force": "f force",
        "quiet": "Q quiet", "block": "n: set-name:", "pair": "i: nvpair:",
    }, frozenset(_CHANGES), refused=dict.fromkeys(
        ("set", "delete", "block", "pair"), "a ticket's attributes are what is granted, and when: crm ticket"
    )),
}  # fmt: skip
