"""The verbs of `crm alert`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Words

ALERT = Family("alert", "Alerts: recipients, the events they get, and their queues", (
    Verb("alert.list", Permission.READ, "Show alerts, their recipients, and what waits or was dropped", (
        Argument("name", Kind.WORD, "which alert or recipient; left out: all"),
    ), (
        Words(("crm alert list",), aliases=("show", "config")),
    ), cost=Cost.LIGHT, answers=("alerts",)),
    Verb("alert.test", Permission.OPERATE, "Send a test event to recipients, and show their agents' results", (
        Argument("name", Kind.WORD, "which alert or recipient; left out: all"),
    ), (
        Words(("crm alert test", "crm alert test mail", "crm --wait=5min alert test mail"), is_guessed=False),
    ), cost=Cost.LIGHT, answers=("alert_tests",)),
))  # fmt: skip
