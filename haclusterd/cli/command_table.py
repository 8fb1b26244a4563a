"""The levels and commands of `crm`, with their help. Every verb named here is in the daemon's registry (tested)."""

from haclusterd.cli.grammar import Command, Completes, Level, Option, OptionValue, Parameter, Takes

_NODE = Parameter("node", completes=Completes.NODE)
_ANY_NODE = Parameter("node", is_optional=True, completes=Completes.NODE)
_RESOURCE = Parameter("resource", completes=Completes.RESOURCE)
_ANY_RESOURCE = Parameter("resource", is_optional=True, completes=Completes.RESOURCE)
_RESOURCES = Parameter("resources", Takes.MANY, completes=Completes.RESOURCE)
_ANY_RESOURCES = Parameter("resources", Takes.MANY, is_optional=True, completes=Completes.RESOURCE)
_SETTING = (
    Parameter("action", completes=Completes.CHOICE, choices=("set", "delete", "show")),
    Parameter("name", is_optional=True),
    Parameter("value", is_optional=True),
)
_TICKET = Parameter("ticket", completes=Completes.TICKET)
_TOLERANCE = Option(
    "--tolerance", "tolerance", "do nothing when it was fenced within this time, as 5min", OptionValue.TEXT
)
_HAS_CHECKED = Option("--i-have-checked", "has_checked", "I have looked: it is powered off")
_CLASS = Parameter("class", completes=Completes.CHOICE, choices=("lsb", "ocf", "service", "stonith", "systemd"))
_ANY_TICKET = Parameter("ticket", is_optional=True, completes=Completes.TICKET)
_REST = (Parameter("words", Takes.REST),)
_ATTRIBUTE = (
    _NODE, Parameter("action", completes=Completes.CHOICE, choices=("set", "delete", "show")),
    Parameter("name"), Parameter("value", is_optional=True),
)  # fmt: skip
_FORMAT = Option(
    "--format", "format", "the language of the text", OptionValue.TEXT, Completes.CHOICE, ("crm", "yaml", "xml")
)
_XML = Parameter("format", is_optional=True, completes=Completes.CHOICE, choices=("xml",))
_SET = Option("--set", "variables", "a value for ${NAME} in a policy, as NAME=VALUE", OptionValue.TEXT, repeats=True)

ROOT = Level("", "", (
    Command("status", "Show the state of the cluster; the first line is a verdict", "status",
            (Parameter("form", is_optional=True, completes=Completes.CHOICE, choices=("simple",)),),
            examples=("crm status", "crm -o json status", "crm status simple")),
    Command("verify", "Judge the configuration", "configure.verify",
            options=(Option("--strict", "strict", "fail on warnings"),), examples=("crm verify --strict",)),
    Command("why", "Say why a resource runs where it runs, or why not on a node", "resource.why",
            (_RESOURCE, _ANY_NODE), (Option("--on", "node", "why not on this node", OptionValue.TEXT, Completes.NODE),),
            aliases=("explain",), examples=("crm why web", "crm why web n2")),
    Command("simulate", "Show what the cluster would do, changing nothing",
            "simulate", (), (
                Option("--cib", "cib", "plan for this CIB of Pacemaker (XML)", OptionValue.TEXT,
                       Completes.FILE, repeats=True),
                Option("--date", "date", "plan for this time (ISO 8601)", OptionValue.TEXT),
                Option("--format", "format", "how to show it", OptionValue.TEXT, Completes.CHOICE,
                       ("text", "json", "dot")),
                Option("--node-down", "node_down", "suppose that this node died", OptionValue.TEXT,
                       Completes.NODE, repeats=True),
                Option("--node-up", "node_up", "suppose that this node is there", OptionValue.TEXT,
                       Completes.NODE, repeats=True),
                Option("--standby", "standby", "suppose that this node is in standby", OptionValue.TEXT,
                       Completes.NODE, repeats=True),
                Option("--op-fail", "op_fail", "suppose that an action failed, as web:monitor:10s@n1=7",
                       OptionValue.TEXT, repeats=True),
                Option("--ticket", "ticket", "a ticket is granted, revoked, standby, active",
                       OptionValue.TEXT, repeats=True),
                Option("--set", "set", "suppose that a property has this value: NAME=VALUE", OptionValue.TEXT,
                       repeats=True),
                Option("--quorum", "quorum", "suppose that there is a quorum, or none", OptionValue.TEXT,
                       Completes.CHOICE, ("present", "lost")),
            ), examples=("crm simulate --node-down n1", "crm simulate --cib cib.xml --op-fail web:monitor:10s@n1=7",
                         "crm simulate --cib cib.xml --format json")),
    Command("report", "Write what is known into one file, to look for a fault in", "history.events",
            (Parameter("target", is_optional=True, completes=Completes.FILE),), (
                Option("--since", "since", "events and journal since then: 12h, or ISO 8601", OptionValue.TEXT),
                Option("--until", "until", "the same for the end", OptionValue.TEXT),
            ), examples=("crm report web.tar.gz", "crm report web.tar.gz --since 2h")),
    Command("completion", "Print the completion script of a shell", "",
            (Parameter("shell", completes=Completes.CHOICE, choices=("bash",)),),
            examples=('eval "$(crm completion bash)"',)),
))  # fmt: skip

