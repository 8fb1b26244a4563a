"""The verbs of `crm resource`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.secret import NO_VALUE, VALUE
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Completes, Taken, Words

_ANY_RESOURCES = Argument("resources", Kind.WORDS, "which resources; left out: all", completes=Completes.RESOURCE)
_RESOURCES = Argument("resources", Kind.WORDS, "which resources", is_required=True, completes=Completes.RESOURCE)
_RESOURCE = Argument("resource", Kind.WORD, "which resource", is_required=True, completes=Completes.RESOURCE)
_ANY_NODE = Argument("node", Kind.WORD, "which node", completes=Completes.NODE)
_ANY_RESOURCE = Argument("resource", Kind.WORD, "which resource; left out: all", completes=Completes.RESOURCE)
_NODE_OF_ALL = Argument("node", Kind.WORD, "which node; left out: all", completes=Completes.NODE)

_LIFETIME = Argument("lifetime", Kind.WORD, "how long it holds, as PT5M or 5min; left out: for ever")
_FORCE = Argument("anyway", Kind.WORD, "also where it has no effect", choices=("force",))
_AS_CRMSH = Argument("as_crmsh", Kind.FLAG, "write the constraint as crmsh: with its role and member", is_typed=False)
_ROLE = Argument("role", Kind.WORD, "of which role the constraint is, as crm_resource writes it",
                 choices=("Started", "Promoted"), is_typed=False)  # fmt: skip

RESOURCE = Family("resource", "Resources: start, stop, move them, and ask why", (
    Verb("resource.status", Permission.READ, "Show where resources run", (_ANY_RESOURCES,), (
        Words(("crm resource status web",), aliases=("list", "show", "locate")),
    ), answers=("resources",)),
    Verb("resource.start", Permission.OPERATE, "Let resources run", (_RESOURCES,), (
        Words(("crm resource start web --wait",)),
    ), answers=("change",)),
    Verb("resource.stop", Permission.OPERATE, "Stop resources and keep them stopped", (_RESOURCES,), (
        Words(("crm resource stop web db",), is_guessed=False),
    ), answers=("change",)),
    Verb("resource.restart", Permission.OPERATE, "Stop resources and start them again", (
        _RESOURCE,
        Argument("others", Kind.WORDS, "more resources, at the same time", completes=Completes.RESOURCE),
    ), (
        Words(("crm resource restart web", "crm resource restart web db"), is_guessed=False),
    ), answers=("restart",)),
    Verb("resource.move", Permission.OPERATE, "Move a resource, with its group; no constraint stays behind", (
        _RESOURCE,
        Argument("node", Kind.WORD, "where to; left out: away from where it runs", completes=Completes.NODE),
        _LIFETIME, _FORCE,
        Argument("constraint", Kind.FLAG, "keep the constraint after the move", flag="--constraint"),
        _AS_CRMSH, _ROLE,
    ), (
        Words(("crm resource move web n2", "crm resource move web", "crm resource move web n2 --constraint",
               "crm resource move web n2 PT5M"),
              aliases=("migrate", "mv"), is_guessed=False),
    ), cost=Cost.LONG, answers=("change",)),
    Verb("resource.ban", Permission.OPERATE, "Keep a resource away from a node until `clear`, or for a time", (
        _RESOURCE,
        Argument("node", Kind.WORD, "which node; left out: where it runs", completes=Completes.NODE),
        _LIFETIME, _FORCE, _AS_CRMSH, _ROLE,
    ), (
        Words(("crm resource ban web n1", "crm resource ban web n1 1h"), is_guessed=False),
    ), answers=("change",)),
    Verb("resource.clear", Permission.OPERATE, "Remove the constraints that move and ban left", (
        _RESOURCE, _ANY_NODE,
    ), (
        Words(("crm resource clear web",), aliases=("unmove", "unmigrate", "unban"), is_guessed=False),
    ), answers=("change",)),
    Verb("resource.cleanup", Permission.OPERATE, "Forget failures", (
        _ANY_RESOURCE, _ANY_NODE,
        Argument("reprobe", Kind.FLAG, "forget the whole history and look again", flag="--reprobe"),
        Argument("forced", Kind.WORD, "changes nothing here: one of several is asked for by its name",
                 choices=("force",)),
    ), (
        Words(("crm resource cleanup", "crm resource cleanup web n1"), takes=("resource", "node", "forced", "reprobe"),
              is_guessed=False),
        Words(("crm resource refresh web", "crm resource refresh web n1 force"), typed="resource refresh",
              help="Forget the history and look again", takes=("resource", "node", "forced"),
              fixed={"reprobe": True}, is_guessed=False),
    ), answers=("cleanup",)),
    Verb("resource.failcount", Permission.OPERATE, "Show how often operations failed, or forget that", (
        _ANY_RESOURCE,
        Argument("action", Kind.WORD, "what to do; left out: show", choices=("show", "set", "delete")),
        _NODE_OF_ALL,
        Argument("words", Kind.WORDS, "the value to set; of which operation and interval to show"),
    ), (
        Words(("crm resource failcount", "crm resource failcount web show n1",
               "crm resource failcount web show n1 monitor 10s", "crm resource failcount web set n1 0",
               "crm resource failcount web delete n1")),
    ), answers=("failcounts", "cleanup")),
    Verb("resource.operations", Permission.READ, "Show the newest result of each operation", (
        _ANY_RESOURCE, _NODE_OF_ALL,
    ), (
        Words(("crm resource operations", "crm resource operations web n1")),
    ), answers=("operations",)),
    Verb("resource.trace", Permission.ADMINISTER, "Let an agent write down what it does in operations", (
        _RESOURCE,
        Argument("operation", Kind.WORD, "which, or probe; left out: all"),
        Argument("interval", Kind.WORD, "of the monitor that is meant"),
        Argument("directory", Kind.WORD, "where to, on each node"),
        Argument("end", Kind.FLAG, "no longer", is_typed=False),
    ), (
        Words(("crm resource trace web start", "crm resource trace web monitor 10s /var/log/trace"),
              takes=("resource", "operation", "interval", "directory"), is_guessed=False),
        Words(("crm resource untrace web",), typed="resource untrace", help="End the tracing of operations",
              takes=("resource", "operation", "interval"), fixed={"end": True}, is_guessed=False),
    ), answers=("change",)),
    Verb("resource.secret", Permission.ADMINISTER, "Keep the value of a parameter as a secret, or end that", (
        _RESOURCE,
        Argument("action", Kind.WORD, "what to do", is_required=True,
                 choices=("set", "stash", "unstash", "delete", "show", "check")),
        Argument("parameter", Kind.WORD, "which parameter", is_required=True),
        VALUE,
    ), (
        Words(("crm resource secret fence-pdu set passwd", "crm resource secret fence-pdu stash passwd",
               "crm resource secret fence-pdu check passwd", "crm resource secret fence-pdu show passwd"),
              takes=("resource", "action", "parameter", NO_VALUE), is_guessed=False),
    ), answers=("secret", "change")),
    Verb("resource.promote", Permission.OPERATE, "Let instances of a promotable clone be promoted", (_RESOURCE,), (
        Words(("crm resource promote db-clone",), is_guessed=False),
    ), answers=("change",)),
    Verb("resource.demote", Permission.OPERATE, "Demote all instances and keep them so", (_RESOURCE,), (
        Words(("crm resource demote db-clone",), is_guessed=False),
    ), answers=("change",)),
    Verb("resource.manage", Permission.OPERATE, "Let the cluster start and stop resources again", (
        _RESOURCES,
        Argument("unmanage", Kind.FLAG, "no longer"),
    ), (
        Words(("crm resource manage web",), takes=("resources",)),
        Words(("crm resource unmanage web",), typed="resource unmanage",
              help="Let resources be: they are watched, not started or stopped", fixed={"unmanage": True},
              is_guessed=False),
    ), answers=("change",)),
    Verb("resource.maintenance", Permission.OPERATE, "Set a resource in maintenance: it is left alone; or end that", (
        _RESOURCE,
        Argument("state", Kind.WORD, "on or off; left out: on", choices=("on", "off")),
    ), (
        Words(("crm resource maintenance web on", "crm resource maintenance web off"), is_guessed=False),
    ), answers=("change",)),
    Verb("resource.setting", Permission.ADMINISTER, "Set, delete or show one setting of a resource", (
        _RESOURCE,
        Argument("section", Kind.WORD, "of which kind", is_required=True, choices=("meta", "params", "utilization")),
        Argument("action", Kind.WORD, "what to do", is_required=True, choices=("set", "delete", "show")),
        Argument("name", Kind.WORD, "which one; left out: all are shown"),
        Argument("value", Kind.WORD, "its value"),
    ), (
        Words(("crm resource meta web set priority 10", "crm resource meta web show"), typed="resource meta",
              help="Set, delete or show a meta-attribute", fixed={"section": "meta"}),
        Words(("crm resource param web set ready_url http://127.0.0.1:8081/",), typed="resource param",
              help="Set, delete or show a parameter", fixed={"section": "params"}),
        Words(("crm resource utilization web set memory 2000",), typed="resource utilization",
              help="Set, delete or show a capacity that it uses", fixed={"section": "utilization"}),
    ), cost=lambda arguments: Cost.WHOLE if arguments.get("action") == "show" else Cost.LONG,
         answers=("setting", "change")),
    Verb("resource.why", Permission.READ, "Explain why a resource runs where it does, or why not on a node", (
        _RESOURCE,
        Argument("node", Kind.WORD, "why not on this node", completes=Completes.NODE),
        Argument("at", Kind.WORD, "as it was then: so long ago (10min), or a time (ISO 8601)", flag="--at"),
    ), (
        Words(("crm resource why web", "crm resource why web --on n2", "crm resource why web --at 10min"),
              takes=("resource", "node", Taken("node", flag="--on", help="why not on this node"), "at")),
        Words(("crm why web", "crm why web n2", "crm why web --at 10min"), typed="why",
              takes=("resource", "node", Taken("node", flag="--on", help="why not on this node"), "at"),
              aliases=("explain",)),
    ), cost=Cost.LONG, answers=("why",)),
    Verb("resource.constraints", Permission.READ, "Show the constraints that concern a resource", (_RESOURCE,), (
        Words(("crm resource constraints web",)),
    ), answers=("configuration",)),
    Verb("resource.scores", Permission.READ, "Show scores with all their parts", (_ANY_RESOURCES,), (
        Words(("crm resource scores web",)),
    ), cost=Cost.LONG, answers=("scores",)),
), aliases=("rsc",))  # fmt: skip
