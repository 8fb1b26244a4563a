"""The verbs of `crm ticket`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Completes, Words

TICKET = Family("ticket", "Tickets: rights that one of several clusters holds at a time", (
    Verb("ticket.show", Permission.READ, "Show tickets and what needs them", (
        Argument("ticket", Kind.WORD, "which ticket; left out: all", completes=Completes.TICKET),
    ), (
        Words(("crm ticket show",), aliases=("list", "status")),
    ), cost=Cost.LIGHT, answers=("tickets",)),
    Verb("ticket.change", Permission.OPERATE, "Grant a ticket to this cluster, or take it away", (
        Argument("ticket", Kind.WORD, "which ticket", is_required=True, completes=Completes.TICKET),
        Argument("action", Kind.WORD, "what to do", is_required=True,
                 choices=("grant", "revoke", "standby", "activate", "delete")),
    ), (
        Words(("crm ticket grant paris",), typed="ticket grant",
              help="Give this cluster a ticket; be sure that no other cluster holds it", fixed={"action": "grant"},
              is_guessed=False),
        Words(("crm ticket revoke paris",), typed="ticket revoke", help="Take a ticket away; what needs it loses it",
              fixed={"action": "revoke"}, is_guessed=False),
        Words(("crm ticket standby paris",), typed="ticket standby",
              help="Stop what needs a ticket, and keep the ticket", fixed={"action": "standby"}, is_guessed=False),
        Words(("crm ticket activate paris",), typed="ticket activate", help="End the standby of a ticket",
              fixed={"action": "activate"}),
        Words(("crm ticket delete paris",), typed="ticket delete", help="Forget a ticket", fixed={"action": "delete"},
              is_guessed=False),
    )),
), aliases=("site",))  # fmt: skip
