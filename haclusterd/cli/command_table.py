"""The levels and commands of `crm`: those of the verbs (`verbs/`), and what `crm` does by itself, which is here."""

from collections.abc import Mapping

from haclusterd.cli.grammar import Command, Level
from haclusterd.model.ids import RUN_HERE
from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.table import FAMILIES
from haclusterd.verbs.verb import Family, Verb
from haclusterd.verbs.words import Completes, Option, OptionValue, Parameter, Taken, Takes, Words

_CLASS = Parameter("class", completes=Completes.CHOICE, choices=RUN_HERE, help="which class")
_OWN_MACHINE = (
    Option("--node", "node", "this node's name; left out: the machine's", OptionValue.TEXT),
    Option("--address", "address", "HOST[:PORT] where others reach it; repeat it", OptionValue.TEXT,
           repeats=True),
    Option("--interface", "interface", "the address of this network interface", OptionValue.TEXT, repeats=True),
    Option("-i", "interface", "the same", OptionValue.TEXT, repeats=True),
    Option("--directory", "directory", "settings; else /etc/haclusterd", OptionValue.TEXT, Completes.FILE),
    Option("--state-directory", "state_directory", "data; else /var/lib/haclusterd", OptionValue.TEXT,
           Completes.FILE),
    Option("--runtime-directory", "runtime_directory", "sockets; else /run/haclusterd", OptionValue.TEXT,
           Completes.FILE),
)  # fmt: skip

OF_THE_ROOT = (
    Command("monitor", "Show the cluster as it changes; ? shows the keys, q ends it", "", (),
            (Option("--once", "once", "print one picture and end, as where there is no terminal"),
             Option("-1", "once", "the same")),
            examples=("crm monitor", "crm monitor --once")),
    Command("completion", "Print the completion script of a shell", "",
            (Parameter("shell", completes=Completes.CHOICE, choices=("bash", "fish", "zsh")),),
            examples=('eval "$(crm completion bash)"', "crm completion zsh", "crm completion fish")),
)  # fmt: skip
OF_CLUSTER = (
    Command("restore", "Make the files of a new cluster from a backup", "",
            (Parameter("backup", completes=Completes.FILE, help="what `crm cluster backup` wrote"),), (
        Option("--into", "into", "the directory to make", OptionValue.TEXT, Completes.FILE),
        Option("--name", "name", "another name", OptionValue.TEXT),
        Option("--node", "node", "a node, as NAME=HOST:PORT; left out: those of the backup", OptionValue.TEXT,
               repeats=True),
        Option("--witness", "witness", "a node that votes and runs nothing, as NAME=HOST:PORT", OptionValue.TEXT,
               repeats=True),
    ), examples=("crm cluster restore web.backup --into ./web2",), is_guessed=False),
    Command("recover", "After the loss of a majority: continue with this node alone", "", (), (
        Option("--i-have-checked", "has_checked", "the other nodes are off, and stay so"),
        Option("--configuration", "configuration", "the node's haclusterd.yaml", OptionValue.TEXT, Completes.FILE),
    ), examples=("crm cluster recover --i-have-checked",), is_guessed=False),
    Command("this-is", "Go on as a node with the disk or image of another machine", "",
            (Parameter("node", help="the node that it is"),), (
        Option("--i-have-checked", "has_checked", "the other machine is off, and stays so"),
        Option("--configuration", "configuration", "the node's haclusterd.yaml", OptionValue.TEXT, Completes.FILE),
    ), examples=("crm cluster this-is n2", "crm cluster this-is n2 --i-have-checked"), is_guessed=False),
    Command("init", "Begin a cluster with this machine; others are invited to it", "", (), (
        Option("-n", "name", "the cluster's name", OptionValue.TEXT),
        Option("--name", "name", "the same", OptionValue.TEXT),
        *_OWN_MACHINE,
        Option("--authority", "authority", "where the authority's key is kept", OptionValue.TEXT, Completes.FILE),
    ), examples=("crm cluster init -n web", "crm cluster init -n web --address 10.0.0.1 --address 10.1.0.1"),
            is_guessed=False),
    Command("join", "Make this machine a node of the cluster that invited it", "",
            (Parameter("host", is_optional=True, help="a member, HOST[:PORT]; left out: as the token says"),), (
        Option("-c", "host", "the same as HOST", OptionValue.TEXT),
        Option("--token", "token", "what `invite` printed; left out: it is asked for", OptionValue.TEXT),
        Option("--token-file", "token_file", "a file with the token", OptionValue.TEXT, Completes.FILE),
        *_OWN_MACHINE,
    ), examples=("crm cluster join", "crm cluster join 10.0.0.1 --token -",
                 "crm cluster join 10.0.0.1:7401 --token-file ./token --node n2 --address 10.0.0.2"), is_guessed=False),
    Command("setup", "Make the files with which the nodes of a new cluster start", "", (), (
        Option("--name", "name", "the cluster's name", OptionValue.TEXT),
        Option("--node", "node", "a node, as NAME=HOST:PORT; once for each", OptionValue.TEXT, repeats=True),
        Option("--witness", "witness", "a node that votes and runs nothing, as NAME=HOST:PORT", OptionValue.TEXT,
               repeats=True),
        Option("--output", "output", "the directory to make", OptionValue.TEXT, Completes.FILE),
    ), examples=("crm cluster setup --name web --node n1=10.0.0.1:7400 --node n2=10.0.0.2:7400 "
                 "--node n3=10.0.0.3:7400 --output ./web",), is_guessed=False),
)  # fmt: skip
OF_CONFIGURE = (
    Command("commit", "Make the waiting changes, all or none", "",
            (Parameter("words", Takes.MANY, is_optional=True, completes=Completes.CHOICE,
                       choices=("force", "replace"), help="force: also what is refused as unsafe"),),
            examples=("commit", "commit force"), is_guessed=False),
    Command("discard", "Drop the waiting changes", aliases=("refresh",), examples=("discard",), is_guessed=False),
    Command("diff", "Show the waiting changes", examples=("diff",)),
)  # fmt: skip

