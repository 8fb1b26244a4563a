"""The verbs of `crm fencing`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Completes, Words

_ANY_NODE = Argument("node", Kind.WORD, "which node; left out: all", completes=Completes.NODE)
_NODE = Argument("node", Kind.WORD, "which node", is_required=True, completes=Completes.NODE)

FENCING = Family("fencing", "Fencing: what can fence whom, whether it is proven, what happened", (
    Verb("fencing.list", Permission.READ, "Show what can fence each node, and what is proven", (_ANY_NODE,), (
        Words(("crm fencing list",), aliases=("show", "status")),
    ), answers=("fencing",)),
    Verb("fencing.test", Permission.ADMINISTER, "Fence a node for real, to prove its device", (
        _NODE,
        Argument("tolerance", Kind.WORD, "do nothing when it was fenced within this time, as 5min", flag="--tolerance"),
    ), (
        Words(("crm fencing test n3 --wait",), is_guessed=False),
    ), answers=("fence",)),
    Verb("fencing.cleanup", Permission.OPERATE, "Forget ended fencings, so that failed ones are tried again", (
        _ANY_NODE,
    ), (
        Words(("crm fencing cleanup", "crm fencing cleanup n3"), is_guessed=False),
    ), cost=Cost.LIGHT),
    Verb("fencing.history", Permission.READ, "Show what was fenced, and what is being fenced", (_ANY_NODE,), (
        Words(("crm fencing history", "crm fencing history n3")),
    ), cost=Cost.LIGHT, answers=("fencing_history",)),
    Verb("fencing.confirm", Permission.ADMINISTER, "Confirm that a lost node is down, when no device can", (
        _NODE,
        Argument("has_checked", Kind.FLAG, "I have looked: it is powered off", flag="--i-have-checked"),
    ), (
        Words(("crm fencing confirm n3 --i-have-checked",), is_guessed=False),
        Words(("crm node clearstate n3 --i-have-checked",), typed="node clearstate",
              help="Say that a lost node is down (the same as `fencing confirm`)", is_guessed=False),
    ), cost=Cost.LIGHT, answers=("fencing_confirmed",)),
    Verb("fencing.topology", Permission.READ, "Show the levels of devices", (_ANY_NODE,), (
        Words(("crm fencing topology",)),
    ), answers=("fencing_topology",)),
    Verb("fencing.plan", Permission.READ, "Show what would happen if a node died now", (_NODE,), (
        Words(("crm fencing plan n3",)),
    ), cost=Cost.LONG, answers=("fencing_plan",)),
), aliases=("stonith",))  # fmt: skip
