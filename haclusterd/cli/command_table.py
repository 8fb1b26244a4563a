"""The levels and commands of `crm`: those of the verbs (`verbs/`), and what `crm` does by itself, which stands here."""

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
    Option("--directory", "directory", "settings; else /etc/haclusterd", OptionValue.TEXT, Completes.FILE),
    Option("--state-directory", "state_directory", "data; else /var/lib/haclusterd", OptionValue.TEXT,
           Completes.FILE),
    Option("--runtime-directory", "runtime_directory", "sockets; else /run/haclusterd", OptionValue.TEXT,
           Completes.FILE),
)  # fmt: skip

OF_THE_ROOT = (
    Command("completion", "Print the completion script of a shell", "",
            (Parameter("shell", completes=Completes.CHOICE, choices=("bash",)),),
            examples=('eval "$(crm completion bash)"',)),
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
    Command("recover", "After the loss of a majority: go on with this node alone", "", (), (
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
    Command("commit", "Make the waiting changes, all or none", examples=("commit",), is_guessed=False),
    Command("discard", "Drop the waiting changes", aliases=("refresh",), examples=("discard",), is_guessed=False),
    Command("diff", "Show the waiting changes", examples=("diff",)),
)  # fmt: skip
_BESIDE_VERBS = {"": OF_THE_ROOT, "cluster": OF_CLUSTER, "configure": OF_CONFIGURE}
"""What `crm` does by itself in the levels that have verbs too."""

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
))  # fmt: skip

MIGRATE = Level("migrate", "Come here from Pacemaker", (
    Command("check", "Say whether a CIB of Pacemaker may come in, and what would change", "",
            (Parameter("file", is_optional=True, completes=Completes.FILE, help="the CIB; -: standard input"),),
            (Option("--live", "live", "the CIB of the Pacemaker that runs on this machine"),),
            examples=("crm migrate check cib.xml", "crm migrate check --live", "crm -o json migrate check cib.xml")),
))  # fmt: skip

RA = Level("ra", "Resource agents of this machine: which there are, what they take", (
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


def _level(family: Family) -> Level:
    """Return the level of a family: what asks its verbs, what asks others from there, and what `crm` does itself."""
    others = [each for each in FAMILIES if each is not family]
    commands = [
        _command(verb, words, name)
        for each in (family, *others)
        for verb in each.verbs
        for words in verb.words
        for level, name in [_place(verb, words)]
        if level == family.level
    ]
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
    return Parameter(
        taken.name, takes, not is_required, completes, choices, argument.kind is Kind.INTEGER,
        taken.help or argument.doc, taken.grammar,
    )  # fmt: skip


_VALUES = {Kind.FLAG: OptionValue.NOTHING, Kind.INTEGER: OptionValue.INTEGER}

_ROOT_FAMILY, *_OTHERS = FAMILIES
ROOT = _level(_ROOT_FAMILY)
LEVELS: tuple[Level, ...] = tuple(
    sorted((AGENT, CIB, MIGRATE, RA, *map(_level, _OTHERS)), key=lambda level: level.name)
)