NODE = Level("node", "Nodes: look at them, empty them, let them run, fence them", (
    Command("show", "Show nodes with their attributes and resources", "node.show", (_ANY_NODE,),
            aliases=("server", "status", "print"),
            examples=("crm node show", "crm node show n1")),
    Command("standby", "Move everything away from a node and keep it away", "node.standby",
            (_ANY_NODE, Parameter("lifetime", is_optional=True, completes=Completes.CHOICE,
                                  choices=("forever", "reboot"))),
            examples=("crm node standby n1 --wait", "crm node standby n1 reboot")),
    Command("online", "Let a node on standby run resources again", "node.online", (_ANY_NODE,),
            examples=("crm node online n1",)),
    Command("maintenance", "Leave everything on a node wholly alone", "node.maintenance", (_ANY_NODE,),
            examples=("crm node maintenance n1",)),
    Command("ready", "End the maintenance of a node", "node.maintenance", (_ANY_NODE,), fixed={"ready": True},
            examples=("crm node ready n1",)),
    Command("fence", "Power-cycle a node, whatever it says", "node.fence", (_NODE,), (_TOLERANCE,),
            examples=('crm node fence n3 --reason "does not answer"', "crm node fence n3 --tolerance 5min")),
    Command("attribute", "Set, delete or show an attribute of a node, for ever", "node.attribute", _ATTRIBUTE,
            examples=("crm node attribute n1 set rack 4",), fixed={"lifetime": "forever"}),
    Command("status-attr", "The same for one that the node's next boot forgets", "node.attribute", _ATTRIBUTE,
            (Option("--private", "private", "for agents alone: no rule sees it"),),
            examples=("crm node status-attr n1 set '#health-smart' red", "crm node status-attr n1 show '#health-cpu'"),
            fixed={"lifetime": "reboot"}),
    Command("clearstate", "Say that a lost node is down (the same as `fencing confirm`)", "fencing.confirm", (_NODE,),
            (_HAS_CHECKED,), examples=("crm node clearstate n3 --i-have-checked",)),
    Command("delete", "Let a node leave for good (the same as `cluster remove`)", "cluster.remove", (_NODE,),
            examples=('crm node delete n3 --reason "replaced by n4"',)),
    Command("utilization", "Set, delete or show a capacity of a node", "node.utilization", (_NODE, *_SETTING),
            examples=("crm node utilization n1 set memory 64000", "crm node utilization n1 show")),
))  # fmt: skip

FENCING = Level("fencing", "Fencing: what can fence whom, whether it is proven, what happened", (
    Command("list", "Show what can fence each node, and what is proven", "fencing.list", (_ANY_NODE,),
            aliases=("show", "status"), examples=("crm fencing list",)),
    Command("test", "Fence a node for real, to prove its device", "fencing.test", (_NODE,), (_TOLERANCE,),
            examples=("crm fencing test n3 --wait",)),
    Command("cleanup", "Forget ended fencings, so that failed ones are tried again", "fencing.cleanup", (_ANY_NODE,),
            examples=("crm fencing cleanup", "crm fencing cleanup n3")),
    Command("history", "Show what was fenced, and what is being fenced", "fencing.history", (_ANY_NODE,),
            examples=("crm fencing history", "crm fencing history n3")),
    Command("confirm", "Say that a lost node is down, when no device can", "fencing.confirm", (_NODE,),
            (_HAS_CHECKED,),
            examples=("crm fencing confirm n3 --i-have-checked",)),
    Command("topology", "Show the levels of devices", "fencing.topology", (_ANY_NODE,),
            examples=("crm fencing topology",)),
    Command("plan", "Show what would happen if a node died now", "fencing.plan", (_NODE,),
            examples=("crm fencing plan n3",)),
), aliases=("stonith",))  # fmt: skip

