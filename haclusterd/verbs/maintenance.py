"""The verbs of `crm maintenance`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Family, Permission, Verb
from haclusterd.verbs.words import Completes, Words

MAINTENANCE = Family("maintenance", "Maintenance: nothing is started, stopped or watched meanwhile", (
    Verb("maintenance", Permission.OPERATE, "Turn maintenance mode on or off, for all or for resources", (
        Argument("state", Kind.WORD, "on or off", is_required=True, choices=("on", "off")),
        Argument("resources", Kind.WORDS, "which resources; left out: the whole cluster", completes=Completes.RESOURCE),
    ), (
        Words(("crm maintenance on", "crm maintenance on web db"), typed="maintenance on",
              help="Stop managing the whole cluster, or some resources", fixed={"state": "on"}, is_guessed=False),
        Words(("crm maintenance off", "crm maintenance off web db"), typed="maintenance off",
              help="End the maintenance", fixed={"state": "off"}),
    ), answers=("change",)),
))  # fmt: skip