_SWITCH = ("yes", "no", "true", "false")
_SHADOW = Parameter("name", is_optional=True, help="which copy; left out: the one in use")
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
            examples=("crm cib reset trial",), is_guessed=False),
    Command("commit", "Make the cluster's configuration that of a copy", "", (_SHADOW,),
            examples=("crm cib commit trial --dry-run", "crm cib commit trial"), is_guessed=False),
    Command("delete", "Delete a copy", "", (Parameter("name"),), examples=("crm cib delete trial",), is_guessed=False),
    Command("import", "Make a copy of a CIB of Pacemaker (XML)", "",
            (Parameter("cib", completes=Completes.FILE), _SHADOW),
            examples=("crm cib import cib.xml", "crm cib import pe-input-12.xml incident")),
    Command("empty", "Write an empty state into a new file, for --cib-file", "",
            (Parameter("target", completes=Completes.FILE, help="*.xml: a CIB of Pacemaker; it must not exist"),),
            examples=("crm cib empty state.cib", "crm cib empty cib.xml")),
))  # fmt: skip

MIGRATE = Level("migrate", "Migrate from Pacemaker", (
    Command("check", "Say whether a CIB of Pacemaker may come in, and what would change", "",
            (Parameter("file", is_optional=True, completes=Completes.FILE,
                       help="the CIB, or a script of crmsh, which does not say what runs; -: standard input"),),
            (Option("--live", "live", "the CIB of the Pacemaker that runs on this machine"),),
            examples=("crm migrate check cib.xml", "crm migrate check --live", "crm -o json migrate check cib.xml")),
))  # fmt: skip

RA = Level("ra", "Resource agents of this machine, and their parameters", (
    Command("classes", "Show the classes of agents, with the providers of ocf", "", examples=("crm ra classes",)),
    Command("list", "List the agents of a class, or of one provider of ocf", "",
            (_CLASS, Parameter("provider", is_optional=True, help="of class ocf; left out: all")),
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

_AGENT = Parameter("agent", completes=Completes.FILE, help="a file, TYPE, or CLASS:PROVIDER:TYPE")
_PARAMETERS = Parameter("parameters", Takes.MANY, is_optional=True, help="of the resource: NAME=VALUE")
_ONE_ACTION = (
    Option("--timeout", "timeout", "how long it may take, as 30s (what the agent advises)", OptionValue.TEXT),
    Option("--level", "level", "OCF_CHECK_LEVEL of a monitor", OptionValue.INTEGER),
    Option("--interval", "interval", "of a recurring monitor (a probe without it)",
           OptionValue.TEXT),
    Option("--instance", "instance", "the resource's id (the agent's type)", OptionValue.TEXT),
    Option("--meta", "meta", "a meta-attribute of the action, as notify_type=pre", OptionValue.TEXT, repeats=True),
)  # fmt: skip
_ACTION = Parameter("action", completes=Completes.CHOICE, help="start, stop, monitor, ...")
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
            (Parameter("agents", Takes.MANY, completes=Completes.FILE, help="files, TYPE, or CLASS:PROVIDER:TYPE"),),
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
                         "crm agent test ocf:haclusterd:dummy --only stop-twice"), is_guessed=False),
))  # fmt: skip