RESOURCE = Level("resource", "Resources: start, stop, move them, and ask why", (
    Command("status", "Show where resources run", "resource.status", (_ANY_RESOURCES,),
            aliases=("list", "show", "locate"), examples=("crm resource status web",)),
    Command("start", "Let resources run", "resource.start", (_RESOURCES,), examples=("crm resource start web --wait",)),
    Command("stop", "Stop resources and keep them stopped", "resource.stop", (_RESOURCES,),
            examples=("crm resource stop web db",)),
    Command("restart", "Stop a resource and start it again", "resource.restart", (_RESOURCE,),
            examples=("crm resource restart web",)),
    Command("move", "Move a resource, with its group; no constraint stays behind", "resource.move",
            (_RESOURCE, _ANY_NODE),
            (Option("--constraint", "constraint", "keep the constraint after the move"),), aliases=("migrate", "mv"),
            examples=("crm resource move web n2", "crm resource move web", "crm resource move web n2 --constraint")),
    Command("ban", "Keep a resource away from a node until `clear`", "resource.ban", (_RESOURCE, _ANY_NODE),
            examples=("crm resource ban web n1",)),
    Command("clear", "Take away what move and ban left", "resource.clear", (_RESOURCE, _ANY_NODE),
            aliases=("unmove", "unmigrate", "unban"), examples=("crm resource clear web",)),
    Command("cleanup", "Forget failures", "resource.cleanup", (_ANY_RESOURCE, _ANY_NODE),
            (Option("--reprobe", "reprobe", "forget the whole history and look again"),),
            examples=("crm resource cleanup", "crm resource cleanup web n1")),
    Command("refresh", "Forget the history and look again", "resource.cleanup", (_ANY_RESOURCE, _ANY_NODE),
            fixed={"reprobe": True}, examples=("crm resource refresh web",)),
    Command("failcount", "Show how often operations failed, or forget it", "resource.failcount",
            (_ANY_RESOURCE,
             Parameter("action", is_optional=True, completes=Completes.CHOICE, choices=("show", "set", "delete")),
             _ANY_NODE, Parameter("words", Takes.MANY, is_optional=True)),
            examples=("crm resource failcount", "crm resource failcount web show n1",
                      "crm resource failcount web show n1 monitor 10s", "crm resource failcount web set n1 0",
                      "crm resource failcount web delete n1")),
    Command("operations", "Show the newest result of each operation", "resource.operations",
            (_ANY_RESOURCE, _ANY_NODE), examples=("crm resource operations", "crm resource operations web n1")),
    Command("promote", "Let instances of a promotable clone be promoted", "resource.promote", (_RESOURCE,),
            examples=("crm resource promote db-clone",)),
    Command("demote", "Demote all instances and keep them so", "resource.demote", (_RESOURCE,),
            examples=("crm resource demote db-clone",)),
    Command("manage", "Let the cluster start and stop resources again", "resource.manage", (_RESOURCES,),
            examples=("crm resource manage web",)),
    Command("unmanage", "Let resources be: they are watched, not started or stopped", "resource.manage", (_RESOURCES,),
            fixed={"unmanage": True}, examples=("crm resource unmanage web",)),
    Command("maintenance", "Leave a resource wholly alone, or no longer", "resource.maintenance",
            (_RESOURCE, Parameter("state", is_optional=True, completes=Completes.CHOICE, choices=("on", "off"))),
            examples=("crm resource maintenance web on", "crm resource maintenance web off")),
    Command("meta", "Set, delete or show a meta-attribute", "resource.setting", (_RESOURCE, *_SETTING),
            fixed={"section": "meta"},
            examples=("crm resource meta web set priority 10", "crm resource meta web show")),
    Command("param", "Set, delete or show a parameter", "resource.setting", (_RESOURCE, *_SETTING),
            fixed={"section": "params"}, examples=("crm resource param web set ready_url http://127.0.0.1:8081/",)),
    Command("utilization", "Set, delete or show a capacity that it uses", "resource.setting", (_RESOURCE, *_SETTING),
            fixed={"section": "utilization"}, examples=("crm resource utilization web set memory 2000",)),
    Command("why", "Say why a resource runs where it runs, or why not on a node", "resource.why",
            (_RESOURCE, _ANY_NODE), (Option("--on", "node", "why not on this node", OptionValue.TEXT, Completes.NODE),),
            examples=("crm resource why web", "crm resource why web --on n2")),
    Command("constraints", "Show the constraints that concern a resource", "resource.constraints", (_RESOURCE,),
            examples=("crm resource constraints web",)),
    Command("scores", "Show scores with all their parts", "resource.scores", (_ANY_RESOURCES,),
            examples=("crm resource scores web",)),
), aliases=("rsc",))  # fmt: skip


def _statement(name: str, help_: str, *examples: str, aliases: tuple[str, ...] = ()) -> Command:
    return Command(name, help_, "configure.statement", _REST, aliases=aliases, examples=examples, is_statement=True)


