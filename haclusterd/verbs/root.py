"""The verbs of no level: the state of the whole, and what else is asked without naming one."""

from collections.abc import Mapping

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Completes, Option, OptionValue, Parameter, Takes, Words

LONGEST_CIB = 256 * 1024 * 1024
"""In characters."""

STATUS_FORMS: Mapping[str, tuple[str, ...]] = {
    "simple": (), "full": ("-n", "-r", "-A", "-f", "-c", "-m", "-L", "-o", "-t"), "bynode": ("-n",),
    "inactive": ("-r",), "ops": ("-o",), "timing": ("-t",), "failcounts": ("-f",), "verbose": ("-V",),
    "quiet": ("-Q",), "tickets": ("-c",), "noheaders": ("-D",), "detail": ("-R",), "brief": ("-b",),
    "xml": ("--output-as=xml",),
}  # fmt: skip
"""Words after `crm status`, as crmsh has them, with the options of crm_mon that they stand for."""

ROOT = Family("", "", (
    Verb("status", Permission.READ, "Show the state of the cluster; the first line is a verdict", (
        Argument("form", Kind.WORD, "`simple`: one line, and 0, 1 or 2 for monitoring", choices=("simple",)),
    ), (
        Words(("crm status", "crm -o json status", "crm status simple", "crm status bynode inactive",
               "crm -o xml status"),
              takes=(Parameter("forms", Takes.MANY, is_optional=True, completes=Completes.CHOICE,
                               choices=tuple(STATUS_FORMS),
                               help="simple: a line, and 0, 1 or 2 for monitoring; as crm_mon: "
                                    f"{', '.join(name for name in STATUS_FORMS if name != 'simple')}"),)),
        Words(("crm cluster status",), typed="cluster status", help="Show the state of the cluster", takes=()),
        Words(("crm cluster health",), typed="cluster health",
              help="Say in a line, and by the exit status, how the cluster is", fixed={"form": "simple"}),
    ), answers=("status", "verdict")),
    Verb("simulate", Permission.READ, "Show what the cluster would do, changing nothing", (
        Argument("text", Kind.TEXT, "a CIB of Pacemaker, as XML; left out: this cluster's own", longest=LONGEST_CIB),
        Argument("source", Kind.WORD, "what to call the text in messages", is_typed=False),
        Argument("pending", Kind.TEXT, "statements that are not committed, to be applied first"),
        Argument("date", Kind.WORD, "plan for this time (ISO 8601)", flag="--date"),
        Argument("node_down", Kind.WORDS, "suppose that this node died", flag="--node-down", completes=Completes.NODE),
        Argument("node_up", Kind.WORDS, "suppose that this node is there", flag="--node-up", completes=Completes.NODE),
        Argument("standby", Kind.WORDS, "suppose that this node is in standby", flag="--standby",
                 completes=Completes.NODE),
        Argument("op_fail", Kind.WORDS, "suppose that an action failed, as web:monitor:10s@n1=7", flag="--op-fail"),
        Argument("ticket", Kind.WORDS, "a ticket is granted, revoked, standby, active", flag="--ticket"),
        Argument("set", Kind.WORDS, "suppose that a property has this value: NAME=VALUE", flag="--set"),
        Argument("quorum", Kind.WORD, "suppose that there is a quorum, or none", choices=("present", "lost"),
                 flag="--quorum"),
    ), (
        Words(("crm simulate --node-down n1", "crm simulate --cib cib.xml --op-fail web:monitor:10s@n1=7",
               "crm simulate --cib cib.xml --format json"),
              takes=(Option("--cib", "cib", "plan for this CIB of Pacemaker (XML)", OptionValue.TEXT, Completes.FILE,
                            repeats=True), "date",
                     Option("--format", "format", "how to show it", OptionValue.TEXT, Completes.CHOICE,
                            ("text", "json", "dot")), "node_down", "node_up", "standby", "op_fail", "ticket", "set",
                     "quorum")),
        Words(("crm configure simulate", "crm configure simulate actions"), typed="configure simulate",
              help="Show what the cluster would do with the waiting changes",
              takes=(Parameter("words", Takes.MANY, is_optional=True),), aliases=("ptest",)),
    ), cost=Cost.LONG, answers=("simulate",)),
    Verb("availability", Permission.READ, "Show how available services were, and why they were not", (
        Argument("resource", Kind.WORD, "only this resource and what is in it; left out: all",
                 completes=Completes.RESOURCE),
        Argument("since", Kind.WORD, "how far back (30d), or from when (ISO 8601); left out: all", flag="--since"),
        Argument("csv", Kind.FLAG, "as comma-separated values", flag="--csv"),
    ), (
        Words(("crm availability", "crm availability web --since 7d", "crm availability --since 24h --csv")),
    ), cost=Cost.LONG, answers=("availability",)),
    Verb("metrics", Permission.READ, "Show the metrics of this node", answers=("metrics",)),
    Verb("tool.run", Permission.OPERATE, "Answer a call of one of Pacemaker's tools", (
        Argument("tool", Kind.WORD, "which tool", is_required=True,
                 choices=("attrd_updater", "cibadmin", "crm_attribute", "crm_diff", "crm_failcount", "crm_master",
                          "crm_mon", "crm_node", "crm_resource", "crm_rule", "crm_shadow", "crm_simulate",
                          "crm_standby", "crm_ticket", "crm_verify", "crmadmin", "iso8601", "pacemakerd",
                          "stonith_admin")),
        Argument("words", Kind.WORDS, "its options, word by word"),
        Argument("instance", Kind.WORD, "the resource of the agent that calls (OCF_RESOURCE_INSTANCE)"),
        Argument("node", Kind.WORD, "the node that the agent acts for; left out: the one that answers"),
        Argument("text", Kind.TEXT, "what was given as a file or on standard input"),
        Argument("other", Kind.TEXT, "what was given as a second file"),
    ), answers=("tool",)),
))  # fmt: skip