_NAME = Parameter("name", help="its name")
_WORDS = Parameter("words", Takes.MANY, is_optional=True)
_FILE = Completes.FILE


def _setting(name: str, help_: str, *examples: str, choices: tuple[str, ...] = ()) -> Command:
    value = Parameter("value", completes=Completes.CHOICE if choices else Completes.NOTHING, choices=choices)
    return Command(name, help_, "", (value,), examples=examples)


OPTIONS = Level("options", "Settings of crm for the user who runs it", (
    Command("show", "Show all settings, or one", "", (Parameter("name", is_optional=True, help="which"),),
            examples=("crm options show", "crm options show editor")),
    Command("set", "Change a setting", "", (_NAME, Parameter("value", help="its value")),
            examples=("crm options set wait yes",)),
    Command("save", "Keep the settings for later uses of crm", examples=("crm options save",)),
    Command("reset", "Let all settings be as they were made", examples=("crm options reset",), is_guessed=False),
    _setting("editor", "Which program edits texts; else $VISUAL, $EDITOR or vi", "crm options editor vim"),
    _setting("pager", "Through which program long answers are shown on a terminal", "crm options pager 'less -R'"),
    _setting("output", "Whether colours are used", "crm options output plain",
             choices=("plain", "color", "color-always")),
    _setting("colorscheme", "Colours of keywords, ids, names, values, scores, references",
             "crm options colorscheme yellow,normal,blue,red,green,magenta"),
    _setting("wait", "Whether changes wait until they are so", "crm options wait yes", choices=_SWITCH),
    _setting("sort-elements", "Whether `configure show` sorts what it shows",
             "crm options sort-elements no", choices=_SWITCH),
    _setting("check-frequency", "When waiting changes are judged", "crm options check-frequency on-verify",
             choices=("always", "on-verify", "never")),
    _setting("check-mode", "Whether agents are asked what they say of parameters", "crm options check-mode relaxed",
             choices=("strict", "relaxed")),
    _setting("compat", "Whether move, ban and delete do as crmsh does", "crm options compat crmsh",
             choices=("none", "crmsh")),
))  # fmt: skip

CIBSTATUS = Level("cibstatus", "Assumptions about the state, for `configure simulate`", (
    Command("load", "Begin with another state: live, shadow:NAME, or a file", "",
            (Parameter("source", completes=_FILE, help="live, shadow:NAME, a CIB (XML), or a state file"),),
            examples=("crm cibstatus load live", "crm cibstatus load cib.xml")),
    Command("save", "Write the supposed state, secrets too, into a new file", "",
            (Parameter("target", completes=_FILE, help="the file; it must not exist"),),
            examples=("crm cibstatus save supposed.cib",)),
    Command("origin", "Say which state it is", examples=("crm cibstatus origin",)),
    Command("show", "Show the supposed state, or what is supposed (changed)", "",
            (Parameter("changed", is_optional=True, completes=Completes.CHOICE, choices=("changed",)),),
            examples=("crm cibstatus show", "crm cibstatus show changed")),
    Command("node", "Suppose that a node is there, or has died", "",
            (Parameter("node", completes=Completes.NODE),
             Parameter("state", completes=Completes.CHOICE, choices=("online", "offline", "unclean"))),
            examples=("crm cibstatus node n1 unclean",), is_guessed=False),
    Command("op", "Suppose how an operation ended", "",
            (Parameter("action", help="probe, start, stop, monitor, monitor:10"),
             Parameter("resource", completes=Completes.RESOURCE),
             Parameter("words", Takes.MANY, help="exit code or its name, status (done, timeout, ...), node")),
            examples=("crm cibstatus op monitor web not_running n1", "crm cibstatus op start web 1 n2"),
            is_guessed=False),
    Command("quorum", "Suppose that there is a quorum, or none", "", (Parameter("value", help="true or false"),),
            examples=("crm cibstatus quorum false",)),
    Command("ticket", "Suppose that a ticket is granted, revoked, on standby or active", "",
            (Parameter("ticket", completes=Completes.TICKET),
             Parameter("action", completes=Completes.CHOICE, choices=("grant", "revoke", "standby", "activate"))),
            examples=("crm cibstatus ticket paris grant",), is_guessed=False),
    Command("simulate", "Show what the cluster would do in the supposed state", "", (_WORDS,), aliases=("run",),
            examples=("crm cibstatus simulate", "crm cibstatus run nograph")),
))  # fmt: skip

