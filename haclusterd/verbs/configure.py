"""The verbs of `crm configure`."""

from haclusterd.model.records import replace
from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Completes, Parameter, Taken, Takes, Words

_FORMAT = Argument("format", Kind.WORD, "the language of the text", choices=("crm", "yaml", "xml"), flag="--format")
_PENDING = Argument("pending", Kind.TEXT, "statements that are not committed, to be applied first")
_TEXT = Argument("text", Kind.TEXT, "the text", is_required=True)
_SOURCE = Argument("source", Kind.WORD, "what to call the text in messages", is_typed=False)
_VARIABLES = Argument("variables", Kind.WORDS, "a value for ${NAME} in a policy, as NAME=VALUE", flag="--set")
_FILE = Parameter("file", completes=Completes.FILE, help="the file; -: standard input")

_AS_CRMSH = Argument("as_crmsh", Kind.FLAG, "do as crmsh does where that differs", is_typed=False)


def _statement(name: str, help_: str, grammar: str, *examples: str, aliases: tuple[str, ...] = ()) -> Words:
    takes = (Taken("words", takes=Takes.REST, grammar=grammar),)
    return Words(examples, f"configure {name}", help_, takes, aliases=aliases, is_statement=True)


CONFIGURE = Family("configure", "The configuration: show it, load it, change it", (
    Verb("configure.show", Permission.READ, "Show the configuration or some objects of it", (
        Argument("ids", Kind.WORDS,
                 "which objects, also type:KIND, tag:ID, related:ID, changed, obscure:GLOB; left out: all; the first "
                 "may be `xml`, for that format", completes=Completes.OBJECT),
        _FORMAT, _PENDING,
        Argument("structured", Kind.FLAG, "add the configuration as data", is_typed=False),
        Argument("document", Kind.FLAG, "in crm syntax, in the order on which plans depend"),
        Argument("secrets", Kind.FLAG, "do not hide secrets", flag="--show-secrets"),
    ), (
        Words(("crm configure show", "crm configure show web", "crm configure show --format yaml",
               "crm configure show xml", "crm configure show type:primitive related:web", "crm configure show changed",
               "crm configure show 'obscure:*url'"), takes=("ids", "format", "secrets")),
        Words(("crm configure save all.crm", "crm configure save all.yaml --format yaml",
               "crm configure save xml all.xml", "crm configure save web one.crm"), typed="configure save",
              help="Write the configuration, secrets included, into a new file",
              takes=(Parameter("target", Takes.MANY, completes=Completes.FILE, grammar="[xml] [ID...] FILE",
                               help="a new file, or --force; -: standard output"), "format"),
              fixed={"secrets": True}),
        Words(("crm configure edit", "crm configure edit web site"), typed="configure edit",
              help="Change objects, or the whole configuration, in $EDITOR", takes=("ids",),
              fixed={"secrets": True, "document": True}, is_guessed=False),
        Words(("crm configure filter 'sed s/8080/8081/'", "crm configure filter 'sed s/8080/8081/' web"),
              typed="configure filter", help="Send the configuration, or objects, through a program",
              takes=(Parameter("program", help="a command of the shell"), "ids"),
              fixed={"secrets": True, "document": True}, is_guessed=False),
    ), answers=("configuration",)),
    Verb("configure.load", Permission.ADMINISTER, "Load a file; `replace` removes what it does not name", (
        Argument("mode", Kind.WORD, "what to do with what the file does not name", is_required=True,
                 choices=("update", "replace", "push")),
        Argument("version", Kind.INTEGER, "only when the configuration is this version still", is_typed=False),
        Argument("over", Kind.INTEGER, "the version over which the text was written: what others have changed since "
                 "then stays, unless both have changed the same", is_typed=False),
        Argument("edited", Kind.WORDS, "with update: objects that were edited, named as for `configure show`; those "
                 "that the text lacks are deleted", is_typed=False),
        _TEXT, _SOURCE, _FORMAT, _VARIABLES, _AS_CRMSH,
    ), (
        Words(("crm configure load update web.yaml", "crm configure load replace - < all.crm",
               "crm configure load xml replace /var/lib/pacemaker/cib/cib.xml"),
              takes=(Taken("format", flag="", choices=("xml",)), "mode", _FILE,
                     "format", "variables"), is_guessed=False),
    ), answers=("change",)),
    Verb("configure.apply", Permission.ADMINISTER, "Make it what a file says; status 10: something changed", (
        _TEXT, _SOURCE, _FORMAT, _VARIABLES,
        Argument("prune", Kind.WORD, "a tag; its objects that the file lacks are removed", flag="--prune"),
        Argument("difference", Kind.FLAG, "answer the unified difference as well", flag="--diff"),
    ), (
        Words(("crm configure apply web.yaml", "crm configure apply web.crm --prune site-a --dry-run",
               "crm configure apply web.yaml --diff --dry-run"),
              takes=(_FILE, "prune", "difference", "format", "variables"), is_guessed=False),
    ), answers=("change",)),
    Verb("configure.verify", Permission.READ, "Check the configuration, or a file as if it were loaded", (
        Argument("text", Kind.TEXT, "the text of a file; left out: what is configured"),
        _SOURCE, _FORMAT, _VARIABLES, _PENDING,
        Argument("strict", Kind.FLAG, "fail on warnings", flag="--strict"),
    ), (
        Words(("crm configure verify", "crm configure verify web.yaml"),
              takes=(Taken("format", flag="", choices=("xml",)),
                     replace(_FILE, is_optional=True), "strict", "format", "variables")),
        Words(("crm verify --strict",), typed="verify", help="Check the configuration", takes=("strict",)),
    ), answers=("verify",)),
    Verb("configure.statement", Permission.ADMINISTER, "Make one change", (
        Argument("words", Kind.WORDS, "the statement, word by word", is_required=True),
        _AS_CRMSH,
    ), (
        _statement("primitive", "Define a resource",
                   "ID AGENT|@TEMPLATE [params NAME=VALUE...] [meta NAME=VALUE...] [utilization NAME=VALUE...] "
                   "[op ACTION NAME=VALUE...]...",
                   "crm configure primitive web ocf:haclusterd:http-service params command=/srv/web/run "
                   "ready_url=http://127.0.0.1:8080/ op monitor interval=10s"),
        _statement("group", "Define a group: its members run together and start in order",
                   "ID MEMBER... [meta NAME=VALUE...]",
                   "crm configure group site address web"),
        _statement("clone", "Let a primitive or group run on several nodes",
                   "ID RESOURCE [meta NAME=VALUE...]",
                   "crm configure clone web-clone web meta clone-max=2 interleave=true"),
        _statement("ms", "Define a promotable clone (a clone with promotable=true)",
                   "ID RESOURCE [meta NAME=VALUE...]",
                   "crm configure ms db-clone db meta promoted-max=1", aliases=("master",)),
        _statement("bundle", "Define containers of one image, a primitive inside",
                   "ID docker|podman image=IMAGE [NAME=VALUE...] [network NAME=VALUE...] [storage-mapping "
                   "NAME=VALUE...] [primitive ID]",
                   "crm configure bundle shop podman image=shop:2 replicas=3 network ip-range-start=192.0.2.50"),
        _statement("rsc_template", "Define what primitives made from it (@ID) have in common",
                   "ID AGENT [params NAME=VALUE...] [meta NAME=VALUE...] [op ACTION NAME=VALUE...]...",
                   "crm configure rsc_template worker ocf:haclusterd:http-service op monitor interval=10s"),
        _statement("tag", "Give several objects one name, for constraints",
                   "ID: OBJECT...",
                   "crm configure tag sites: shop blog"),
        _statement("rsc_ticket", "Let a resource run only while a ticket is held",
                   "ID TICKET: RESOURCE[:ROLE]... [loss-policy=stop|demote|fence|freeze]",
                   "crm configure rsc_ticket db-needs-paris paris: db loss-policy=stop"),
        _statement("fencing_topology", "Say which fence devices are tried, in which order",
                   "[NODE:] DEVICE[,DEVICE...]...",
                   "crm configure fencing_topology n1: ipmi1 pdu-a,pdu-b"),
        _statement("alert", "Have a program called for what happens",
                   "ID PATH [attributes NAME=VALUE...] [meta NAME=VALUE...] [select nodes|fencing|resources|attributes"
                   "...] [to RECIPIENT]...",
                   "crm configure alert mail /usr/share/pacemaker/alerts/alert_smtp.sh to admin@example.org"),
        _statement("role", "Define an ACL role: what may be read and written",
                   "ID [description=TEXT] {read|write|deny xpath:PATH|SHORTCUT|ref:ID|type:ELEMENT "
                   "[attribute:NAME]}...",
                   "crm configure role web-operator read cib write meta:web:target-role write location:web"),
        _statement("acl_target", "Give a user ACL roles",
                   "USER [name=NAME] ROLE...",
                   "crm configure acl_target alice operator"),
        _statement("acl_group", "Give a group of users ACL roles",
                   "GROUP [name=NAME] ROLE...",
                   "crm configure acl_group ops operator"),
        _statement("user", "Give a user ACL roles or permissions, as older CIBs do",
                   "USER {role:ROLE...|PERMISSIONS}",
                   "crm configure user joe role:viewer"),
        _statement("xml", "Define one object as Pacemaker's CIB writes it",
                   "ELEMENT",
                   'crm configure xml \'<rsc_order id="o1" first="db" then="web"/>\''),
        _statement("location", "Say how much a resource prefers a node",
                   "ID RESOURCE SCORE: NODE | ID RESOURCE rule [$role=ROLE] SCORE: EXPRESSION",
                   "crm configure location l1 web 100: n1"),
        _statement("colocation", "Say which resource runs where another runs",
                   "ID SCORE: RESOURCE[:ROLE] WITH[:ROLE] [lifetime DATES]",
                   "crm configure colocation c1 inf: web db", aliases=("collocation",)),
        _statement("order", "Say which resource starts before another",
                   "ID Mandatory|Optional|Serialize: FIRST[:ACTION] THEN[:ACTION] [symmetrical=true|false] "
                   "[lifetime DATES]",
                   "crm configure order o1 Mandatory: db web"),
        _statement("node", "Give a node attributes",
                   "NAME [attributes NAME=VALUE...] [utilization NAME=VALUE...]",
                   "crm configure node n1 attributes rack=4"),
        _statement("monitor", "Give a resource a recurring monitor",
                   "RESOURCE[:ROLE] INTERVAL[:TIMEOUT]",
                   "crm configure monitor web 10s:20s"),
        _statement("property", "Set cluster properties",
                   "NAME=VALUE...",
                   "crm configure property node-timeout=2s"),
        _statement("rsc_defaults", "Set defaults of meta-attributes",
                   "NAME=VALUE...",
                   "crm configure rsc_defaults resource-stickiness=100"),
        _statement("op_defaults", "Set defaults of operations",
                   "NAME=VALUE...",
                   "crm configure op_defaults timeout=30s"),
    ), answers=("change",)),
    Verb("configure.delete", Permission.ADMINISTER, "Delete objects that nothing else uses", (
        Argument("ids", Kind.WORDS, "which objects", is_required=True, completes=Completes.OBJECT),
        Argument("cascade", Kind.FLAG, "and what uses them", flag="--cascade"),
        _AS_CRMSH,
    ), (
        Words(("crm configure delete l1", "crm configure delete web --cascade"), aliases=("rm",), is_statement=True,
              is_guessed=False),
    ), answers=("change",)),
    Verb("configure.erase", Permission.ADMINISTER, "Remove everything but nodes, or nodes too", (
        Argument("what", Kind.WORD, "what else is removed", choices=("nodes",)),
        _AS_CRMSH,
    ), (
        Words(("crm configure erase --dry-run", "crm configure erase nodes --force"), is_statement=True,
              is_guessed=False),
    ), answers=("change",)),
    Verb("configure.default_timeouts", Permission.ADMINISTER, "Set timeouts of operations as the agents advise", (
        Argument("ids", Kind.WORDS, "which primitives", is_required=True, completes=Completes.RESOURCE),
    ), (
        Words(("crm configure default-timeouts web db",), aliases=("default_timeouts",), is_statement=True,
              is_guessed=False),
    ), answers=("change",)),
    Verb("configure.rename", Permission.ADMINISTER, "Rename an object, and all references to it", (
        Argument("old", Kind.WORD, "its id now", is_required=True, completes=Completes.OBJECT),
        Argument("new", Kind.WORD, "its new id", is_required=True),
    ), (
        Words(("crm configure rename web shop",), is_statement=True, is_guessed=False),
    ), answers=("change",)),
    Verb("configure.modgroup", Permission.ADMINISTER, "Add a member to a group, or remove one", (
        Argument("words", Kind.WORDS, "GROUP add ID [after|before ID], or GROUP remove ID", is_required=True,
                 completes=Completes.RESOURCE),
    ), (
        Words(("crm configure modgroup site add log after web", "crm configure modgroup site remove log"),
              is_statement=True, is_guessed=False),
    ), answers=("change",)),
    Verb("configure.set", Permission.ADMINISTER, "Change one value", (
        Argument("path", Kind.WORD, "ID.NAME or ID.OPERATION[.INTERVAL].NAME", is_required=True),
        Argument("value", Kind.WORD, "its new value"),
    ), (
        Words(("crm configure set web.ready_url http://127.0.0.1:8081/", "crm configure set web.monitor.timeout 30s"),
              takes=("path", Taken("value", is_required=True)), is_statement=True, is_guessed=False),
    ), answers=("change",)),
    Verb("configure.unset", Permission.ADMINISTER, "Take one value away, so that its default counts", (
        Argument("path", Kind.WORD, "a property, ID.NAME or ID.OPERATION[.INTERVAL].NAME", is_required=True,
                 completes=Completes.PROPERTY),
    ), (
        Words(("crm configure unset no-quorum-policy", "crm configure unset web.monitor.timeout"), is_statement=True,
              is_guessed=False),
    ), answers=("change",)),
    Verb("configure.graph", Permission.READ, "Draw the configuration, for Graphviz", (_PENDING,), (
        Words(("crm configure graph", "crm configure graph dot all.dot", "crm configure graph dot all.svg"),
              takes=(Parameter("language", is_optional=True, completes=Completes.CHOICE, choices=("dot",)),
                     Parameter("target", is_optional=True, completes=Completes.FILE),
                     Parameter("picture", is_optional=True, completes=Completes.CHOICE,
                               choices=("dot", "svg", "png")))),
    ), answers=("graph",)),
    Verb("configure.schema", Permission.READ, "Show the schema of Pacemaker in which XML is written", (
        Argument("name", Kind.WORD, "a schema in which it is to be written"),
    ), (
        Words(("crm configure schema",)),
    ), cost=Cost.LIGHT, answers=("schema",)),
    Verb("configure.upgrade", Permission.READ, "Show whether the configuration needs an upgrade", (
        Argument("insist", Kind.WORD, "as in crmsh; nothing comes of it", choices=("force",)),
    ), (
        Words(("crm configure upgrade",)),
    ), cost=Cost.LIGHT),
    Verb("configure.rollback", Permission.ADMINISTER, "Make the configuration what it was in a version", (
        Argument("version", Kind.INTEGER, "which version", is_required=True, minimum=1),
    ), (
        Words(("crm configure rollback 12 --dry-run", "crm configure rollback 12"), is_guessed=False),
    ), cost=Cost.LONG, answers=("change",)),
    Verb("configure.get_property", Permission.READ, "Show cluster properties with their values", (
        Argument("names", Kind.WORDS, "which; left out: all", completes=Completes.PROPERTY),
    ), (
        Words(("crm configure get_property node-timeout",), typed="configure get_property", aliases=("get-property",)),
    ), cost=Cost.LIGHT, answers=("properties",)),
    Verb("configure.validate_all", Permission.ADMINISTER, "Let the agents of this node check their parameters", (
        Argument("ids", Kind.WORDS, "which resources; left out: all", completes=Completes.RESOURCE),
    ), (
        Words(("crm configure validate-all", "crm configure validate-all web"), aliases=("validate_all",)),
    ), answers=("validate-all",)),
    Verb("configure.script", Permission.ADMINISTER, "Make many changes at once", (
        _TEXT,
        Argument("source", Kind.WORD, "what to call the text in messages"),
        _AS_CRMSH,
    ), answers=("change",)),
), aliases=("cfg",))  # fmt: skip