CONFIGURE = Level("configure", "The configuration: show it, load it, change it", (
    Command("show", "Show the configuration or some objects of it", "configure.show",
            (Parameter("ids", Takes.MANY, is_optional=True, completes=Completes.OBJECT),),
            (_FORMAT, Option("--show-secrets", "secrets", "do not hide secrets")),
            examples=("crm configure show", "crm configure show web", "crm configure show --format yaml",
                      "crm configure show xml", "crm configure show type:primitive related:web",
                      "crm configure show changed", "crm configure show 'obscure:*url'")),
    Command("load", "Load a file; `replace` removes what it does not name", "configure.load",
            (_XML, Parameter("mode", completes=Completes.CHOICE, choices=("update", "replace", "push")),
             Parameter("file", completes=Completes.FILE)), (_FORMAT, _SET),
            examples=("crm configure load update web.yaml", "crm configure load replace - < all.crm",
                      "crm configure load xml replace /var/lib/pacemaker/cib/cib.xml")),
    Command("apply", "Make what a file says so; status 10: something changed", "configure.apply",
            (Parameter("file", completes=Completes.FILE),),
            (Option("--prune", "prune", "a tag; its objects that the file lacks are removed",
                    OptionValue.TEXT), _FORMAT, _SET),
            examples=("crm configure apply web.yaml", "crm configure apply web.crm --prune site-a --dry-run")),
    Command("verify", "Judge the configuration, or a file as if it were loaded", "configure.verify",
            (_XML, Parameter("file", is_optional=True, completes=Completes.FILE)),
            (Option("--strict", "strict", "fail on warnings"), _FORMAT, _SET),
            examples=("crm configure verify", "crm configure verify web.yaml")),
    _statement("primitive", "Define a resource",
               "crm configure primitive web ocf:haclusterd:http-service params command=/srv/web/run "
               "ready_url=http://127.0.0.1:8080/ op monitor interval=10s"),
    _statement("group", "Define a group: its members run together and start in order",
               "crm configure group site address web"),
    _statement("clone", "Let a primitive or group run on several nodes",
               "crm configure clone web-clone web meta clone-max=2 interleave=true"),
    _statement("ms", "Define a promotable clone (a clone with promotable=true)",
               "crm configure ms db-clone db meta promoted-max=1", aliases=("master",)),
    _statement("bundle", "Define containers of one image, a primitive inside",
               "crm configure bundle shop podman image=shop:2 replicas=3 network ip-range-start=192.0.2.50"),
    _statement("rsc_template", "Define what primitives made from it (@ID) have in common",
               "crm configure rsc_template worker ocf:haclusterd:http-service op monitor interval=10s"),
    _statement("tag", "Give several objects one name, for constraints", "crm configure tag sites: shop blog"),
    _statement("rsc_ticket", "Let a resource run only while a ticket is held",
               "crm configure rsc_ticket db-needs-paris paris: db loss-policy=stop"),
    _statement("fencing_topology", "Say which fence devices are tried, in which order",
               "crm configure fencing_topology n1: ipmi1 pdu-a,pdu-b"),
    _statement("xml", "Define one object as Pacemaker's CIB writes it",
               "crm configure xml '<rsc_order id=\"o1\" first=\"db\" then=\"web\"/>'"),
    _statement("location", "Say how much a resource prefers a node", "crm configure location l1 web 100: n1"),
    _statement("colocation", "Say which resource runs where another runs", "crm configure colocation c1 inf: web db",
               aliases=("collocation",)),
    _statement("order", "Say which resource starts before another", "crm configure order o1 Mandatory: db web"),
    _statement("node", "Give a node attributes", "crm configure node n1 attributes rack=4"),
    _statement("monitor", "Give a resource a recurring monitor", "crm configure monitor web 10s:20s"),
    _statement("property", "Set cluster properties", "crm configure property node-timeout=2s"),
    _statement("rsc_defaults", "Set defaults of meta-attributes", "crm configure rsc_defaults resource-stickiness=100"),
    _statement("op_defaults", "Set defaults of operations", "crm configure op_defaults timeout=30s"),
    Command("delete", "Delete objects that nothing else uses", "configure.delete",
            (Parameter("ids", Takes.MANY, completes=Completes.OBJECT),),
            (Option("--cascade", "cascade", "and what uses them"),), aliases=("rm",), is_statement=True,
            examples=("crm configure delete l1", "crm configure delete web --cascade")),
    Command("erase", "Remove everything but nodes, or nodes too", "configure.erase",
            (Parameter("what", is_optional=True, completes=Completes.CHOICE, choices=("nodes",)),), is_statement=True,
            examples=("crm configure erase --dry-run", "crm configure erase nodes --force")),
    Command("default-timeouts", "Set timeouts of operations as the agents advise", "configure.default_timeouts",
            (Parameter("ids", Takes.MANY, completes=Completes.RESOURCE),), aliases=("default_timeouts",),
            is_statement=True, examples=("crm configure default-timeouts web db",)),
    Command("rename", "Give an object another id, everywhere", "configure.rename",
            (Parameter("old", completes=Completes.OBJECT), Parameter("new")), is_statement=True,
            examples=("crm configure rename web shop",)),
    Command("modgroup", "Add a member to a group, or remove one", "configure.modgroup",
            (Parameter("words", Takes.MANY, completes=Completes.RESOURCE),), is_statement=True,
            examples=("crm configure modgroup site add log after web", "crm configure modgroup site remove log")),
    Command("set", "Change one value", "configure.set", (Parameter("path"), Parameter("value")), is_statement=True,
            examples=("crm configure set web.ready_url http://127.0.0.1:8081/",
                      "crm configure set web.monitor.timeout 30s")),
    Command("save", "Write the configuration into a new file, secrets included", "configure.show",
            (Parameter("target", completes=Completes.FILE),), (_FORMAT,), fixed={"secrets": True},
            examples=("crm configure save all.crm", "crm configure save all.yaml --format yaml")),
    Command("edit", "Change objects, or the whole configuration, in $EDITOR", "configure.show",
            (Parameter("ids", Takes.MANY, is_optional=True, completes=Completes.OBJECT),),
            fixed={"secrets": True, "document": True},
            examples=("crm configure edit", "crm configure edit web site")),
    Command("filter", "Send the configuration, or objects, through a program", "configure.show",
            (Parameter("program"), Parameter("ids", Takes.MANY, is_optional=True, completes=Completes.OBJECT)),
            fixed={"secrets": True, "document": True},
            examples=("crm configure filter 'sed s/8080/8081/'", "crm configure filter 'sed s/8080/8081/' web")),
    Command("graph", "Draw the configuration, for Graphviz", "configure.graph",
            (Parameter("language", is_optional=True, completes=Completes.CHOICE, choices=("dot",)),
             Parameter("target", is_optional=True, completes=Completes.FILE),
             Parameter("picture", is_optional=True, completes=Completes.CHOICE, choices=("dot", "svg", "png"))),
            examples=("crm configure graph", "crm configure graph dot all.dot")),
    Command("simulate", "Show what the cluster would do with the waiting changes", "simulate",
            (Parameter("words", Takes.MANY, is_optional=True),), aliases=("ptest",),
            examples=("crm configure simulate", "crm configure simulate actions")),
    Command("schema", "Show the schema of Pacemaker in which XML is written", "configure.schema",
            (Parameter("name", is_optional=True),), examples=("crm configure schema",)),
    Command("upgrade", "Say whether the configuration waits for an upgrade", "configure.upgrade",
            (Parameter("insist", is_optional=True, completes=Completes.CHOICE, choices=("force",)),),
            examples=("crm configure upgrade",)),
    Command("rollback", "Make the configuration what it was in a version", "configure.rollback",
            (Parameter("version", is_number=True),),
            examples=("crm configure rollback 12 --dry-run", "crm configure rollback 12")),
    Command("get_property", "Show cluster properties with their values", "configure.get_property",
            (Parameter("names", Takes.MANY, is_optional=True, completes=Completes.PROPERTY),),
            aliases=("get-property",), examples=("crm configure get_property node-timeout",)),
    Command("validate-all", "Ask the agents of this node what they say of parameters", "configure.validate_all",
            (Parameter("ids", Takes.MANY, is_optional=True, completes=Completes.RESOURCE),),
            aliases=("validate_all",),
            examples=("crm configure validate-all", "crm configure validate-all web")),
    Command("commit", "Make the waiting changes, all or none", examples=("commit",)),
    Command("discard", "Drop the waiting changes", aliases=("refresh",), examples=("discard",)),
    Command("diff", "Show the waiting changes", examples=("diff",)),
), aliases=("cfg",))  # fmt: skip