_GIVEN = Parameter("values", Takes.MANY, is_optional=True, help="NAME=VALUE")
_SCRIPT = Parameter("script", completes=Completes.CHOICE, help="its name, as `crm script list` has it")
SCRIPT = Level("script", "Well-known services, each configured by one command", (
    Command("list", "List the scripts", "", (Parameter("words", Takes.MANY, is_optional=True, help="all, names"),),
            examples=("crm script list", "crm script list names")),
    Command("show", "Show what a script makes, and its parameters", "", (_SCRIPT,),
            examples=("crm script show virtual-ip",)),
    Command("verify", "Show what a script would configure; nothing is changed", "", (_SCRIPT, _GIVEN),
            examples=("crm script verify virtual-ip id=vip ip=192.0.2.10",)),
    Command("run", "Configure what a script makes", "", (_SCRIPT, _GIVEN),
            examples=("crm script run virtual-ip id=vip ip=192.0.2.10 --dry-run",), is_guessed=False),
    Command("json", "The same for programs: list, show, verify or run, as a list in JSON", "",
            (Parameter("request"),),
            examples=("""crm script json '["show", "virtual-ip"]'""",)),
))  # fmt: skip

_ANY_NAME = Parameter("name", is_optional=True, help="which configuration; left out: the one that is loaded")
TEMPLATE = Level("template", "Configurations in preparation, made of scripts", (
    Command("new", "Begin a configuration of one or more scripts", "",
            (Parameter("words", Takes.MANY, help="[NAME] SCRIPT... [params NAME=VALUE...]"),),
            examples=("crm template new shop virtual-ip params ip=192.0.2.10",)),
    Command("list", "List configurations, and scripts they can be made of", "",
            (Parameter("what", is_optional=True, completes=Completes.CHOICE, choices=("templates", "configs")),),
            examples=("crm template list", "crm template list configs")),
    Command("load", "Let the next commands in this crm be about a configuration", "", (_NAME,),
            examples=("crm template load shop",)),
    Command("edit", "Change parameters in $EDITOR", "", (_ANY_NAME,), examples=("crm template edit shop",),
            is_guessed=False),
    Command("show", "Show what a configuration makes, as crm statements", "", (_ANY_NAME,),
            examples=("crm template show shop",)),
    Command("apply", "Configure it: update adds, replace removes all else", "",
            (Parameter("method", is_optional=True, completes=Completes.CHOICE, choices=("update", "replace")),
             _ANY_NAME),
            examples=("crm template apply update shop --dry-run",), is_guessed=False),
    Command("delete", "Forget a configuration in preparation", "",
            (_NAME, Parameter("force", is_optional=True, completes=Completes.CHOICE, choices=("force",))),
            examples=("crm template delete shop",), is_guessed=False),
))  # fmt: skip

