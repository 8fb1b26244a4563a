"""The verbs of `crm node`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Family, Permission, Verb
from haclusterd.verbs.words import Completes, Taken, Words

_ANY_NODE = Argument("node", Kind.WORD, "which node; left out: the one that answers", completes=Completes.NODE)
_SEVERAL = (
    _ANY_NODE,
    Argument("others", Kind.WORDS, "more nodes, in the same change", completes=Completes.NODE),
    Argument("all", Kind.FLAG, "all nodes", flag="--all"),
)
_NODES = ("node", "others", "all")
_NODE = Argument("node", Kind.WORD, "which node", is_required=True, completes=Completes.NODE)
_ACTION = Argument("action", Kind.WORD, "what to do", is_required=True, choices=("set", "delete", "show"))
_VALUE = Argument("value", Kind.WORD, "its value")

NODE = Family("node", "Nodes: look at them, empty them, let them run, fence them", (
    Verb("node.show", Permission.READ, "Show nodes with their attributes and resources", (_ANY_NODE,), (
        Words(("crm node show", "crm node show n1"), aliases=("server", "status", "print", "list")),
    ), answers=("nodes",)),
    Verb("node.standby", Permission.OPERATE, "Move everything away from nodes and keep it away", (
        *_SEVERAL,
        Argument("lifetime", Kind.WORD, "until when", choices=("reboot", "forever")),
    ), (
        Words(("crm node standby n1 --wait", "crm node standby n1 n2", "crm node standby n1 n2 reboot"),
              takes=(*_NODES, Taken("lifetime", choices=("forever", "reboot"))), is_guessed=False),
    ), answers=("change",)),
    Verb("node.online", Permission.OPERATE, "Let nodes on standby run resources again", _SEVERAL, (
        Words(("crm node online n1", "crm node online n1 n2", "crm node online --all")),
    ), answers=("change",)),
    Verb("node.maintenance", Permission.OPERATE, "Put nodes into maintenance mode: nothing on them is touched", (
        *_SEVERAL,
        Argument("ready", Kind.FLAG, "no longer"),
        Argument("as_crmsh", Kind.FLAG, "write the end of it as crmsh does", is_typed=False),
    ), (
        Words(("crm node maintenance n1", "crm node maintenance n1 n2"), takes=_NODES, is_guessed=False),
        Words(("crm node ready n1", "crm node ready --all"), typed="node ready", help="End the maintenance of nodes",
              fixed={"ready": True}),
    ), answers=("change",)),
    Verb("node.fence", Permission.ADMINISTER, "Power-cycle a node, whatever its state", (
        _NODE,
        Argument("tolerance", Kind.WORD, "do nothing when it was fenced within this time, as 5min", flag="--tolerance"),
    ), (
        Words(('crm node fence n3 --reason "does not answer"', "crm node fence n3 --tolerance 5min"), is_guessed=False),
    ), answers=("fence",)),
    Verb("node.attribute", Permission.OPERATE, "Set, delete or show an attribute of a node, for ever", (
        _ANY_NODE, _ACTION,
        Argument("name", Kind.WORD, "which attribute; left out: all are shown"),
        _VALUE,
        Argument("lifetime", Kind.WORD, "until when; left out: reboot", choices=("reboot", "forever")),
        Argument("dampen_ms", Kind.INTEGER, "write it once nothing newer came for so long", maximum=3_600_000,
                 is_typed=False),
        Argument("private", Kind.FLAG, "for agents alone: no rule sees it", flag="--private"),
    ), (
        Words(("crm node attribute n1 set rack 4", "crm node attribute n1 show"),
              takes=(Taken("node", is_required=True), "action", "name", "value"), fixed={"lifetime": "forever"}),
        Words(("crm node status-attr n1 set '#health-smart' red", "crm node status-attr n1 show"),
              typed="node status-attr", help="The same for one that the node's next boot forgets",
              takes=(Taken("node", is_required=True), "action", "name", "value", "private"),
              fixed={"lifetime": "reboot"}),
    ), answers=("node-attributes", "change", "fence")),
    Verb("node.utilization", Permission.ADMINISTER, "Set, delete or show a capacity of a node", (
        _NODE, _ACTION,
        Argument("name", Kind.WORD, "which one; left out: all are shown"),
        _VALUE,
    ), (
        Words(("crm node utilization n1 set memory 64000", "crm node utilization n1 show")),
    ), answers=("setting", "change")),
    Verb("node.attributes", Permission.READ, "Show node attributes by lifetime", (
        Argument("node", Kind.WORD, "which node; left out: the one that answers"),
        Argument("name", Kind.WORD, "only this attribute"),
        Argument("lifetime", Kind.WORD, "only those", choices=("reboot", "forever")),
        Argument("all", Kind.FLAG, "of all nodes"),
    ), answers=("node-attributes",)),
))  # fmt: skip