_INVITATION = (
    Option("--valid", "valid", "how long the token is good (1h)", OptionValue.TEXT),
    Option("--port", "port", "where to listen (Raft's port + 1)", OptionValue.INTEGER),
    Option("--authority", "authority", "where the authority's key is", OptionValue.TEXT, Completes.FILE),
)
_OWN_MACHINE = (
    Option("--node", "node", "this node's name; left out: the machine's", OptionValue.TEXT),
    Option("--address", "address", "HOST[:PORT] where others reach it; repeat it", OptionValue.TEXT,
           repeats=True),
    Option("--interface", "interface", "the address of this network interface", OptionValue.TEXT, repeats=True),
    Option("--directory", "directory", "settings; else /etc/haclusterd", OptionValue.TEXT, Completes.FILE),
    Option("--state-directory", "state_directory", "data; else /var/lib/haclusterd", OptionValue.TEXT,
           Completes.FILE),
    Option("--runtime-directory", "runtime_directory", "sockets; else /run/haclusterd", OptionValue.TEXT,
           Completes.FILE),
)  # fmt: skip

CLUSTER = Level("cluster", "The cluster as a whole: members, timers, set-up", (
    Command("status", "Show the state of the cluster", "status", examples=("crm cluster status",)),
    Command("health", "Say in a line, and by the exit status, how the cluster is", "status",
            fixed={"form": "simple"}, examples=("crm cluster health",)),
    Command("wait_for_startup", "Wait until the cluster answers and has a leader", "cluster.members",
            (Parameter("timeout", is_optional=True, is_number=True),),
            examples=("crm cluster wait_for_startup", "crm cluster wait_for_startup 120")),
    Command("members", "Show who belongs to the cluster and who is heard", "cluster.members",
            examples=("crm cluster members",)),
    Command("transfer-leader", "Let another voter lead; wait until it does", "cluster.transfer_leader", (_ANY_NODE,),
            examples=("crm cluster transfer-leader", "crm cluster transfer-leader n2")),
    Command("timing", "Show every timer and what it follows from", "cluster.timing", examples=("crm cluster timing",)),
    Command("export", "Write the whole state, secrets too, for --cib-file", "cluster.export",
            (Parameter("target", completes=Completes.FILE),), examples=("crm cluster export state.cib",)),
    Command("backup", "Write what another cluster can be made of into a new file", "cluster.backup",
            (Parameter("target", completes=Completes.FILE),),
            (Option("--show-secrets", "secrets", "secrets too"),), examples=("crm cluster backup web.backup",)),
    Command("restore", "Make the files of a new cluster from a backup", "",
            (Parameter("backup", completes=Completes.FILE),), (
        Option("--into", "into", "the directory to make", OptionValue.TEXT, Completes.FILE),
        Option("--name", "name", "another name", OptionValue.TEXT),
        Option("--node", "node", "a node, as NAME=HOST:PORT; left out: those of the backup", OptionValue.TEXT,
               repeats=True),
        Option("--witness", "witness", "a node that votes and runs nothing, as NAME=HOST:PORT", OptionValue.TEXT,
               repeats=True),
    ), examples=("crm cluster restore web.backup --into ./web2",)),
    Command("recover", "After the loss of a majority: go on with this node alone", "", (), (
        Option("--i-have-checked", "has_checked", "the other nodes are off, and stay so"),
        Option("--configuration", "configuration", "the node's haclusterd.yaml", OptionValue.TEXT, Completes.FILE),
    ), examples=("crm cluster recover --i-have-checked",)),
    Command("init", "Begin a cluster with this machine; others are invited to it", "", (), (
        Option("-n", "name", "the cluster's name", OptionValue.TEXT),
        Option("--name", "name", "the same", OptionValue.TEXT),
        *_OWN_MACHINE,
        Option("--authority", "authority", "where the authority's key is kept", OptionValue.TEXT, Completes.FILE),
    ), examples=("crm cluster init -n web", "crm cluster init -n web --address 10.0.0.1 --address 10.1.0.1")),
    Command("join", "Make this machine a node of the cluster that invited it", "",
            (Parameter("host", is_optional=True),), (
        Option("--token", "token", "what `invite` printed; left out: it is asked for", OptionValue.TEXT),
        Option("--token-file", "token_file", "a file with the token", OptionValue.TEXT, Completes.FILE),
        *_OWN_MACHINE,
    ), examples=("crm cluster join", "crm cluster join 10.0.0.1 --token -",
                 "crm cluster join 10.0.0.1:7401 --token-file ./token --node n2 --address 10.0.0.2")),
    Command("invite", "Let a new node in: prints what to type there", "cluster.invite",
            (Parameter("node", is_optional=True),), (
        Option("--witness", "witness", "it votes and runs nothing"),
        Option("--learner", "learner", "it gets no vote, also later"),
        *_INVITATION,
        Option("--withdraw", "withdraw", "take back all invitations of this node"),
    ), examples=("crm cluster invite", "crm cluster invite n4 --valid 30min", "crm cluster invite w1 --witness",
                 "crm cluster invite --withdraw")),
    Command("witness", "Let a witness in: it votes and runs nothing", "cluster.invite",
            (Parameter("node", is_optional=True),), _INVITATION, fixed={"witness": True},
            examples=("crm cluster witness w1",)),
    Command("remove", "Let a node leave for good; dead ones too", "cluster.remove", (_NODE,), aliases=("delete",),
            examples=('crm cluster remove n3 --reason "replaced by n4"', "crm cluster remove n3 --wait=10min")),
    Command("address", "Change the addresses of a node while it runs", "cluster.address",
            (_NODE, Parameter("addresses")),
            examples=("crm cluster address n2 10.0.0.2:7400,10.1.0.2:7400",)),
    Command("vote", "Give a member a vote, or take it", "cluster.vote",
            (_NODE, Parameter("state", completes=Completes.CHOICE, choices=("on", "off"))),
            examples=("crm cluster vote n5 off", "crm cluster vote n5 on")),
    Command("certificates", "Show how long certificates are good; renew, revoke", "cluster.certificates",
            (Parameter("action", is_optional=True, completes=Completes.CHOICE, choices=("show", "renew", "revoke")),
             Parameter("node", is_optional=True, completes=Completes.NODE)),
            examples=("crm cluster certificates", "crm cluster certificates renew n3",
                      "crm cluster certificates revoke n3")),
    Command("setup", "Make the files with which the nodes of a new cluster start", "", (), (
        Option("--name", "name", "the cluster's name", OptionValue.TEXT),
        Option("--node", "node", "a node, as NAME=HOST:PORT; once for each", OptionValue.TEXT, repeats=True),
        Option("--witness", "witness", "a node that votes and runs nothing, as NAME=HOST:PORT", OptionValue.TEXT,
               repeats=True),
        Option("--output", "output", "the directory to make", OptionValue.TEXT, Completes.FILE),
    ), examples=("crm cluster setup --name web --node n1=10.0.0.1:7400 --node n2=10.0.0.2:7400 "
                 "--node n3=10.0.0.3:7400 --output ./web",)),
))  # fmt: skip