_REGEX = Parameter("pattern", is_optional=True, help="a regular expression; clear: forget all")
OF_HISTORY = (
    Command("limit", "Show only this time from now on, in this crm; without words: all", "",
            (Parameter("since", is_optional=True, help="10min (ago), 10:15 (today), or ISO 8601"),
             Parameter("until", is_optional=True, help="the same for the end")),
            aliases=("timeframe",), examples=("crm history limit 1h", "crm history limit 10:15 10:30")),
    Command("detail", "Show more of each event (1) in this crm, or no longer (0)", "",
            (Parameter("level", completes=Completes.CHOICE, choices=("0", "1")),), examples=("crm history detail 1",)),
    Command("exclude", "Leave events out of what is shown in this crm", "", (_REGEX,),
            examples=("crm history exclude 'monitor of .* succeeded'", "crm history exclude clear")),
    Command("setnodes", "Show events of these nodes alone in this crm", "",
            (Parameter("nodes", Takes.MANY, completes=Completes.NODE),), examples=("crm history setnodes n1 n2",)),
    Command("source", "Look at a file of `crm report`, or at the cluster again (live)", "",
            (Parameter("source", is_optional=True, completes=_FILE, help="live, or the file"),),
            examples=("crm history source", "crm history source live")),
    Command("refresh", "Ask the cluster again, as every command does", "",
            (Parameter("force", is_optional=True, completes=Completes.CHOICE, choices=("force",)),),
            examples=("crm history refresh",)),
    Command("session", "Keep what is looked at, to look at it later", "",
            (Parameter("action", is_optional=True, completes=Completes.CHOICE,
                       choices=("save", "load", "delete", "pack", "update", "list")),
             Parameter("name", is_optional=True, help="of the session")),
            examples=("crm history session save outage", "crm history session list"), is_guessed=False),
    Command("graph", "Draw a transition, for Graphviz", "",
            (Parameter("transition", is_optional=True, completes=Completes.TRANSITION, help="left out: the newest"),
             Parameter("language", is_optional=True, completes=Completes.CHOICE, choices=("dot",)),
             Parameter("target", is_optional=True, completes=_FILE),
             Parameter("picture", is_optional=True, completes=Completes.CHOICE, choices=("dot", "svg", "png"))),
            examples=("crm history graph 4.17", "crm history graph 4.17 dot last.dot")),
)  # fmt: skip

_NODES = Parameter("nodes", Takes.MANY, is_optional=True, completes=Completes.NODE, help="left out: this machine")
_MEMBERS = Parameter("nodes", Takes.MANY, is_optional=True, completes=Completes.NODE, help="left out: all")
_ALL = (Option("--all", "all", "on all nodes, by ssh"),)
OF_SERVICES = (
    Command("start", "Start the cluster's daemons", "", (_NODES,), _ALL,
            examples=("crm cluster start", "crm cluster start --all"), is_guessed=False),
    Command("stop", "Move resources away, and stop the cluster's daemons", "", (_NODES,), _ALL,
            examples=("crm cluster stop", "crm cluster stop n2"), is_guessed=False),
    Command("restart", "Move resources away and restart the daemons, node after node", "", (_NODES,), _ALL,
            examples=("crm cluster restart",), is_guessed=False),
    Command("enable", "Start the daemons when the machine boots", "", (_NODES,), _ALL,
            examples=("crm cluster enable --all",), is_guessed=False),
    Command("disable", "Do not start the daemons when the machine boots", "", (_NODES,), _ALL,
            examples=("crm cluster disable n3",), is_guessed=False),
    Command("run", "Run a shell command on nodes, by ssh", "",
            (Parameter("shell", help="the command, as one word"), _MEMBERS),
            examples=("crm cluster run 'cat /proc/uptime'", "crm cluster run uptime n1 n2"), is_guessed=False),
    Command("copy", "Copy a file to the other nodes, by scp", "",
            (Parameter("path", completes=_FILE), _MEMBERS), examples=("crm cluster copy /etc/motd",), is_guessed=False),
    Command("diff", "Show how a file differs between nodes, by ssh", "",
            (Parameter("path", completes=_FILE), _MEMBERS),
            (Option("--checksum", "checksum", "compare checksums alone"),),
            examples=("crm cluster diff /etc/hosts", "crm cluster diff /etc/hosts --checksum")),
)  # fmt: skip

_FAULT_DEVICE = Parameter("device", is_optional=True, completes=Completes.DEVICE, help="its UUID")
OF_GPU = (
    Command("explain", "Explain a fault: how it is seen, how it ends, what to do", "",
            (Parameter("code", is_optional=True, help="as in a reason: hang, xid-79; left out: all"),),
            examples=("crm gpu explain xid-79", "crm gpu explain")),
    Command("lint", "Check a table of faults; exit status 1 when it has errors", "",
            (Parameter("file", is_optional=True, completes=Completes.FILE, help="left out: the one of this node"),),
            examples=("crm gpu lint gpu-faults.toml",)),
    Command("simulate-fail", "Show a device of this node as failed, as a simulation", "",
            (_FAULT_DEVICE,), (
        Option("--state", "state", "the state to be shown (failed)", OptionValue.TEXT, Completes.CHOICE,
               ("degraded", "drain", "failed", "unknown")),
        Option("--for", "duration", "how long, as 10min (10min)", OptionValue.TEXT),
        Option("--end", "end", "end it now"),
    ), examples=("crm gpu simulate-fail GPU-00000000-0000-0000-0000-000000000003 --for 2min",
                 "crm gpu simulate-fail"), is_guessed=False),
)  # fmt: skip

