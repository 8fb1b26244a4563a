"""The verbs of `crm history`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Completes, Option, OptionValue, Parameter, Taken, Takes, Words

LIMIT_MAX = 10_000
"""Of events and versions in one answer."""
FOLLOW_LIMIT = 256
LONGEST_WAIT_S = 20
"""Less than a client listens to silence."""

TRANSITION_ACTIONS = ("log", "tags", "save", "showdot")
_WHICH = "NUMBER; -1: the newest, -2: the one before; live; TERM.NUMBER: of that transition"
_STATUS = Parameter("status", is_optional=True, completes=Completes.CHOICE, choices=("status",),
                    help="of the cluster then, in the place of the configuration")
_NAMES = "names, or regular expressions for whole names"
_LIMIT = Argument("limit", Kind.INTEGER, "how many, newest first", minimum=1, maximum=LIMIT_MAX, flag="--limit")

HISTORY = Family("history", "What happened", (
    Verb("history.events", Permission.READ, "Show what happened, newest last", (
        Argument("node", Kind.WORD, "only of this node", flag="--node", completes=Completes.NODE),
        Argument("resource", Kind.WORD, "only of this resource", flag="--resource", completes=Completes.RESOURCE),
        Argument("nodes", Kind.WORDS, "only of these nodes", is_typed=False, completes=Completes.NODE),
        Argument("resources", Kind.WORDS, "only of these resources and what is in them", is_typed=False,
                 completes=Completes.RESOURCE),
        Argument("kinds", Kind.WORDS, "only this kind, as node-lost", flag="--kind", completes=Completes.KIND),
        Argument("since", Kind.WORD, "how far back (10min), or from when (ISO 8601)", flag="--since"),
        Argument("until", Kind.WORD, "the same for the end", flag="--until"),
        _LIMIT,
    ), (
        Words(("crm history events --since 10min", "crm history events --resource web",
               "crm history events --follow --limit 5",
               "crm history events --since 2026-06-01T12:00:00Z --until 2026-06-01T13:00:00Z --limit 500",
               "crm -o json history events --kind node-lost --kind node-fenced"),
              takes=("node", "resource", "since", "until", "kinds", "limit",
                     Option("--follow", "follow", "continue with what happens from now on, until it is interrupted"))),
        Words(("crm history resource web", "crm history resource web db --kind operation-failed",
               "crm history resource 'd.*'"),
              typed="history resource", help="Show what happened to resources and to what is in them",
              takes=(Taken("resources", is_required=True, help=_NAMES), "since", "until", "kinds", "limit")),
        Words(("crm history node n2 --since 1h", "crm history node n1 n2"), typed="history node",
              help="Show what happened on nodes",
              takes=(Taken("nodes", is_required=True, help=_NAMES), "since", "until", "kinds", "limit")),
        Words(("crm history log", "crm history log n2 --since 1h", "crm history log n1 n2"), typed="history log",
              help="Show what happened, on some nodes or all",
              takes=(Taken("nodes", help=f"{_NAMES}; left out: all"), "since", "until", "kinds", "limit")),
        Words(("crm report web.tar.gz", "crm report web.tar.gz --since 2h", "crm report -f 2h -t 1h web.tar.gz"),
              typed="report", help="Collect logs, state and history for support in one file",
              takes=(Parameter("target", is_optional=True, completes=Completes.FILE,
                               help="the file, of which .tar.gz may be left out"),
                     Taken("since", help="events and journal since then: 12h, or ISO 8601"), "until",
                     Option("-f", "since", "the same as --since", OptionValue.TEXT),
                     Option("-t", "until", "the same as --until", OptionValue.TEXT))),
    ), cost=Cost.LONG, answers=("events",)),
    Verb("history.transition", Permission.READ, "Show what a transition did, and why", (
        Argument("transition", Kind.WORD,
                 "TERM.NUMBER, or the newest of that NUMBER; -1: the newest, -2: the one before; left out: the newest",
                 completes=Completes.TRANSITION),
    ), (
        Words(("crm history transition", "crm history transition 4.17", "crm history transition -2",
               "crm history transition log -2", "crm history transition tags",
               "crm history transition save 4.17 before-the-outage", "crm history transition showdot"),
              takes=(Parameter("action", is_optional=True, completes=Completes.CHOICE, choices=TRANSITION_ACTIONS,
                               help="show what happened meanwhile (log), or the kinds of that (tags); "
                                    "draw it (showdot); make a shadow CIB of the state at its beginning (save)"),
                     "transition",
                     Parameter("words", Takes.MANY, is_optional=True,
                               help="name of the shadow CIB; nograph, actions, v: change nothing here"))),
        Words(("crm history latest",), typed="history latest", help="Show what the newest transition did, and why",
              takes=()),
    ), cost=Cost.LONG, answers=("transition",)),
    Verb("history.transitions", Permission.READ, "List transitions, newest last", (
        Argument("chosen", Kind.WORDS, "which: TERM.NUMBER, NUMBER, or FROM:TO; v changes nothing; left out: all",
                 completes=Completes.TRANSITION),
        Argument("limit", Kind.INTEGER, "how many, newest first", minimum=1, maximum=1000, flag="--limit"),
    ), (
        Words(("crm history transitions", "crm history transitions --limit 5", "crm history peinputs 4.17",
               "crm history peinputs v"), aliases=("peinputs",)),
    ), cost=Cost.LONG, answers=("transitions",)),
    Verb("history.info", Permission.READ, "Show which time, nodes and resources the history covers", (), (
        Words(("crm history info",)),
    ), cost=Cost.LONG, answers=("history_info",)),
    Verb("history.config", Permission.READ, "List the versions of the configuration", (
        Argument("author", Kind.WORD, "only by this author", flag="--author"),
        _LIMIT,
    ), (
        Words(("crm history config", "crm history config --author root@n1 --limit 5")),
    ), cost=Cost.LONG, answers=("versions",)),
    Verb("history.show", Permission.READ, "Show a version of the configuration", (
        Argument("version", Kind.INTEGER, "which version; -1: the newest, -2: the one before; 0: the present one",
                 is_required=True, minimum=-LIMIT_MAX, completes=Completes.VERSION),
        Argument("secrets", Kind.FLAG, "do not hide secrets", flag="--show-secrets"),
    ), (
        Words(("crm history show 12", "crm history show -2", "crm history show 4.17", "crm history show 4.17 status"),
              takes=(Taken("version", is_number=False, help=_WHICH), _STATUS, "secrets")),
    ), cost=Cost.LONG, answers=("configuration",)),
    Verb("history.diff", Permission.READ, "Show what differs between two versions, or since one", (
        Argument("old", Kind.INTEGER, "the older version; -1: the newest, -2: the one before; 0: the present one",
                 is_required=True, minimum=-LIMIT_MAX, completes=Completes.VERSION),
        Argument("new", Kind.INTEGER, "the newer version; left out: the present one", minimum=-LIMIT_MAX,
                 completes=Completes.VERSION),
    ), (
        Words(("crm history diff 12 13", "crm history diff 12", "crm history diff -2 -1", "crm history diff 4.17 live",
               "crm history diff 4.17 live status"), aliases=("wdiff",),
              takes=(Taken("old", is_number=False, help=_WHICH), Taken("new", is_number=False, help="the same"),
                     Parameter("forms", Takes.MANY, is_optional=True, completes=Completes.CHOICE,
                               choices=("status", "html"),
                               help="status: of the cluster in the place of the configuration; html: as a page"))),
    ), cost=Cost.LONG, answers=("difference",)),
    Verb("history.status", Permission.READ, "Show the state of the cluster as it was", (
        Argument("at", Kind.WORD, "so long ago (10min), or a time (ISO 8601); left out: now"),
    ), cost=Cost.LONG, answers=("status",)),
    Verb("history.check", Permission.READ, "Compare the histories of all nodes; fails when they differ", (), (
        Words(("crm history check", "crm -o json history check")),
    ), cost=Cost.LONG, answers=("history_check",)),
    Verb("history.follow", Permission.READ, "Show events from a position in the history on", (
        Argument("after", Kind.WORD, "the position: `next` or `id` of an earlier answer of any node; 0: the beginning"),
        Argument("since", Kind.WORD, "without a position: how far back, or from when; left out: from now on"),
        Argument("node", Kind.WORD, "only of this node"),
        Argument("resource", Kind.WORD, "only of this resource and what is in it"),
        Argument("kinds", Kind.WORDS, "only of these kinds"),
        Argument("limit", Kind.INTEGER, "how many at most", minimum=1, maximum=FOLLOW_LIMIT),
        Argument("wait_s", Kind.INTEGER, "how many seconds to wait for something to happen", maximum=LONGEST_WAIT_S),
    ), cost=Cost.LIGHT, waits=True, answers=("followed",)),
))  # fmt: skip