_PAST = (
    Option("--since", "since", "how far back (10min), or from when (ISO 8601)", OptionValue.TEXT),
    Option("--until", "until", "the same for the end", OptionValue.TEXT),
    Option("--kind", "kinds", "only this kind, as node-lost", OptionValue.TEXT, Completes.KIND,
           repeats=True),
    Option("--limit", "limit", "how many", OptionValue.INTEGER),
)
_VERSION = Parameter("version", is_number=True, completes=Completes.VERSION)

HISTORY = Level("history", "What happened", (
    Command("events", "Show what happened, newest last", "history.events", (), (
        Option("--node", "node", "only of this node", OptionValue.TEXT, Completes.NODE),
        Option("--resource", "resource", "only of this resource", OptionValue.TEXT, Completes.RESOURCE),
        *_PAST,
        Option("--follow", "follow", "go on with what happens from now on, until it is interrupted"),
    ), examples=("crm history events --since 10min", "crm history events --resource web",
                 "crm history events --follow --limit 5",
                 "crm history events --since 2026-06-01T12:00:00Z --until 2026-06-01T13:00:00Z --limit 500",
                 "crm -o json history events --kind node-lost --kind node-fenced")),
    Command("resource", "Show what happened to a resource and to what is in it", "history.events", (_RESOURCE,), _PAST,
            examples=("crm history resource web", "crm history resource web --kind operation-failed")),
    Command("node", "Show what happened on a node", "history.events", (_NODE,), _PAST,
            examples=("crm history node n2 --since 1h",)),
    Command("transition", "Show what a transition did, and why", "history.transition",
            (Parameter("transition", is_optional=True, completes=Completes.TRANSITION),),
            examples=("crm history transition", "crm history transition 4.17")),
    Command("latest", "Show what the newest transition did, and why", "history.transition",
            examples=("crm history latest",)),
    Command("transitions", "List transitions, newest last", "history.transitions", (), (
        Option("--limit", "limit", "how many", OptionValue.INTEGER),
    ), aliases=("peinputs",), examples=("crm history transitions", "crm history transitions --limit 5")),
    Command("info", "Show what this node's history is about", "history.info", examples=("crm history info",)),
    Command("log", "Show what happened, on one node or all", "history.events", (_ANY_NODE,), _PAST,
            examples=("crm history log", "crm history log n2 --since 1h")),
    Command("config", "List the versions of the configuration", "history.config", (), (
        Option("--author", "author", "only by this author", OptionValue.TEXT),
        Option("--limit", "limit", "how many", OptionValue.INTEGER),
    ), examples=("crm history config", "crm history config --author root@n1 --limit 5")),
    Command("show", "Show a version of the configuration", "history.show", (_VERSION,),
            (Option("--show-secrets", "secrets", "do not hide secrets"),), examples=("crm history show 12",)),
    Command("diff", "Show what differs between two versions, or since one", "history.diff",
            (Parameter("old", is_number=True, completes=Completes.VERSION),
             Parameter("new", is_optional=True, is_number=True, completes=Completes.VERSION)), aliases=("wdiff",),
            examples=("crm history diff 12 13", "crm history diff 12")),
    Command("check", "Compare the histories of all nodes; fails when they differ", "history.check",
            examples=("crm history check", "crm -o json history check")),
))  # fmt: skip

