"""The verbs of `crm cluster`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Completes, Parameter, Taken, Words

_NODE = Argument("node", Kind.WORD, "which", is_required=True, completes=Completes.NODE)

CLUSTER = Family("cluster", "The cluster as a whole: members, timers, set-up", (
    Verb("cluster.members", Permission.READ, "Show the members and which of them are heard", (), (
        Words(("crm cluster members",)),
        Words(("crm cluster wait_for_startup", "crm cluster wait_for_startup 120"), typed="cluster wait_for_startup",
              help="Wait until the cluster answers and has a leader",
              takes=(Parameter("timeout", is_optional=True, is_number=True),)),
    ), cost=Cost.LIGHT, answers=("members",)),
    Verb("cluster.transfer_leader", Permission.OPERATE, "Let another voter lead; wait until it does", (
        Argument("node", Kind.WORD, "who; left out: another one that can", completes=Completes.NODE),
    ), (
        Words(("crm cluster transfer-leader", "crm cluster transfer-leader n2"), is_guessed=False),
    ), cost=Cost.LIGHT, answers=("leader",)),
    Verb("cluster.timing", Permission.READ, "Show every timer and how it is derived", (), (
        Words(("crm cluster timing",)),
        Words(("crm sbd status",), typed="sbd status", help="Show the watchdogs of nodes, and every timer"),
    ), cost=Cost.LIGHT, answers=("timing",)),
    Verb("cluster.export", Permission.ADMINISTER, "Write the whole state, secrets too, for --cib-file", (
        Argument("at", Kind.WORD, "as it was then: so long ago (10min), or a time (ISO 8601)", is_typed=False),
    ), (
        Words(("crm cluster export state.cib",), takes=(Parameter("target", completes=Completes.FILE),)),
    ), cost=Cost.LONG, only_tells=True, answers=("state",)),
    Verb("cluster.backup", Permission.ADMINISTER, "Write a backup of the cluster to a new file", (
        Argument("secrets", Kind.FLAG, "secrets too", flag="--show-secrets"),
    ), (
        Words(("crm cluster backup web.backup",), takes=(Parameter("target", completes=Completes.FILE), "secrets")),
    ), cost=Cost.LONG, only_tells=True, answers=("backup",)),
    Verb("cluster.invite", Permission.ADMINISTER, "Invite a new node: prints the command to type there", (
        Argument("node", Kind.WORD, "its name; left out: any that is free"),
        Argument("witness", Kind.FLAG, "it votes and runs nothing", flag="--witness"),
        Argument("learner", Kind.FLAG, "it gets no vote, also later", flag="--learner"),
        Argument("valid", Kind.WORD, "how long the token is good (1h)", flag="--valid"),
        Argument("port", Kind.INTEGER, "where to listen (Raft's port + 1)", minimum=1, maximum=65535, flag="--port"),
        Argument("authority", Kind.WORD, "where the authority's key is", flag="--authority", completes=Completes.FILE),
        Argument("withdraw", Kind.FLAG, "take back all invitations of this node", flag="--withdraw"),
    ), (
        Words(("crm cluster invite", "crm cluster invite n4 --valid 30min", "crm cluster invite w1 --witness",
               "crm cluster invite --withdraw"), is_guessed=False),
        Words(("crm cluster add n4",), typed="cluster add", help="The same as `invite`, for one node",
              takes=(Taken("node", is_required=True),), is_guessed=False),
        Words(("crm cluster witness w1",), typed="cluster witness", help="Let a witness in: it votes and runs nothing",
              takes=("node", "valid", "port", "authority"), fixed={"witness": True}, is_guessed=False),
    ), cost=Cost.LIGHT, answers=("invitation",)),
    Verb("cluster.remove", Permission.ADMINISTER, "Remove a node for good, also a dead one", (_NODE,), (
        Words(('crm cluster remove n3 --reason "replaced by n4"', "crm cluster remove n3 --wait=10min"),
              aliases=("delete",), is_guessed=False),
        Words(('crm node delete n3 --reason "replaced by n4"',), typed="node delete",
              help="Let a node leave for good (the same as `cluster remove`)", is_guessed=False),
    ), cost=Cost.LIGHT, answers=("membership",)),
    Verb("cluster.address", Permission.ADMINISTER, "Change the addresses of a node while it runs", (
        _NODE,
        Argument("addresses", Kind.WORD, "HOST:PORT, with commas", is_required=True),
    ), (
        Words(("crm cluster address n2 10.0.0.2:7400,10.1.0.2:7400",), is_guessed=False),
    ), cost=Cost.LIGHT, answers=("membership",)),
    Verb("cluster.vote", Permission.ADMINISTER, "Give a member a vote, or take it", (
        _NODE,
        Argument("state", Kind.WORD, "whether it has one", is_required=True, choices=("on", "off")),
    ), (
        Words(("crm cluster vote n5 off", "crm cluster vote n5 on"), is_guessed=False),
    ), cost=Cost.LIGHT, answers=("membership",)),
    Verb("cluster.certificates", Permission.ADMINISTER, "Show when certificates expire; renew or revoke them", (
        Argument("action", Kind.WORD, "what to do", choices=("show", "renew", "revoke")),
        Argument("node", Kind.WORD, "a node, or a fingerprint", completes=Completes.NODE),
    ), (
        Words(("crm cluster certificates", "crm cluster certificates renew n3", "crm cluster certificates revoke n3"),
              is_guessed=False),
    ), cost=Cost.LIGHT, answers=("certificates", "membership")),
    Verb("cluster.names", Permission.READ, "List names, for completion", (
        Argument("kind", Kind.WORD, "what is looked for: versions and transitions are listed only when it says so"),
    ), answers=("names",)),
))  # fmt: skip
