"""The one table of cluster properties and the one of meta-attributes: name, type, default, aliases, meaning.

Documentation, verification, completion and the readers in `model.properties` are made from these rows. Names are
Pacemaker's newest; older spellings are aliases (Pacemaker Explained, "Cluster-Wide Configuration" and "Resource
Meta-Attributes").
"""

from collections.abc import Mapping

from haclusterd.model.rows import Row, ValueType

CLUSTER_PROPERTIES: tuple[Row, ...] = (
    Row("node-timeout", ValueType.DURATION, "2s", "How long a host may be silent before it is lost.",
        minimum=500, maximum=60_000),
    Row("brain-timeout", ValueType.DURATION, "10s",
        "How long the daemon of a host that is heard may be away before the node is lost.",
        minimum=2000, maximum=600_000),
    Row("no-quorum-policy", ValueType.CHOICE, "stop", "What a node without quorum does with its resources.",
        choices=("stop", "freeze", "ignore", "demote", "fence"), old_words={"suicide": "fence"}, since=3),
    Row("symmetric-cluster", ValueType.BOOLEAN, "true", "Resources may run anywhere unless a constraint forbids."),
    Row("maintenance-mode", ValueType.BOOLEAN, "false", "Leave all resources alone."),
    Row("start-failure-is-fatal", ValueType.BOOLEAN, "true", "One failed start bans the resource from the node."),
    Row("enable-startup-probes", ValueType.BOOLEAN, "true",
        "Ask every node that joins what already runs there. With false nobody looks for what was started without the "
        "cluster; what the cluster itself may have left running is asked about all the same.", since=3),
    Row("stop-all-resources", ValueType.BOOLEAN, "false", "Stop everything."),
    Row("stop-removed-resources", ValueType.BOOLEAN, "true", "Stop resources that are no longer configured.",
        aliases=("stop-orphan-resources",)),
    Row("cancel-removed-actions", ValueType.BOOLEAN, "true", "Cancel monitors that are no longer configured.",
        aliases=("stop-orphan-actions",)),
    Row("shutdown-lock", ValueType.BOOLEAN, "false",
        "Resources of a node that was shut down cleanly wait for it instead of moving.", since=3),
    Row("shutdown-lock-limit", ValueType.DURATION, "0", "How long they wait; 0: for ever.", since=3),
    Row("shutdown-escalation", ValueType.DURATION, "20min",
        "How long the others may take to move resources away from a node that leaves; then it stops them by itself.",
        minimum=1000, since=3),
    Row("control-group-permission", ValueType.CHOICE, "operate",
        "What members of the group haclient may do: look, operate, or everything. Who may do everything is root on "
        "every node.", choices=("read", "operate", "administer"), since=3),
    Row("enable-acl", ValueType.BOOLEAN, "false",
        "Whether access control lists say what users may read and change; without them control-group-permission does. "
        "Root and hacluster are never restricted.", since=3),
    Row("fencing-enabled", ValueType.BOOLEAN, "true", "Whether failed and lost nodes are fenced.",
        aliases=("stonith-enabled",)),
    Row("fencing-action", ValueType.CHOICE, "reboot", "What is asked of a fence device.",
        aliases=("stonith-action",), choices=("reboot", "off"), old_words={"poweroff": "off"}),
    Row("fencing-timeout", ValueType.DURATION, "60s", "How long one call of a fence agent may take.",
        aliases=("stonith-timeout",), minimum=1000),
    Row("fencing-max-attempts", ValueType.INTEGER, "10",
        "After how many failures fencing of a node is tried every 30 seconds only, for as long as the node is lost. A "
        "node that is heard is not fenced for failed operations or lost tickets after so many failures within "
        "fencing-loop-window: what failed is blocked there instead, and what has lost its ticket is stopped.",
        aliases=("stonith-max-attempts",), minimum=1),
    Row("fencing-loop-limit", ValueType.INTEGER, "3",
        "How often one node is fenced within fencing-loop-window for operations that failed there; later failures block"
        " the resource there instead. A node fenced so often for any reason waits 1 to 10 minutes between fencings. "
        "0: no limit.", minimum=0, since=3),
    Row("fencing-failure-limit", ValueType.INTEGER, "1",
        "How many nodes are fenced within fencing-loop-window for the same failure of the same resource; where it fails"
        " again, the resource is blocked instead. 0: no limit.", minimum=0, since=3),
    Row("fencing-loop-window", ValueType.DURATION, "1h", "Within which time fencings count towards these limits.",
        minimum=60_000, since=3),
    Row("startup-fencing", ValueType.BOOLEAN, "true", "Fence members that are not seen after the cluster forms.",
        since=3),
    Row("concurrent-fencing", ValueType.BOOLEAN, "true",
        "Whether several nodes may be fenced at once; with false the one that was tried least comes first.", since=3),
    Row("priority-fencing-delay", ValueType.DURATION, "0",
        "How much later the node with the more important resources is fenced, when no more than half of the nodes are "
        "left.", since=3),
    Row("fence-remote-without-quorum", ValueType.BOOLEAN, "false",
        "Whether Pacemaker Remote nodes may be fenced without quorum.", live=("false",), is_harmless=True),
    Row("watchdog-fencing", ValueType.BOOLEAN, "false",
        "Whether a lost node counts as fenced once its own watchdog must have reset it; fence devices come first.",
        since=3),
    Row("have-watchdog", ValueType.BOOLEAN, "false", "Whether nodes are fenced by watchdogs of their own (SBD).",
        live=("false",)),
    Row("node-pending-timeout", ValueType.DURATION, "0",
        "How long a node that is away, and whose daemon is heard again, may take to join before it is fenced; 0: for "
        "ever. One that counts as online is fenced after brain-timeout.", since=3),
    Row("fence-reaction", ValueType.CHOICE, "stop",
        "What a node does that finds itself lost, or recorded as fenced: stop what it runs, or (panic) have its "
        "watchdog reset it at once.", choices=("stop", "panic"), since=3),
    Row("cluster-recheck-interval", ValueType.DURATION, "15min", "How often the scheduler runs without an event."),
    Row("transition-delay", ValueType.DURATION, "0",
        "How long to wait after an event before it is planned for, so that others that belong to it can come in. "
        "Fencing of lost nodes does not wait.", since=3),
    Row("batch-limit", ValueType.INTEGER, "0", "Most actions in flight in the whole cluster; 0 or -1: no limit.",
        minimum=-1),
    Row("migration-limit", ValueType.INTEGER, "-1",
        "Most live migrations at once on a node; -1: no limit, 0 counts as 1.", minimum=-1, since=3),
    Row("node-action-limit", ValueType.INTEGER, "0", "Most actions in flight on one node; 0: no limit but 64.",
        minimum=0, since=3),
    Row("load-threshold", ValueType.PERCENTAGE, "0",
        "The load of a node's processors from which fewer actions are in flight there: half of node-action-limit "
        "(where that is 0, of twice its processors), from 1.2 times this load a quarter, from 1.6 times one action. "
        "0: no limit by load; Pacemaker's default is 80%.", since=3),
    Row("placement-strategy", ValueType.CHOICE, "default",
        "Whether capacities of nodes count, and whether load is spread (balanced) or packed (minimal).",
        choices=("default", "utilization", "minimal", "balanced")),
    Row("node-health-strategy", ValueType.CHOICE, "none", "How nodes' health attributes (#health...) count.",
        choices=("none", "migrate-on-red", "only-green", "progressive", "custom")),
    Row("node-health-base", ValueType.SCORE, "0", "The score of every node before its health is added (progressive)."),
    Row("node-health-green", ValueType.SCORE, "0", "The score of green (progressive, custom)."),
    Row("node-health-yellow", ValueType.SCORE, "0", "The score of yellow (progressive, custom)."),
    Row("node-health-red", ValueType.SCORE, "-INFINITY", "The score of red (progressive, custom)."),
    Row("gpu-recovery-reset", ValueType.CHOICE, "ask",
        "Whether a device that nothing uses is reset when its fault says so: never (off), when a person types crm gpu "
        "reset (ask), or by the cluster too (auto).", choices=("off", "ask", "auto"), since=3),
    Row("gpu-recovery-reload", ValueType.CHOICE, "ask",
        "The same of loading the driver of a node again, when nothing uses any of its devices.",
        choices=("off", "ask", "auto"), since=3),
    Row("gpu-recovery-reboot", ValueType.CHOICE, "ask",
        "The same of fencing the node, when nothing uses any of its devices; what else runs there is recovered.",
        choices=("off", "ask", "auto"), since=3),
    Row("gpu-recovery-limit", ValueType.INTEGER, "2",
        "How often the cluster recovers a device by itself within gpu-recovery-window; then a person has to.",
        minimum=1, maximum=8, since=3),
    Row("gpu-recovery-window", ValueType.DURATION, "1d", "Within which time recoveries of a device count.",
        minimum=1_000, since=3),
    Row("gpu-storm-devices", ValueType.INTEGER, "4",
        "When so many devices went bad within gpu-storm-window the cluster recovers none by itself until a person has "
        "typed crm gpu resume.", minimum=2, since=3),
    Row("gpu-storm-nodes", ValueType.INTEGER, "3", "The same, when devices of so many nodes did.", minimum=2, since=3),
    Row("gpu-storm-window", ValueType.DURATION, "10min", "Within which time they count.", minimum=1_000, since=3),
    Row("gpu-return-after", ValueType.DURATION, "0",
        "How long a device that was drain or failed must be well before it is given out again; twice as long for each "
        "recovery and each return within gpu-recovery-window, an hour at most. After a recovery 10 s at least.",
        since=3),
    Row("gpu-burn-in", ValueType.STRING, "",
        "A program (an absolute path) that its node runs for a device before it is given out again, with the device's "
        "id as argument; with any exit code but 0 the device is held. Empty: none.", since=3),
    Row("gpu-burn-in-timeout", ValueType.DURATION, "10min", "How long that may take.", minimum=1_000, since=3),
    Row("history-keep", ValueType.DURATION, "90d", "How long events are kept in the history, on every node alike.",
        minimum=60_000, since=3),
    Row("history-rows-max", ValueType.INTEGER, "500000", "How many events the history keeps at most.",
        minimum=1000, since=3),
    Row("cluster-name", ValueType.STRING, "", "A name for people, and for rules that look at #cluster-name."),
)  # fmt: skip