TICKET = Level("ticket", "Tickets: what several clusters share, one at a time", (
    Command("show", "Show tickets and what needs them", "ticket.show", (_ANY_TICKET,), aliases=("list", "status"),
            examples=("crm ticket show",)),
    *(
        Command(action, help_, "ticket.change", (_TICKET,), fixed={"action": action},
                examples=(f"crm ticket {action} paris",))
        for action, help_ in (
            ("grant", "Give this cluster a ticket; be sure that no other cluster holds it"),
            ("revoke", "Take a ticket away; what needs it loses it"),
            ("standby", "Stop what needs a ticket, and keep the ticket"),
            ("activate", "End the standby of a ticket"),
            ("delete", "Forget a ticket"),
        )
    ),
), aliases=("site",))  # fmt: skip

MAINTENANCE = Level("maintenance", "Maintenance: nothing is started, stopped or watched meanwhile", (
    Command("on", "Leave the whole cluster, or some resources, wholly alone", "maintenance", (_ANY_RESOURCES,),
            fixed={"state": "on"}, examples=("crm maintenance on", "crm maintenance on web db")),
    Command("off", "End the maintenance", "maintenance", (_ANY_RESOURCES,), fixed={"state": "off"},
            examples=("crm maintenance off", "crm maintenance off web db")),
))  # fmt: skip

_SHADOW = Parameter("name", is_optional=True)
CIB = Level("cib", "Shadow CIBs: copies of the state, to try changes on", (
    Command("new", "Copy the cluster's state, or make an empty one, and use it", "",
            (Parameter("words", Takes.MANY, is_optional=True),),
            examples=("crm cib new trial", "crm cib new trial force", "crm cib new trial empty")),
    Command("use", "Let a copy answer in this crm, or the cluster again (live)", "", (_SHADOW,),
            examples=("crm cib use trial", "crm cib use live")),
    Command("list", "List the copies", "", examples=("crm cib list",)),
    Command("diff", "Show how a copy differs from what is configured", "", (_SHADOW,),
            examples=("crm cib diff trial",)),
    Command("reset", "Copy the cluster's state once more; what was tried is lost", "", (_SHADOW,),
            examples=("crm cib reset trial",)),
    Command("commit", "Make the cluster's configuration that of a copy", "", (_SHADOW,),
            examples=("crm cib commit trial --dry-run", "crm cib commit trial")),
    Command("delete", "Delete a copy", "", (Parameter("name"),), examples=("crm cib delete trial",)),
    Command("import", "Make a copy of a CIB of Pacemaker (XML)", "",
            (Parameter("cib", completes=Completes.FILE), _SHADOW),
            examples=("crm cib import cib.xml", "crm cib import pe-input-12.xml incident")),
))  # fmt: skip

MIGRATE = Level("migrate", "Come here from Pacemaker", (
    Command("check", "Say whether a CIB of Pacemaker may come in, and what would change", "",
            (Parameter("file", is_optional=True, completes=Completes.FILE),),
            (Option("--live", "live", "the CIB of the Pacemaker that runs on this machine"),),
            examples=("crm migrate check cib.xml", "crm migrate check --live", "crm -o json migrate check cib.xml")),
))  # fmt: skip

RA = Level("ra", "Resource agents of this machine: which there are, what they take", (
    Command("classes", "Show the classes of agents, with the providers of ocf", "", examples=("crm ra classes",)),
    Command("list", "List the agents of a class, or of one provider of ocf", "",
            (_CLASS, Parameter("provider", is_optional=True)),
            examples=("crm ra list ocf", "crm ra list ocf heartbeat", "crm ra list stonith")),
    Command("info", "Show what an agent does, its parameters and its operations", "", (Parameter("agent"),),
            aliases=("meta",), examples=("crm ra info IPaddr2", "crm ra info ocf:haclusterd:http-service",
                                         "crm ra info stonith:fence_ipmilan")),
    Command("providers", "Show who provides an agent of this type", "",
            (Parameter("type"), Parameter("class", is_optional=True, completes=Completes.CHOICE, choices=("ocf",))),
            examples=("crm ra providers Dummy",)),
    Command("validate", "Have an agent judge parameters; nothing is started", "",
            (Parameter("agent"), Parameter("parameters", Takes.MANY, is_optional=True)),
            examples=("crm ra validate ocf:haclusterd:exec command=/bin/true",)),
))  # fmt: skip

