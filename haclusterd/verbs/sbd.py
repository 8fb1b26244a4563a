"""The verbs of `crm sbd`: what sbd does for Pacemaker, done here by the nodes' watchdogs and by a fence device."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Family, Permission, Verb
from haclusterd.verbs.words import Words

SBD = Family("sbd", "Watchdogs and the shared disk, with crmsh's commands", (
    Verb("sbd.watchdog", Permission.ADMINISTER, "Count on the watchdogs of nodes as fencing, or no longer", (
        Argument("state", Kind.WORD, "on or off", is_required=True, choices=("on", "off")),
    ), (
        Words(("crm sbd enable --dry-run",), typed="sbd enable", help="Count on the watchdogs of nodes as fencing",
              fixed={"state": "on"}, is_guessed=False),
        Words(("crm sbd disable",), typed="sbd disable", help="Do not count on the watchdogs of nodes",
              fixed={"state": "off"}, is_guessed=False),
        Words(("crm sbd purge",), typed="sbd purge", help="The same as `disable`: there is nothing else to purge",
              fixed={"state": "off"}, is_guessed=False),
    ), answers=("change",)),
    Verb("sbd.device", Permission.ADMINISTER, "Add disks to the fence device of sbd, or take them away", (
        Argument("action", Kind.WORD, "what to do", is_required=True, choices=("add", "remove", "show")),
        Argument("disks", Kind.WORDS, "which"),
    ), (
        Words(("crm sbd device show", "crm sbd device add /dev/disk/by-id/third"), is_guessed=False),
    ), answers=("setting", "change")),
))  # fmt: skip