WATCHDOG_TIMEOUTS = ("stonith-watchdog-timeout", "fencing-watchdog-timeout")
"""How long Pacemaker waits for a watchdog."""

PACEMAKERS_PROPERTIES: Mapping[str, str] = {
    "cluster-infrastructure": "Pacemaker notes there what it runs on",
    "dc-version": "Pacemaker notes there its version",
    "expected-quorum-votes": "Pacemaker noted there how many votes there were; here the voters are the members",
    "have-watchdog": "Pacemaker notes there whether sbd runs; here each node tells what watchdog it has",
    "last-lrm-refresh": "tools note there when they cleaned up last",
    "cluster-delay": "it is about Pacemaker's messages",
    "network-delay": "it is about Pacemaker's messages",
    "transition-idle-timeout": "it is about Pacemaker's messages",
    "dc-deadtime": "how a DC is found follows from node-timeout here",
    "election-timeout": "how a DC is elected follows from node-timeout here",
    "join-finalization-timeout": "joining waits for the log here, and for no time of its own",
    "join-integration-timeout": "joining waits for the log here, and for no time of its own",
    "pe-error-series-max": "plans are kept in the history here: history-keep, history-rows-max",
    "pe-input-series-max": "plans are kept in the history here: history-keep, history-rows-max",
    "pe-warn-series-max": "plans are kept in the history here: history-keep, history-rows-max",
    "remove-after-stop": "what was removed is always forgotten once it is stopped here",
}
"""Properties that only Pacemaker's daemons read, each with the reason why nothing follows from it here."""