_AGENT = Parameter("agent", completes=Completes.FILE)
_PARAMETERS = Parameter("parameters", Takes.MANY, is_optional=True)
_ONE_ACTION = (
    Option("--timeout", "timeout", "how long it may take, as 30s (what the agent advises)", OptionValue.TEXT),
    Option("--level", "level", "OCF_CHECK_LEVEL of a monitor", OptionValue.INTEGER),
    Option("--interval", "interval", "of a recurring monitor (a probe without it)",
           OptionValue.TEXT),
    Option("--instance", "instance", "the resource's id (the agent's type)", OptionValue.TEXT),
    Option("--meta", "meta", "a meta-attribute of the action, as notify_type=pre", OptionValue.TEXT, repeats=True),
)  # fmt: skip
_ACTION = Parameter("action", completes=Completes.CHOICE)
AGENT = Level("agent", "For authors of resource agents: write, check, run and try one", (
    Command("new", "Write an agent that works, to begin with", "", (Parameter("name", completes=Completes.FILE),), (
        Option("--language", "language", "in which it is written (python)", OptionValue.TEXT, Completes.CHOICE,
               ("python", "sh")),
        Option("--promotable", "promotable", "with promote, demote and notify"),
    ), examples=("crm agent new my-service", "crm agent new my-service --language sh",
                 "crm agent new my-database --promotable")),
    Command("info", "Show its parameters with their defaults and what they mean", "", (_AGENT,),
            examples=("crm agent info ./my-service", "crm agent info ocf:haclusterd:exec")),
    Command("env", "Show the environment that an action gets from the cluster", "", (_AGENT, _ACTION, _PARAMETERS),
            _ONE_ACTION, examples=("crm agent env ./my-service start args=60",
                                   "crm agent env ./my-service monitor --interval 10s --level 10")),
    Command("run", "Run one action as the daemon would; the exit status is the agent's", "",
            (_AGENT, _ACTION, _PARAMETERS), _ONE_ACTION,
            examples=("crm agent run ./my-service validate-all", "crm agent run ./my-service stop --timeout 10s")),
    Command("lint", "Look for what is wrong with agents, and start nothing; status 1: errors", "",
            (Parameter("agents", Takes.MANY, completes=Completes.FILE),),
            (Option("--strict", "strict", "warnings count as errors"),),
            examples=("crm agent lint ./my-service", "crm agent lint --strict ./my-service ./my-database")),
    Command("test", "Start it, stop it, kill it, and more; status 1: a trial failed", "",
            (_AGENT, _PARAMETERS), (
                Option("--only", "only", "only this trial", OptionValue.TEXT, repeats=True),
                Option("--timeout", "timeout", "of each action, in the place of what the agent advises",
                       OptionValue.TEXT),
                Option("--instance", "instance", "the resource's id (the agent's type)", OptionValue.TEXT),
                Option("--junit", "junit", "write the trials to this file too, as JUnit XML", OptionValue.TEXT,
                       Completes.FILE),
            ), examples=("crm agent test ./my-service --only start --only leak --junit trials.xml",
                         "crm agent test ocf:haclusterd:dummy --only stop-twice")),
))  # fmt: skip

API = Level("api", "Who may ask over the network: tokens of haclusterd-api", (
    Command("token", "Make a token, shown once; list tokens; revoke one", "api.token_add", (
        Parameter("action", completes=Completes.CHOICE, choices=("add", "list", "revoke")),
        Parameter("name", is_optional=True),
    ), (
        Option("--role", "role", "what its bearer may", OptionValue.TEXT, Completes.CHOICE,
               ("viewer", "operator", "admin")),
        Option("--valid", "valid", "for how long, as 720h, or never (90 days)", OptionValue.TEXT),
    ), examples=("crm api token add grafana --role viewer", "crm api token add ansible --role admin --valid 24h",
                 "crm api token list", "crm api token revoke grafana")),
    Command("whoami", "Show as whom one is known, and what one may", "api.whoami", examples=("crm api whoami",)),
))  # fmt: skip

LEVELS: tuple[Level, ...] = (
    AGENT, API, CIB, CLUSTER, CONFIGURE, FENCING, HISTORY, MAINTENANCE, MIGRATE, NODE, RA, RESOURCE, TICKET,
)  # fmt: skip

NEVER_GUESSED = frozenset({
    "address", "apply", "ban", "certificates", "cleanup", "clear", "clearstate", "commit", "confirm",
    "default-timeouts", "delete", "demote", "discard", "edit", "erase", "fence", "filter", "grant", "init",
    "invite", "join", "load", "maintenance", "modgroup", "move", "on", "promote", "recover", "refresh", "remove",
    "rename", "reset", "restart", "restore", "revoke", "rollback", "set", "setup", "standby", "stop", "test",
    "token", "transfer-leader", "unmanage", "vote", "witness",
})  # fmt: skip
"""What stops, removes or restores something, or lets it in: no word that is merely similar leads to it."""