_BESIDE_VERBS = {
    "gpu": OF_GPU,
    "": OF_THE_ROOT, "cluster": (*OF_CLUSTER, *OF_SERVICES), "configure": OF_CONFIGURE, "history": OF_HISTORY,
}  # fmt: skip
"""What `crm` does by itself in the levels that have verbs too."""


def _level(family: Family) -> Level:
    """Return the level of a family: what asks its verbs, what asks others from there, and what `crm` does itself."""
    here = [each for each in _PLACES if each[1] == family.level]
    here.sort(key=lambda each: each[0] is not family)
    commands = [_command(verb, words, name) for _, _, name, verb, words in here]
    return Level(family.level, family.help, (*commands, *_BESIDE_VERBS.get(family.level, ())), family.aliases)


def _place(verb: Verb, words: Words) -> tuple[str, str]:
    """Return level and command."""
    typed = words.typed.split() or verb.name.replace("_", "-").split(".")
    return ("", typed[0]) if len(typed) == 1 else (typed[0], typed[1])


def _command(verb: Verb, words: Words, name: str) -> Command:
    known = {each.name: each for each in verb.arguments}
    taken: tuple[str | Taken | Parameter | Option, ...] = words.takes or ()
    if words.takes is None:
        taken = tuple(
            each.name
            for each in verb.arguments
            if each.is_typed and each.kind is not Kind.TEXT and each.name not in words.fixed
        )
    parameters: list[Parameter] = []
    options: list[Option] = []
    for each in taken:
        one = _one(known, Taken(each) if isinstance(each, str) else each)
        if isinstance(one, Parameter):
            parameters.append(one)
        else:
            options.append(one)
    return Command(
        name, words.help or verb.help, verb.name, tuple(parameters), tuple(options), words.aliases, words.examples,
        words.fixed, words.is_statement, words.is_guessed,
    )  # fmt: skip


def _one(known: dict[str, Argument], taken: Taken | Parameter | Option) -> Parameter | Option:
    """Return how one argument is taken: as the verb describes it, but for what the command says otherwise."""
    if not isinstance(taken, Taken):
        return taken
    argument = known[taken.name]
    flag = argument.flag if taken.flag is None else taken.flag
    choices = argument.choices if taken.choices is None else taken.choices
    completes = Completes.CHOICE if choices else argument.completes
    is_list = argument.kind is Kind.WORDS
    if flag:
        value = _VALUES.get(argument.kind, OptionValue.TEXT)
        return Option(flag, taken.name, taken.help or argument.doc, value, completes, choices, is_list)
    is_required = argument.is_required if taken.is_required is None else taken.is_required
    takes = taken.takes or (Takes.MANY if is_list else Takes.ONE)
    is_number = argument.kind is Kind.INTEGER if taken.is_number is None else taken.is_number
    return Parameter(
        taken.name, takes, not is_required, completes, choices, is_number,
        taken.help or argument.doc, taken.grammar,
    )  # fmt: skip


_VALUES = {Kind.FLAG: OptionValue.NOTHING, Kind.INTEGER: OptionValue.INTEGER}

_PLACES = tuple(
    (family, *_place(verb, words), verb, words) for family in FAMILIES for verb in family.verbs for words in verb.words
)
"""Where all words of all verbs stand: the family, level and command, the verb and the words."""
_ROOT_FAMILY, *_OTHERS = FAMILIES
ROOT = _level(_ROOT_FAMILY)
LEVELS: tuple[Level, ...] = tuple(
    sorted((AGENT, CIB, CIBSTATUS, MIGRATE, OPTIONS, RA, SCRIPT, TEMPLATE, *map(_level, _OTHERS)),
           key=lambda level: level.name)
)
BELOW: Mapping[str, tuple[str, ...]] = {
    "configure": ("assist", "cib", "cibstatus", "ra", "template"), "cib": ("cibstatus",),
}  # fmt: skip
"""The levels that can be named inside others, as in crmsh."""