BOOKKEEPING = frozenset(
    {"cluster-infrastructure", "dc-version", "expected-quorum-votes", "have-watchdog", "last-lrm-refresh"}
)
"""Those that nobody chose: tools write them."""

NOT_IN_SCHEMA = frozenset({
    "cluster_recheck_interval", "dc_deadtime", "default-action-timeout", "default-migration-threshold",
    "default-resource-failure-stickiness", "default-resource-stickiness", "default_action_timeout",
    "default_migration_threshold", "default_resource_failure_stickiness", "default_resource_stickiness",
    "election_timeout", "expected-quorum-votes", "is-managed-default", "is_managed_default", "no_quorum_policy",
    "notification-agent", "notification-recipient", "remove_after_stop", "shutdown_escalation", "startup_fencing",
    "stonith_action", "stonith_enabled", "stop_orphan_actions", "stop_orphan_resources", "symmetric_cluster",
    "transition_idle_timeout",
})  # fmt: skip
"""Properties with which Pacemaker refuses a whole CIB of a schema since 3.0 (measured with cibadmin 2.1.5)."""

FORMER_INFRASTRUCTURES = frozenset({"heartbeat", "openais", "classic openais", "classic openais (with plugin)", "cman"})
"""Values of cluster-infrastructure with which it does the same."""

META_ATTRIBUTES: tuple[Row, ...] = (
    Row("target-role", ValueType.CHOICE, "Started", "The role that the resource should have.",
        choices=("Started", "Stopped", "Unpromoted", "Promoted"),
        old_words={"master": "Promoted", "slave": "Unpromoted"}),
    Row("is-managed", ValueType.BOOLEAN, "true", "Whether the cluster starts and stops it.", invalid="false"),
    Row("maintenance", ValueType.BOOLEAN, "false", "Whether it is left alone: no start, stop or monitor."),
    Row("priority", ValueType.SCORE, "0", "Which resources keep running when not all can."),
    Row("critical", ValueType.BOOLEAN, "true", "Whether it moves its colocated resources along when it fails.",
        invalid="false"),
    Row("resource-stickiness", ValueType.SCORE, "0", "How much it prefers to stay where it is; 1 for clones."),
    Row("migration-threshold", ValueType.SCORE, "INFINITY", "Failures on a node before it is banned from it."),
    Row("failure-timeout", ValueType.DURATION, "0", "After how long a failure is forgotten; 0: never."),
    Row("multiple-active", ValueType.CHOICE, "stop_start", "What to do when it is found active on several nodes.",
        choices=("stop_start", "stop_only", "block", "stop_unexpected")),
    Row("requires", ValueType.CHOICE, "fencing", "What must be done before it may start.",
        choices=("nothing", "quorum", "fencing", "unfencing"), since=3),
    Row("provides", ValueType.CHOICE, "", "Of a fence device: nodes must be unfenced by it before they run anything.",
        choices=("unfencing",), since=3),
    Row("allow-migrate", ValueType.BOOLEAN, "false", "Whether it can be migrated live."),
    Row("allow-unhealthy-nodes", ValueType.BOOLEAN, "false", "Whether it may run where node health is bad."),
    Row("ordered", ValueType.BOOLEAN, "true",
        "Groups: members start one after the other. Clones: so do the instances (default false)."),
    Row("collocated", ValueType.BOOLEAN, "true", "Groups: all members run on one node.", since=3),
    Row("promotable", ValueType.BOOLEAN, "false", "Clones: instances can be promoted."),
    Row("promoted-max", ValueType.INTEGER, "1", "Clones: how many instances are promoted.",
        aliases=("master-max",), minimum=0, maximum=100_000, invalid="0"),
    Row("promoted-node-max", ValueType.INTEGER, "1", "Clones: how many of them on one node.",
        aliases=("master-node-max",), minimum=0, maximum=100_000, invalid="0"),
    Row("clone-max", ValueType.INTEGER, "", "Clones: how many instances; default: as many as there are nodes.",
        minimum=0, maximum=1000, invalid="0"),
    Row("clone-node-max", ValueType.INTEGER, "1", "Clones: how many of them on one node.", minimum=0, maximum=100_000,
        invalid="0"),
    Row("clone-min", ValueType.INTEGER, "0", "Clones: how many must run before what is ordered after it may start.",
        minimum=0, maximum=100_000, invalid="0"),
    Row("globally-unique", ValueType.BOOLEAN, "false", "Clones: each instance does something else than the others."),
    Row("interleave", ValueType.BOOLEAN, "false",
        "Clones: orders concern the instances of the same node only, not all instances."),
    Row("notify", ValueType.BOOLEAN, "false", "Clones: instances are notified before and after what others do."),
    Row("gpu-model", ValueType.STRING, "",
        "Of what asks for devices (utilization gpus=N): a part of the name of their model, as H200.", since=3),
    Row("gpu-memory", ValueType.MEMORY, "0",
        "How much memory each of its devices has at least (80G, 80GiB, or a number of MiB); with gpu-sharing=memory, "
        "how much it takes of each.", since=3),
    Row("gpu-link", ValueType.CHOICE, "any", "With nvlink, all its devices belong to one NVLink group.",
        choices=("any", "nvlink"), since=3),
    Row("gpu-kind", ValueType.CHOICE, "gpu", "What it gets: whole GPUs, or instances of partitioned ones.",
        choices=("gpu", "mig"), since=3),
    Row("gpu-profile", ValueType.STRING, "", "Of MIG instances: their profile, as 3g.71gb; empty: any.", since=3),
    Row("gpu-sharing", ValueType.CHOICE, "none",
        "With memory, it shares its devices with others that say so, each with its gpu-memory.",
        choices=("none", "memory"), since=3),
    Row("gpu-health", ValueType.CHOICE, "drain",
        "The state of a device at which the resource leaves it: degraded, drain, failed; ignore: it never does.",
        choices=("ignore", "degraded", "drain", "failed"), since=3),
    Row("gpu-gang", ValueType.CHOICE, "none",
        "Clones: with all, all instances run or none, and when one has to start the others start again with it.",
        choices=("none", "all"), since=3),
    Row("remote-node", ValueType.STRING, "", "The name of the Pacemaker Remote guest that runs inside it.", live=()),
    Row("remote-addr", ValueType.STRING, "", "How the guest is reached.", live=()),
    Row("remote-port", ValueType.INTEGER, "3121", "At which port.", minimum=1, maximum=65535, live=()),
    Row("remote-connect-timeout", ValueType.DURATION, "60s", "How long connecting to it may take.", live=()),
    Row("remote-allow-migrate", ValueType.BOOLEAN, "true", "Whether the connection to it can move.", live=()),
    Row("container", ValueType.STRING, "", "The resource inside which it runs, and which is restarted when it fails.",
        live=()),
    Row("container-attribute-target", ValueType.STRING, "",
        "Whose node attributes count for what runs inside a bundle: `host`, or the bundle's own.", live=()),
)  # fmt: skip

PROPERTY_NAMES = tuple(name for row in CLUSTER_PROPERTIES for name in (row.name, *row.aliases))
META_NAMES = tuple(name for row in META_ATTRIBUTES for name in (row.name, *row.aliases))
"""Every name by which one may be written, in the order of the table."""
