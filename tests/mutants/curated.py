"""Safety-relevant lines, each broken in the way that loses data, kept by the names of the code.

A line belongs here when breaking it can make two copies active, lose what was acknowledged, fence without need, or
leave a service down for good. `test_mutants.py` says when the code of one has changed: then follow it here.
"""

from tests.mutants.sites import Mutant

ACTIVITY = (
    Mutant(
        "asking_what_runs",
        "name != STARTUP_PROBES",
        "True",
        "a restored cluster asks nobody what runs, and starts what the lost one has left running on another node",
    ),
    Mutant(
        "_chosen",
        "chosen is OnFail.IGNORE and name in _NEVER_IGNORED and not settings.options.is_pacemaker_compatible",
        "False",
        "a stop whose failure is to be ignored is planned around and never made: the service stays down for good",
    ),
    Mutant(
        "history_says_active",
        "return record.is_failure",
        "return False",
        "a stop that failed counts as stopped: it may run there and is started on another node",
    ),
    Mutant(
        "history_says_active",
        "record.exit_code not in (ExitCode.NOT_INSTALLED, ExitCode.NOT_RUNNING)",
        "False",
        "a start that failed counts as not running",
    ),
    Mutant(
        "history_says_active",
        "if could_not_look(record):\n            continue",
        "if could_not_look(record):\n            return False",
        "the program is taken away under a service, a probe cannot look, and it is started on another node",
    ),
    Mutant(
        "could_not_look",
        "record.is_probe and is_answer",
        "is_answer",
        "a recurring monitor that cannot run its program counts as no answer: what it watches is not restarted",
    ),
    Mutant(
        "_record",
        "_in_doubt(history, order, result) if is_kept else _begun_by(history, order)",
        "_begun_by(history, order)",
        "the stop before a start of unknown outcome counts, once a probe could not look: a second copy starts",
    ),
    Mutant(
        "with_doubt",
        "with_expected_arrival(status, history, order)",
        "history",
        "what was recorded before a migration counts, once a probe of the target could not look: a second copy starts",
    ),
    Mutant(
        "_with_doubts_of_migrations",
        "with_expected_arrival(status, status.histories.get(resource) or known.histories[resource], order)",
        "status.histories.get(resource) or known.histories[resource]",
        "a probe from before the arrival counts, once a later one could not look: a second copy starts",
    ),
    Mutant(
        "_record",
        "with_expected_arrival(status, history, order)",
        "history",
        "a probe from before a migrate_from of unknown outcome counts, once a later one could not look",
    ),
    Mutant(
        "_received",
        "status.last_call_id + 1",
        "status.last_call_id",
        "a stop that was the last action of a node counts as newer than what has arrived there since",
    ),
    Mutant(
        "Replay._is_maskable",
        "not self._is_arriving",
        "True",
        "where a probe could not look for what has arrived, nothing ever stops it, and the service stays down",
    ),
    Mutant(
        "_record_finished",
        "is_probe and not is_in_vain",
        "is_probe",
        "a promote whose end nobody knows counts no more once a probe could not look: two promoted copies",
    ),
    Mutant(
        "_record_finished",
        "not (is_in_vain and key in history.records)",
        "True",
        "a probe that cannot look takes the place of the one that found the service: it is started on another node",
    ),
    Mutant(
        "Replay._is_maskable",
        "self.role.value <= Role.STOPPED.value",
        "True",
        "what runs and cannot be looked at counts as stopped for plans: it runs on unwatched for good",
    ),
    Mutant(
        "_begun_by",
        "order.lasting_parameters",
        "order.parameters",
        "what only the start was given is given to the stop too: it may look for something else, and stop nothing",
    ),
    Mutant(
        "history_says_promoted",
        "record.is_failure and record.exit_code is not ExitCode.NOT_RUNNING",
        "False",
        "a demote that failed counts as demoted: two promoted copies",
    ),
    Mutant(
        "history_says_promoted",
        "record.operation == ActionName.PROMOTE",
        "False",
        "a promote that failed counts as unpromoted",
    ),
    Mutant(
        "possibly_promoted",
        "status.state not in HOLDING",
        "status.state is not NodeState.ONLINE",
        "what a lost node has promoted is forgotten before its fencing",
    ),
    Mutant(
        "known_promoted",
        "order.resource == resource and order.action is ActionName.PROMOTE",
        "False",
        "an open promote does not count: two promoted copies",
    ),
    Mutant(
        "possibly_promoted",
        "resource in status.unverified or known_promoted(status, resource)",
        "known_promoted(status, resource)",
        "a promote of which nobody knows the end does not count: two promoted copies",
    ),
    Mutant(
        "_promotion_objection",
        "promoted_siblings(cib, order.resource, judge)",
        "()",
        "two instances of a unique clone are promoted, where one may be",
    ),
    Mutant(
        "migrations_at",
        "order.other_node == node",
        "False",
        "a probe at the target of an open migration is the last word: two copies",
    ),
    Mutant(
        "with_doubt",
        "status.unverified | {order.resource}",
        "status.unverified",
        "an open migration does not count on its target: two copies",
    ),
    Mutant(
        "_restarted",
        "kept if entry.rules.restart_keeps_orders else {}",
        "{}",
        "a daemon's restart forgets the agents of its older life",
    ),
    Mutant(
        "_start_objection",
        "former_names_active(cib, order.resource) if entry.rules.one_active_copy else ()",
        "()",
        "a copy starts under the name it has in a unique clone while the one of before is active",
    ),
    Mutant(
        "_start_objection",
        "under_names_given_up(cib, order) if entry.rules.one_active_copy else ()",
        "()",
        "a service starts under its new name while it runs under the one that somebody took away",
    ),
    Mutant(
        "former_name_templates",
        "leaf.base_id == base or _is_renamed(removed, leaf)",
        "leaf.base_id == base",
        "a service that was renamed is ordered to start again and again while it stops under its old name",
    ),
    Mutant(
        "former_names_active",
        "_of_primitive(status, base, is_unique=not colon)",
        "_of_primitive(status, base, is_unique=bool(colon))",
        "names are compared with those of the same clone: instances refuse each other, and not the copy of before",
    ),
    Mutant(
        "HistoryOwners._is_of_unique",
        'is_numbered and not self._settings.options.is_pacemaker_compatible',
        "False",
        "an anonymous clone takes a copy of the unique one for its own: it is stopped by a name that ends nothing",
    ),
    Mutant(
        "_apart",
        'Template(removed, STOP, None, "", ORDERED | UNRUNNABLE_FIRST_BLOCKS, then_action=mark)',
        'Template(removed, START, None, "", ORDERED | UNRUNNABLE_FIRST_BLOCKS, then_action=mark)',
        "a copy starts under its new name while the one of before is still stopping, or is left alone",
    ),
    Mutant(
        "possibly_active",
        "frozenset(ordered | recorded | status.unverified)",
        "frozenset(recorded | status.unverified)",
        "an open start does not count as active",
    ),
    Mutant(
        "possibly_active",
        "frozenset(ordered | recorded | status.unverified)",
        "frozenset(ordered | recorded)",
        "after a daemon's restart what it runs does not count until it is probed",
    ),
    Mutant(
        "possibly_active",
        "status.state not in HOLDING",
        "status.state is not NodeState.ONLINE",
        "what a lost node runs is free at once",
    ),
    Mutant(
        "may_hold_anything",
        "bool(status.unverified)",
        "False",
        "a node is proven empty by a history that nobody verified",
    ),
    Mutant(
        "may_hold_anything",
        "any(order.is_activating for order in status.orders.values())",
        "False",
        "a node is proven empty while a start is on its way to it: its watchdog is fed without a lease",
    ),
    Mutant(
        "unfenced_holders",
        "status.state is NodeState.LOST and resource in possibly_active(status)",
        "False",
        "apply lets a resource start while its lost holder is not fenced",
    ),
    Mutant("Copies.most", "clone is None", "clone is not None", "one copy is taken for many"),
    Mutant(
        "Copies.most",
        "collective_meta(self._configuration, clone)",
        "dict(pair for block in clone.meta for pair in block.pairs)",
        "a limit in the resource defaults does not count: a second copy beside one that is in doubt",
    ),
)

APPLY = (
    Mutant(
        "with_restarts_ended",
        "not _may_run(cib, name)",
        "False",
        "a resource that is restarted is kept stopped until its time is over",
    ),
    Mutant(
        "with_restarts_ended",
        "not _may_run(cib, name)",
        "True",
        "a restart is over before the resource has stopped",
    ),
    Mutant("RestartWatch.step", "moment.now >= ends_at", "False", "a restart of what does not stop has no end"),
    Mutant(
        "_is_hidden_from",
        "order.agent != started.agent",
        "False",
        "another agent is asked about what runs, and finds nothing: two copies, one in no history",
    ),
    Mutant(
        "_is_hidden_from",
        "order.definition != started.definition",
        "False",
        "what runs is asked for with other parameters, and not found: two copies, one in no history",
    ),
    Mutant(
        "_is_other",
        "started.agent != resource.definition.agent",
        "False",
        "what another agent has started is stopped by the new one, or never",
    ),
    Mutant(
        "_is_other",
        "started.definition != now",
        "False",
        "what was started with other parameters is looked for, and stopped, with those of now",
    ),
    Mutant(
        "started_as",
        "order.resource == resource and order.action in _BEGINNINGS",
        "False",
        "while something is being started with new parameters, it is looked for with the older ones",
    ),
    Mutant(
        "apply_orders:_record",
        "if order is not None and result.kind is ResultKind.UNKNOWN and order.action in _BEGINNINGS",
        "False",
        "a start whose end nobody knows is looked for where the one before it was: two copies",
    ),
    Mutant(
        "with_doubt",
        "if order.action is ActionName.MIGRATE_TO and started_as(status, order.resource) is None",
        "False",
        "what migrates to a node is looked for as what ran there long ago",
    ),
    Mutant(
        "issue_orders",
        "entry.rules.refuse_old_term and (controller is None or controller.term != command.dc_term)",
        "False",
        "a deposed DC still gives orders",
    ),
    Mutant(
        "apply_orders:_objection", "status.state is not NodeState.ONLINE", "False", "orders go to nodes that are lost"
    ),
    Mutant(
        "apply_orders:_objection",
        "status.incarnation != order.incarnation and entry.rules.order_names_incarnation",
        "False",
        "an order reaches a later life of its node",
    ),
    Mutant("apply_orders:_objection", "order.key in status.orders", "False", "an order is issued twice"),
    Mutant(
        "record_results",
        "is_older and entry.rules.close_orders_of_older_incarnations",
        "False",
        "an old life's result is believed",
    ),
    Mutant("record_results", "status.state is not NodeState.ONLINE", "False", "a lost node's result is believed"),
    Mutant(
        "_is_overtaken",
        "known == key or record.is_probe or record.operation in (ActionName.START, ActionName.STOP)",
        "False",
        "an older result replaces a newer one",
    ),
    Mutant(
        "void_orders",
        "voided if entry.rules.open_orders_possibly_active else {}",
        "{}",
        "a voided start stops counting before its executor answered",
    ),
    Mutant(
        "apply_nodes:_restarted",
        "unverified if entry.rules.unverified_is_probed else frozenset()",
        "frozenset()",
        "after a daemon's restart its services are believed to be as before",
    ),
    Mutant("_answer_at_once", "status.is_retired", "False", "who was shut out joins again"),
    Mutant(
        "_why_held",
        "is_being_fenced and entry.rules.join_held_while_fencing",
        "False",
        "a node joins while a fence agent is on its way to shoot it",
    ),
    Mutant(
        "_why_held",
        "abandoned is not None and abandoned.executor != command.node and entry.rules.abandoned_agent_holds_join",
        "False",
        "a node joins while the fence agent of a lost daemon may still shoot it",
    ),
    Mutant(
        "_with_abandoned",
        "order.state is not FenceState.OPEN or WATCHDOG in order.devices",
        "True",
        "nobody waits for the fence agent of a lost daemon",
    ),
    Mutant(
        "_with_abandoned",
        "{NodeState.LOST, NodeState.LEFT} if entry.rules.executor_answers_before_leaving else {NodeState.LOST}",
        "{NodeState.LOST}",
        "nobody waits for the fence agent of a daemon that left",
    ),
    Mutant(
        "leaving",
        "fencing is not None and entry.rules.executor_answers_before_leaving",
        "False",
        "a node leaves while its fence agent is at work",
    ),
    Mutant(
        "apply_fencing:_objection",
        "executor.state is not NodeState.ONLINE and entry.rules.executor_answers_before_leaving",
        "False",
        "a node is ordered to fence that is gone",
    ),
    Mutant(
        "apply_fencing:_objection",
        "abandoned is not None and order.action is not FenceAction.ON and entry.rules.abandoned_agent_holds_fencing",
        "False",
        "a node that was fenced is let in by an agent of before",
    ),
    Mutant(
        "may_be_let_in",
        "device in asked or lets_nodes_in(cib.in_force, device)",
        "False",
        "a node that was cut off from its disks is let in by an agent of before",
    ),
    Mutant(
        "apply_fencing:_may_live_on",
        "record.device == WATCHDOG or any(lets_nodes_in(cib.in_force, device) for device in devices)",
        "False",
        "the fence agent on an empty node counts as ended by a watchdog that is fed",
    ),
    Mutant(
        "FencerMachine._call_what_is_due",
        "job.step.acts and not moment.has_lease",
        "False",
        "a node that is cut off goes on to fence others, when nobody counts on that any more",
    ),
    Mutant(
        "_why_held",
        "_is_evading(status, command) and is_another_online",
        "False",
        "a node evades a fencing that a person wants",
    ),
    Mutant(
        "_answer_at_once",
        "command.incarnation in (status.incarnation, status.fenced_incarnation)",
        "False",
        "a life that is over comes back",
    ),
    Mutant(
        "join",
        "is_same_boot or not entry.rules.reboot_clears_history",
        "False",
        "a daemon's restart is taken for a boot: what it runs is forgotten",
    ),
    Mutant(
        "_answer_at_once",
        "command.feature_level < cib.feature_level",
        "False",
        "a daemon joins that cannot read the log",
    ),
    Mutant(
        "_without_wait_for_watchdog",
        "_is_same_boot(status, command)",
        "False",
        "a daemon's restart ends the wait for its node's watchdog",
    ),
    Mutant("leaving", "if remaining", "False", "a node leaves with what it runs"),
    Mutant(
        "lost",
        "entry.rules.refuse_old_term and (controller is None or controller.term != command.dc_term)",
        "False",
        "a deposed DC declares nodes lost",
    ),
    Mutant("_declare_lost", "status is None", "False", "a later life is lost for the silence of an earlier one"),
    Mutant(
        "_declare_lost",
        "status.state not in (NodeState.ONLINE, NodeState.UNSEEN)",
        "False",
        "a fenced node is lost again",
    ),
    Mutant(
        "dc_elected",
        "entry.rules.refuse_old_term and (command.term != entry.term or not is_newer)",
        "False",
        "an older term makes a DC",
    ),
    Mutant(
        "apply_fencing:_objection",
        "any(known.target == order.target for known in cib.status.fence_orders.values())",
        "False",
        "two fence agents are on their way to one node: the later one shoots its next life",
    ),
    Mutant(
        "apply_fencing:_objection",
        "target is None or target.state is not wanted or target.incarnation != order.target_incarnation",
        "target is None",
        "a node that is back is shot for its earlier life",
    ),
    Mutant(
        "fenced",
        "target.state is NodeState.LOST and target.incarnation == command.incarnation",
        "True",
        "the fencing of an earlier life counts for the present one",
    ),
    Mutant(
        "retire",
        "not is_gone or any(order.target == command.node for order in cib.status.fence_orders.values())",
        "False",
        "a member is dropped with what it runs",
    ),
    Mutant("objection_to", "len(before ^ after) > 1", "False", "two majorities without a voter in common"),
    Mutant("objection_to", "if retired", "False", "a name comes back under which votes were given"),
    Mutant(
        "waits_for", "behind and rules.members_followed_first", "False", "a lease is counted by voters that are gone"
    ),
    Mutant("waits_for", "present and rules.retired_before_dropped", "False", "a member is dropped unfenced"),
    Mutant(
        "with_lease_of",
        "status.longest_lease_ms < lease_ms",
        "False",
        "survivors wait for a shorter lease than is in force",
    ),
    Mutant(
        "judge_rules",
        "command.epoch != cib.version.epoch",
        "False",
        "blocks come into force by what was judged of another configuration",
    ),
    Mutant(
        "carried_over",
        "before[key].rule == block.rule",
        "True",
        "a block is in force by a rule that nobody has judged",
    ),
    Mutant("ControllerMachine.step", "if cib.is_judged", "True", "fenced by what holds at another time"),
    Mutant(
        "apply_watchdog:objection",
        "is_watched and policy",
        "False",
        "a node that freezes without quorum is counted on to be reset",
    ),
    Mutant(
        "apply",
        "level > cib.feature_level",
        "False",
        "an entry has an effect on nodes that can read it, and none on others",
    ),
    Mutant(
        "apply", "envelope.request in known and not is_in_force", "False", "a command that is sent twice acts twice"
    ),
)

EXECUTOR = (
    Mutant(
        "OwnRecord.is_joined",
        "status.incarnation == self._incarnation and status.state is NodeState.ONLINE",
        "status.state is NodeState.ONLINE",
        "orders for an earlier life are considered",
    ),
    Mutant(
        "ExecutorMachine._take_in",
        "order.incarnation != self._incarnation and self._rules.order_names_incarnation",
        "False",
        "orders for another life are begun",
    ),
    Mutant(
        "ExecutorMachine._take_in",
        "key in self._received",
        "False",
        "an order that was answered is taken again",
    ),
    Mutant("ExecutorMachine._is_unwanted", "order is None or order.is_voided", "False", "a voided order is begun"),
    Mutant(
        "ExecutorMachine._objection",
        "self._rules.lease_before_exec and not moment.has_lease",
        "False",
        "something starts on a node that nobody hears",
    ),
    Mutant(
        "ExecutorMachine._objection",
        "self._rules.order_deadline and waited > order.deadline_ms",
        "False",
        "a start begins long after it was ordered",
    ),
    Mutant(
        "ResourceQueue.is_free",
        "self.state is QueueState.FREE",
        "self.state in (QueueState.FREE, QueueState.HELD)",
        "a new life runs an agent beside one that the old life left",
    ),
    Mutant(
        "ExecutorMachine.adopted",
        "action.is_running and self._rules.adopt_running_agents",
        "False",
        "what an earlier life left running is forgotten",
    ),
    Mutant(
        "begin_log",
        "create_journal(files, cluster, node, term)",
        "create_journal(files, cluster, node)",
        "a recovered cluster gives an order the key of an agent that the lost one left at work",
    ),
    Mutant(
        "ResourceQueue.kill_adopted",
        "adopted.action != ActionName.STOP and now < adopted.ends_at",
        "False",
        "a start of an older life goes on without a lease",
    ),
    Mutant(
        "ExecutorMachine._must_act_alone",
        "moment.has_lease or not self._rules.stop_on_lease_end or moment.now < self._grace_until",
        "True",
        "a node without a lease runs on while it is recovered on another node",
    ),
    Mutant(
        "ExecutorMachine._must_act_alone",
        "self._record.is_recorded_dead() and (is_own or self._possibly_active_here())",
        "False",
        "a node that is recorded as fenced, and lives, runs on",
    ),
    Mutant(
        "ExecutorMachine._begin_to_act_alone",
        "agent is not None and agent.action != ActionName.STOP",
        "False",
        "a start goes on after the lease has ended",
    ),
    Mutant(
        "ExecutorMachine._possibly_active_here",
        "queue.at_work is not None or queue.adopted",
        "False",
        "what is being started is not stopped when the lease ends",
    ),
    Mutant(
        "ActingAlone.ended",
        "StepEvent.ENDED_WELL if is_proof else StepEvent.ENDED_BADLY",
        "StepEvent.ENDED_WELL",
        "a stop that failed proves the node empty: its watchdog is fed",
    ),
    Mutant(
        "ActingAlone.ended",
        "is_whole and result.exit_code == ExitCode.NOT_RUNNING",
        "result.exit_code == ExitCode.NOT_RUNNING",
        "a probe that was cut off proves an unmanaged database stopped: its file system is taken away",
    ),
    Mutant(
        "ActingAlone.stop_what_nothing_holds",
        "not waiting or self._in(Step.TO_LOOK, Step.LOOKING)",
        "not waiting",
        "a file system is taken away before all that may use it was looked at",
    ),
    Mutant(
        "ActingAlone.stop_what_nothing_holds",
        "waiting & (untouched | held_by(before, untouched))",
        "waiting & untouched",
        "a file system is taken away from under an unmanaged database that was seen to run",
    ),
    Mutant(
        "ActingAlone._unmanaged",
        "unmanaged(situation.cib, self._node, active, situation.wall)",
        "frozenset()",
        "what is unmanaged is stopped at the end of a lease",
    ),
    Mutant(
        "ActingAlone.__init__",
        "self._plan(active - self.untouched - self.held, before, situation, origin)",
        "self._plan(active - self.untouched, before, situation, origin)",
        "a file system is taken away from under an unmanaged database",
    ),
    Mutant(
        "FencerMachine._turns_on",
        "not lets_nodes_in(self._cib.in_force, device)",
        "True",
        "a node that is cut off from its disks gets them back in the course of its fencing",
    ),
    Mutant(
        "ActingAlone.leave_what_became_unmanaged",
        "not untouched",
        "True",
        "what becomes unmanaged while a node stops alone is stopped all the same",
    ),
    Mutant(
        "ActingAlone.is_proven_empty",
        "self._in(*NOT_OURS) and self._rules.unmanaged_is_not_empty",
        "self.untouched and self._rules.unmanaged_is_not_empty",
        "a node counts as empty though something became unmanaged in the midst of its stops",
    ),
    Mutant(
        "ActingAlone._unmanaged",
        "situation.is_recorded_dead and self._rules.recorded_death_ends_all",
        "False",
        "a node that is recorded as fenced keeps what may be started on another one",
    ),
    Mutant(
        "StartDelays.keep",
        "{name: since for name, since in self._ready_since.items() if name in ready}",
        "{}",
        "a service with a start-delay never starts while an attribute changes all the time",
    ),
    Mutant(
        "ActingAlone.end_what_was_left",
        "not left or not situation.is_recorded_dead or not self._rules.recorded_death_ends_all",
        "True",
        "a node keeps what it left alone before it was recorded as fenced",
    ),
    Mutant(
        "OwnRecord.is_recorded_dead",
        "status.state is NodeState.LOST",
        "False",
        "a node that never saw its record, since that was disproved at once, keeps what may run on another one",
    ),
    Mutant(
        "OwnRecord.take",
        "self.in_force if self.is_recorded_dead() else status",
        "status",
        "a disproved record makes a node forget what it runs",
    ),
    Mutant(
        "ExecutorMachine.cib_changed",
        "self._stopped_alone.clear()",
        "pass",
        "what a node once stopped by itself is not stopped again at the end of the next lease",
    ),
    Mutant(
        "ActingAlone.is_proven_empty",
        "self._in(*NOT_OURS) and self._rules.unmanaged_is_not_empty",
        "False",
        "a node on which something unmanaged runs is fed as empty, and believed to be dead",
    ),
    Mutant(
        "leaving",
        "resource not in command.unmanaged",
        "False",
        "a node leaves with managed resources running",
    ),
    Mutant(
        "is_fencing_pointless",
        "unmanaged(cib, lost.name, active, now) == active",
        "True",
        "what a detached node holds is never recovered",
    ),
    Mutant(
        "ExecutorMachine._publish_empty",
        "is_proven and not is_busy",
        "is_proven",
        "a node is proven empty while an agent runs",
    ),
    Mutant(
        "ExecutorMachine._report",
        "self._life is not Life.JOINED",
        "False",
        "results are reported by a life that has not joined",
    ),
    Mutant(
        "stops_before",
        "then != first and not _reaches(before, then, first)",
        "False",
        "a node that acts alone stops a database's disk before the database",
    ),
    Mutant(
        "LonePolicy.keeps_running",
        "self in (LonePolicy.FREEZE, LonePolicy.IGNORE)",
        "True",
        "without quorum nothing is stopped whatever the policy",
    ),
)

JOINING = (
    Mutant(
        "JoiningMachine.step",
        "has_acted_alone and (is_stopping_alone or self._is_leaving)",
        "False",
        "a node joins again while its own stops are under way",
    ),
    Mutant(
        "JoiningMachine.step",
        "moment.has_lease and not is_fencing",
        "True",
        "a life ends while its fence agent runs: a late off hits who came back",
    ),
    Mutant(
        "JoiningMachine._leave_step",
        "left_alone != running",
        "False",
        "a node leaves while something managed runs there",
    ),
    Mutant(
        "JoiningMachine._observe",
        "status.incarnation != self._incarnation",
        "False",
        "a life that was replaced goes on",
    ),
)

MEMBERSHIP = (
    Mutant(
        "MembershipMachine.is_settled",
        "known is None or known.incarnation != status.incarnation",
        "False",
        "a plan rests on what the CIB says of a node that nobody hears",
    ),
    Mutant(
        "MembershipMachine._without_lease",
        "not heard",
        "False",
        "a DC that no heartbeat reaches keeps the leadership, and nobody recovers what it ran",
    ),
    Mutant(
        "MembershipMachine._is_unseen_fenced",
        "self._rules.unseen_is_fenced",
        "False",
        "what an unseen member may run is started on another node",
    ),
    Mutant(
        "MembershipMachine.step",
        "self._rules.dc_needs_fresh_lease and not moment.has_lease",
        "False",
        "a DC that is itself cut off declares others lost",
    ),
    Mutant(
        "MembershipMachine.step",
        "self._is_from_before_a_standstill(report, moment)",
        "False",
        "a DC that stood still takes its own silence for others'",
    ),
    Mutant("MembershipMachine.step", "len(quorum) * 2 <= len(cib.voters())", "False", "a minority declares nodes lost"),
    Mutant(
        "MembershipMachine._judge",
        "unsure and self._rules.lost_needs_whole_quorum",
        "False",
        "one cut cable fences a node that others hear",
    ),
    Mutant(
        "MembershipMachine._restart_after_stall",
        "is_stall and self._rules.silence_clocks_restart_after_stall",
        "False",
        "a DC that was paused fences who was silent for it only",
    ),
    Mutant(
        "MembershipMachine._judge_brain",
        "away_ms < self._timing.brain_timeout_ms",
        "False",
        "a daemon that restarts is fenced at once",
    ),
    Mutant(
        "MembershipMachine._judge_brain",
        "heard.brain is BrainState.ALIVE",
        "True",
        "a node whose daemon hangs is never recovered",
    ),
    Mutant(
        "MembershipMachine._may_be_echoed",
        "len(echoing) * 2 > len(voters)",
        "True",
        "a node that hears nobody is never given up",
    ),
    Mutant(
        "MembershipMachine._give_up_without_echo",
        "2 * len([voter for voter in quorum if voter != status.name]) <= len(voters)",
        "False",
        "the DC gives up so many that no majority is left",
    ),
    Mutant(
        "ActingAlone.stop_what_has_come",
        "in_force is None or in_force.unverified <= self._faced",
        "True",
        "what was migrated to a node without a lease runs on there",
    ),
    Mutant("_is_below", "age_ms is not None and age_ms < limit_ms", "age_ms is not None", "silence is never noticed"),
)

FENCING = (
    Mutant(
        "unfencing_templates",
        "leaf.is_managed or leaf.is_blocked",
        "leaf.is_managed",
        "a node is unfenced while what failed to stop there may still run: it writes again",
    ),
    Mutant(
        "selection:_is_shut_out",
        "any(map(_holds_back, action.before))",
        "False",
        "a running cluster unfences a node before what cannot stop there has stopped",
    ),
    Mutant(
        "_unfence_before",
        "action.is_probe and node.name in leaf.found.unverified_on",
        "False",
        "a probe and an unfencing wait for each other after a restart of the daemon: nothing starts there again",
    ),
    Mutant(
        "_is_blocked_there",
        "relation.then.is_fence and relation.then.task == UNFENCE and owner is not None and owner.is_blocked",
        "False",
        "the stop that failed is no reason to wait with an unfencing, since no plan requires it",
    ),
    Mutant(
        "FencingDirector._supervise",
        "evidence.listener is not None",
        "False",
        "a device that lied is believed although its target is heard",
    ),
    Mutant(
        "FencingDirector._supervise",
        "not evidence.is_complete",
        "False",
        "a fence agent's word is believed before anybody listened",
    ),
    Mutant("FencingDirector._supervise", "self._is_in_the_boot_of(order)", "False", "a DC records its own death"),
    Mutant(
        "FencingDirector._distrust",
        "heard is None or not is_alive_since(heard, since, self._timing)",
        "True",
        "a node that lives on after its recorded fencing is not fenced again",
    ),
    Mutant(
        "FencingDirector._distrust",
        "heard.incarnation.boot_id != status.incarnation.boot_id",
        "False",
        "a node that has booted since is shot again",
    ),
    Mutant(
        "is_alive_since",
        "heard.answered_at is not None and heard.answered_at > since",
        "False",
        "an answer that proves life is passed over",
    ),
    Mutant(
        "is_alive_since",
        "heard.heard_at is not None and heard.heard_at > after(since, timing.node_timeout_ms)",
        "False",
        "a target that is heard for seconds after its fencing counts as silent",
    ),
    Mutant(
        "evidence_since",
        "all(at is not None and at >= listened_until for at in reports)",
        "True",
        "silence is believed before the voters could report",
    ),
    Mutant(
        "evidence_since",
        "sign is not None and sign > after(since, timing.node_timeout_ms)",
        "False",
        "what another voter hears of the target does not count",
    ),
    Mutant(
        "fence_evidence:_heard_by",
        "age_ms is None or voter.heard_at is None",
        "True",
        "what other voters hear does not count",
    ),
    Mutant("FencerMachine._begin", "not moment.has_lease", "False", "a node that is cut off fences the others"),
    Mutant(
        "FencerMachine.cib_changed",
        "order.executor == self._node and order.executor_incarnation == self._incarnation",
        "order.executor == self._node",
        "a new life repeats the fence order of the old one",
    ),
    Mutant("FencerMachine._objection", "result.exit_code != 0", "False", "a fence agent that failed counts as success"),
    Mutant("FencerMachine._objection", "result.timed_out", "False", "a fence agent that hangs counts as success"),
    Mutant(
        "order_at_work",
        "order.executor == node and order.state is FenceState.OPEN and WATCHDOG not in order.devices",
        "False",
        "a node leaves while it fences",
    ),
)

WATCHDOG = (
    Mutant(
        "WatchdogWait.wait_ms",
        "max(self._timing.lease_ms, status.longest_lease_ms)",
        "self._timing.lease_ms",
        "survivors wait for a shorter lease than the lost node has",
    ),
    Mutant(
        "WatchdogWait.step",
        "moment.now < due_at or report is None or not moment.has_lease",
        "report is None",
        "a watchdog is believed before it can have expired",
    ),
    Mutant(
        "WatchdogWait.step",
        "heard is not None and is_alive_since(heard, since, self._timing)",
        "False",
        "a watchdog that did not reset its node is believed",
    ),
    Mutant(
        "watchdog_wait_ms",
        "_slowest(lease_ms + 2 * watchdog_timeout_ms)",
        "_slowest(lease_ms + watchdog_timeout_ms)",
        "a feed that was held back is not waited for",
    ),
    Mutant(
        "_slowest", "span_ms + -(-span_ms * 2 * CLOCK_RATE_PERCENT // 100)", "span_ms", "slow clocks are not waited for"
    ),
    Mutant(
        "PacerMachine._feed_rule",
        "has_lease or not self._rules.feed_needs_lease",
        "True",
        "a watchdog is fed without a lease",
    ),
    Mutant(
        "PacerMachine._may_feed_until",
        "min(self._lease.until, after(self._brain_seen_alive_at, self._timing.brain_timeout_ms))",
        "self._lease.until",
        "a watchdog is fed for a daemon that hangs",
    ),
    Mutant(
        "WatchdogFeeding._open",
        "rule.until is None",
        "False",
        "opening a device starts it on a node that may not feed it",
    ),
)

PACER = (
    Mutant("majority_newest", "voter_count // 2 + 1", "voter_count // 2", "half of the voters give a lease"),
    Mutant(
        "PacerMachine._may_echo",
        "node in self._page.withdrawn and self._rules.withdraw_echo",
        "False",
        "a node that is declared lost keeps its lease",
    ),
    Mutant(
        "PacerMachine._may_echo",
        "self._page.known_by == settings.incarnation.token or not self._rules.rebuild_withdrawn_set",
        "True",
        "a restarted voter gives a lost node its lease back",
    ),
    Mutant(
        "PacerMachine._count_vote",
        "peer.vote is not None and given_at <= peer.vote",
        "False",
        "an older echo shortens the lease",
    ),
    Mutant(
        "PacerMachine._count_vote",
        "settings is None or echo is None or echo.token != settings.incarnation.token",
        "settings is None or echo is None",
        "an echo to an earlier life gives a lease",
    ),
    Mutant(
        "PacerMachine._count_vote",
        "self._started_at <= echo.sent_at <= now",
        "self._started_at <= echo.sent_at",
        "an echo of the future gives a lease",
    ),
    Mutant(
        "PacerMachine._count_vote",
        "self._started_at <= echo.sent_at <= now",
        "echo.sent_at <= now",
        "after a reload an echo of an older heartbeat gives the lease of a node-timeout that was raised meanwhile",
    ),
    Mutant(
        "PacerMachine._lease_until",
        "max(self._lease_floor, after(newest, self._lease_ms_of(newest)))",
        "after(newest, self._lease_ms_of(newest))",
        "a cluster that grows takes its own leases back",
    ),
    Mutant(
        "PacerMachine._lease_until",
        "self._lease_ms_of(newest)",
        "self._timing.lease_ms",
        "a raised node-timeout lengthens a lease that older heartbeats gave, beyond what its survivors wait for",
    ),
    Mutant(
        "PacerMachine._begin_incarnation", "peer.vote = None", "pass", "a new life inherits the votes of the old one"
    ),
    Mutant(
        "PacerMachine._notice",
        "elapsed_ms(self.wake_at, now) <= self._timing.stall_ms",
        "True",
        "after an own stall the peers' silence is held against them",
    ),
    Mutant(
        "PacerMachine._is_acceptable",
        "heartbeat.sent_at > newest.sent_at",
        "True",
        "a replayed heartbeat is taken for life",
    ),
    Mutant(
        "PacerMachine._is_proof",
        "seen.token == settings.incarnation.token and seen.sent_at >= peer.proved_at",
        "True",
        "a recorded heartbeat of another life is taken for life",
    ),
    Mutant(
        "PacerMachine._may_be_another_boot",
        "elapsed_ms(since, now) >= SILENT_PERIODS * self._timing.heartbeat_ms",
        "True",
        "a copy of a machine is believed beside it",
    ),
    Mutant(
        "PacerMachine._judge_brain",
        "not self._is_brain_connected or stamped_at <= self._brain_gone_at",
        "False",
        "a daemon that has died counts as alive",
    ),
    Mutant(
        "PacerMachine._observe_brain",
        "min(self._page.main_stamped_at, self._page.raft_stamped_at)",
        "max(self._page.main_stamped_at, self._page.raft_stamped_at)",
        "a daemon with one hung thread counts as alive",
    ),
    Mutant(
        "CopiedNodes.objection",
        "asked_at is not None and _has_answered_since(heard, known, asked_at)",
        "False",
        "a copy of a machine gets in when the first one falls silent",
    ),
)

TRANSITION = (
    Mutant(
        "find_begun",
        "found.old_directory.exists() and not found.has_run()",
        "False",
        "a recovery that was killed when the old files had been set aside leaves a node that nothing starts",
    ),
    Mutant(
        "find_begun",
        "found.old_directory.exists() and not found.has_run()",
        "found.old_directory.exists()",
        "a recovery that ended long ago is taken for one to be completed, and the one that is asked for is not made",
    ),
    Mutant(
        "order_key",
        "cluster_uuid[-8:]",
        "''",
        "a restored cluster gives the key of an agent that the lost one left at work to another order: two at once",
    ),
    Mutant(
        "_Guard.admits",
        "not holders or len(holders) < self._copies.most(action.resource)",
        "True",
        "what a lost node runs is ordered on another node before its fencing",
    ),
    Mutant(
        "_Guard.admits",
        "self._blocked is not None and self._blocked.touches(action.resource)",
        "False",
        "two plans work on one resource",
    ),
    Mutant(
        "TransitionMachine._overtaken",
        "key not in self._foreign and key not in self._by_order",
        "False",
        "an older plan's late order is not noticed",
    ),
    Mutant(
        "TransitionMachine._settle_node",
        "not _succeeded(cib, tracked.action, key)",
        "False",
        "a plan goes on after a stop that failed",
    ),
    Mutant(
        "TransitionMachine._fence",
        "not moment.has_lease and self._rules.dc_needs_fresh_lease",
        "False",
        "a DC without a lease fences",
    ),
    Mutant(
        "_will_succeed", "result.exit_code is order.target_exit_code", "True", "a failure is gone on from as a success"
    ),
    Mutant(
        "TransitionMachine.speculate",
        "status.state is not NodeState.ONLINE or status.incarnation != command.incarnation",
        "False",
        "the result of an earlier life is gone on from",
    ),
)

REPLICA = (
    Mutant(
        "Replica.appended",
        "loss is not None and self._rules.withdraw_echo",
        "False",
        "a loss is acknowledged before the lost node's echoes are withdrawn",
    ),
    Mutant("Replica.restore", "status.state in GIVEN_UP", "False", "after a snapshot lost nodes get echoes again"),
    Mutant(
        "Replica._reinstate_unless_given_up",
        "loss not in self._announced and loss not in self._decided",
        "True",
        "a lost node gets its echoes back",
    ),
    Mutant(
        "_is_in_force",
        "status is not None and status.state is NodeState.ONLINE and status.incarnation == join.incarnation",
        "True",
        "a Join that was refused gives a lost node its echoes back",
    ),
)

RAFT = (
    Mutant(
        "RaftCore.transmit",
        "self._journal.is_vote_synced and not self._held",
        "True",
        "a vote leaves before it is on disk: two leaders in one term",
    ),
    Mutant("RaftCore._stop_on_error", "not isinstance(result, OSError)", "True", "an error of the disk is passed over"),
    Mutant(
        "RaftCore._is_one_step",
        "is_next and len({*proposed.voters} ^ {*current.voters}) <= 1",
        "is_next",
        "voters change by two: two majorities without a voter in common",
    ),
    Mutant(
        "RaftCore.kind_of",
        "self._is_one_step(proposed) and self._has_own_commit() and self._is_last_change_applied() "
        "and self._machine.may_change_voters(entry)",
        "self._is_one_step(proposed)",
        "voters change before the change before is committed",
    ),
    Mutant(
        "RaftCore.removed",
        "entries and self._voter_sets[-1][0] >= entries[0][1]",
        "False",
        "voters of a truncated change go on counting",
    ),
    Mutant(
        "RaftCore._remember_digest",
        "kept.is_contested",
        "False",
        "after a restart a DC plans although nobody knows which replica is right",
    ),
    Mutant(
        "RaftCore._remember_digest",
        "self._digests.note(self._settings.node, kept.entry, kept.digest)",
        "pass",
        "after a restart a replica that differs is not compared before the next agreed index",
    ),
    Mutant(
        "RaftCore._require_journal",
        "identity.is_started or self._files.read(SNAPSHOT_NAME) is not None",
        "False",
        "a node that lost its disk votes again under its name",
    ),
    Mutant(
        "RaftCore._open",
        "require_machine(self._files, identity, settings.machine)",
        "pass",
        "a copy of a disk begins in another machine while nobody hears the node, and votes in its place",
    ),
    Mutant(
        "require_machine",
        "identity.machine is None or identity.machine in found",
        "identity.machine is None or not found or identity.machine in found",
        "a copy of a disk begins in a machine that shows no name",
    ),
    Mutant(
        "mark_started",
        "found[0] if found else identity.machine",
        "identity.machine",
        "a data directory never learns to which machine it belongs",
    ),
    Mutant(
        "RaftCore._finish_incoming",
        "snapshot.index <= self._raft.applied_index",
        "False",
        "an older snapshot replaces a newer state",
    ),
    Mutant(
        "RaftCore._write_incoming",
        "incoming.index <= self._raft.applied_index",
        "False",
        "an older snapshot is written over a newer one",
    ),
    Mutant(
        "Journal.is_vote_synced",
        "self._vote_sequence <= self._synced_sequence",
        "True",
        "a vote counts before it is on disk",
    ),
    Mutant(
        "Journal.synced_index",
        "self._synced_index",
        "self.last_index",
        "entries are acknowledged before they are on disk",
    ),
    Mutant(
        "Journal.truncate",
        "self._synced_index = min(self._synced_index, index - 1)",
        "pass",
        "what replaced a truncated entry counts as synced",
    ),
    Mutant(
        "Journal.truncate",
        "self._writing = (self._writing[0], min(self._writing[1], index - 1))",
        "pass",
        "a write that was under way makes what came after it count as synced",
    ),
    Mutant("Journal.setCurrentTerm", "self._vote_sequence = self._sequence", "pass", "a vote need not be synced"),
    Mutant("Journal.compact", "position <= 0", "False", "the log is cut at a place that it does not hold"),
    Mutant("_Append.__call__", "self.files.sync(JOURNAL_NAME)", "None", "entries count as durable without a sync"),
    Mutant(
        "decode_journal",
        "offset < sealed or _has_frame_after(data, offset)",
        "False",
        "damage in the middle of the journal is taken for a torn end: acknowledged entries are lost",
    ),
    Mutant("decode_journal", "if offset < sealed", "False", "a journal that was cut short is believed"),
    Mutant("_read_frame", "_frame_crc(body) == crc", "True", "damaged entries are applied"),
    Mutant(
        "_fold_record",
        "index != entries[-1][1] + 1 or term < entries[-1][2]",
        "False",
        "a gap in the log is passed over",
    ),
    Mutant(
        "_align",
        "base_index > index or (base_index == index and base_term != term)",
        "False",
        "a journal is joined to a snapshot that does not fit",
    ),
    Mutant(
        "_align",
        "position >= len(entries) or entries[position][2] != term",
        "False",
        "entries that a snapshot has replaced come back",
    ),
    Mutant(
        "decode_snapshot",
        "_digest(data[: _FIELDS.size], payload) != data[_FIELDS.size : start]",
        "False",
        "a damaged snapshot is believed",
    ),
    Mutant("load_snapshot", "data is None", "True", "a node starts empty beside its snapshot"),
)

ANSWERS = (
    Mutant(
        "_refusal_before",
        "each.request == envelope.request",
        "False",
        "a write that was refused is answered as done when it is repeated",
    ),
)

OTHER_ENDS = (
    Mutant(
        "UnitState.is_at_rest",
        "self.active in AT_REST and not self.has_job",
        "self.active in AT_REST",
        "a unit that systemd has still to start is said not to run",
    ),
    Mutant(
        "Units._stopped_stopping",
        "state.active != 'deactivating'",
        "True",
        "a start overtakes a stop that ran over its time",
    ),
    Mutant(
        "SystemdBus._heard",
        "message.sender != connection.owner",
        "False",
        "the end of a job is believed that any program has announced",
    ),
    Mutant(
        "join",
        "if entry.rules.migration_counts_on_both",
        "False",
        "a migration's target that joins again counts as empty while the migration is open",
    ),
    Mutant(
        "without_orders_of",
        "if entry.rules.migration_counts_on_both",
        "False",
        "the source of a migration is fenced, and its target counts as empty",
    ),
    Mutant(
        "with_undecided",
        "order.action is not ActionName.MIGRATE_TO or target is None or target.state not in HOLDING",
        "True",
        "a migration that was cut off leaves no doubt about its target",
    ),
    Mutant(
        "_migration_objection",
        "target.state is not NodeState.ONLINE",
        "False",
        "a service is moved to a node that is not there",
    ),
    Mutant(
        "_migration_source",
        "source is None or source not in cib.status.nodes or cib.status.nodes[source].state is NodeState.LOST",
        "source is None",
        "a migration is taken over from a lost node that may have taken it back",
    ),
    Mutant(
        "_device_that_lied",
        "status.state is not NodeState.FENCED or not _is_same_boot(status, command)",
        "True",
        "a boot that outlives its recorded fencing is believed to be empty",
    ),
    Mutant(
        "lost",
        "if objection",
        "False",
        "the last nodes of a quorum are fenced for a stop that failed",
    ),
    Mutant(
        "Promises.heard",
        'message["term"] <= term and newest <= index',
        "True",
        "a data directory that was put back to an older copy votes again",
    ),
    Mutant(
        "Promises.may_vote",
        "not self._silent or now >= self._until",
        "True",
        "a node votes before its peers could say what it has forgotten",
    ),
    Mutant(
        "Digests.compare",
        "2 * sum(each == digest for each in of_voters.values()) > len(voters)",
        "False",
        "replicas that differ go unnoticed",
    ),
)

OPTIONS = (
    Mutant(
        "OwnRecord.is_given_up",
        "is_own or self.is_recorded_dead(cib)",
        "is_own",
        "fence-reaction=panic: a daemon that was started again in a boot whose death is recorded lives on",
    ),
    Mutant(
        "ExecutorMachine.awaits_reset",
        "self._reset.state is Reset.AWAITED or (self._record.is_given_up(cib) and panics(cib.in_force))",
        "self._reset.state is Reset.AWAITED",
        "fence-reaction=panic: a node that had stopped everything begins another life instead",
    ),
    Mutant(
        "ExecutorMachine._react_to_loss",
        "not record.panics",
        "False",
        "every lost node is reset by its watchdog, whatever fence-reaction says",
    ),
    Mutant("_locks", "LOCKS in order.meta", "True", "what is stopped anywhere is kept for that node, and runs nowhere"),
    Mutant(
        "_locks",
        "order.action is ActionName.START and order.resource in status.locks",
        "False",
        "shutdown-lock: what has started again on its node is kept for it for ever",
    ),
    Mutant(
        "MembershipMachine._judge_pending",
        "waited_ms < limit_ms",
        "False",
        "node-pending-timeout: a node that boots is fenced before it can join",
    ),
    Mutant(
        "StartDelays.keep",
        "name in ready",
        "True",
        "start-delay: what had to wait for something else again begins at once",
    ),
    Mutant(
        "able_to_use",
        "device == WATCHDOG",
        "False",
        "with symmetric-cluster=false no watchdog is ever believed: nothing of a lost node is recovered",
    ),
    Mutant(
        "FencingDirector._order",
        "able_to_use(cib, status.name, level, is_unfencing=is_unfencing)",
        "True",
        "a device that nobody may use ends the DC, or holds up all others",
    ),
)

RECORDS = (
    Mutant(
        "_is_doubted_on",
        "any(node.name in leaf.found.unverified_on for leaf in instance.leaves())",
        "False",
        "another instance of a clone is asked than the one that is in doubt: it stays in doubt for ever",
    ),
    Mutant(
        "Planning.look_at",
        "delay_ms and self._gathers_until is None",
        "delay_ms",
        "transition-delay: each event begins the wait again, and nothing is ever planned",
    ),
    Mutant(
        "Planning.ask",
        "self._gathers_until is not None and not self._is_delay_wanted",
        "False",
        "transition-delay: plans are made of half of what belongs together",
    ),
    Mutant(
        "set_transient_attribute",
        "command.name in status.private_attributes",
        "False",
        "the second value of a private attribute is shown to everybody",
    ),
    Mutant(
        "find_process",
        "read_arguments(pid)[-len(expected) :] == expected",
        "True",
        "a service that inherited the mark of its agent is taken for the agent: it is waited for, and killed",
    ),
    Mutant(
        "ServiceAgents.run",
        "call.action == 'start' and chosen is None",
        "False",
        "what a service was started as is not written down: after an upgrade the other class finds nothing",
    ),
    Mutant(
        "_time_of",
        "known is not None and is_behind",
        "False",
        "a DC whose clock is a little behind takes back what has just come into force",
    ),
)

COPIES = (
    Mutant(
        "check_entitled",
        "node != last.node and node not in last.standbys",
        "False",
        "PostgreSQL: a standby that no commit waited for is promoted, and what it lacks is lost",
    ),
    Mutant(
        "check_entitled",
        "not copy.holds(last.timeline, last.lsn)",
        "False",
        "PostgreSQL: an older copy that was put in a standby's place is promoted",
    ),
    Mutant(
        "Copy.holds",
        "lsn <= until and lsn <= self.lsn",
        "lsn <= self.lsn",
        "PostgreSQL: a copy that left the last primary's timeline before its end is promoted",
    ),
    Mutant(
        "Records.next_timeline",
        "max([copy.timeline, *copy.forks, *known, *self._taken.values()]) + 1",
        "copy.timeline + 1",
        "PostgreSQL: two promotions take the same timeline, and a copy of one follows the other",
    ),
    Mutant(
        "Records.rival",
        "each != node and self._taken[each] > timeline",
        "False",
        "PostgreSQL: a primary goes on alone while another node is promoted",
    ),
    Mutant(
        "Record.is_left_by",
        "copy.lsn > self.forks.get(copy.timeline, -1)",
        "False",
        "PostgreSQL: a former primary with commits of its own is started beside the others",
    ),
)

DEVICES = (
    Mutant("claim_objection", "device in known.unaccepted", "False", "a device that nobody has accepted is used"),
    Mutant("claim_objection", "own is None and device in known.holds", "False", "a drained device gets something new"),
    Mutant("claim_objection", "seen.is_partitioned", "False", "a GPU is claimed beside its instances"),
    Mutant(
        "claim_objection",
        "own.memory_mib != memory_mib or (own.is_over and own.memory_mib)",
        "False",
        "a sharer starts again beside its older life, whose memory nobody counts",
    ),
    Mutant(
        "claim_objection",
        "[name for name in (DeviceId(seen.parent), *_instances(known, device)) if known.claims.get(name)]",
        "[]",
        "a GPU and an instance of it are held by two",
    ),
    Mutant(
        "_objection_to_others",
        "not claim.memory_mib or not memory_mib",
        "not claim.memory_mib",
        "who wants a device alone gets one that others share",
    ),
    Mutant(
        "_objection_to_others",
        "memory_mib and taken + memory_mib > device.memory_mib",
        "False",
        "more memory of a device is claimed than it has",
    ),
    Mutant(
        "issue_orders",
        "claimed = with_claims(claimed, order)",
        "claimed = claimed",
        "a start claims nothing: its devices are given to the next",
    ),
    Mutant(
        "_judged",
        "claim.is_over or may_be_active_or_begin(status, claim.resource)",
        "claim.is_over",
        "the claim of what runs is over, and ends when it uses its device for a moment not",
    ),
    Mutant(
        "apply_devices:_is_proven",
        "claim.is_over and (claim.resource, claim.order) == (proven.resource, proven.order)",
        "(claim.resource, claim.order) == (proven.resource, proven.order)",
        "a proof ends the claim of what runs",
    ),
    Mutant(
        "apply_devices:_is_proven",
        "(claim.resource, claim.order) == (proven.resource, proven.order)",
        "claim.resource == proven.resource",
        "a proof about an older life ends the claim of the newer one",
    ),
    Mutant(
        "release_devices",
        "_is_alive(cib, command.node, command.incarnation)",
        "True",
        "a life that is over ends claims",
    ),
    Mutant("_objection_to_forgetting", "known.claims.get(name)", "False", "a claim is forgotten with its device"),
    Mutant(
        "DevicesMachine._take_answer",
        "ending.is_proven = not ending.obstacle",
        "ending.is_proven = True",
        "a device is released while a process of the old holder uses it",
    ),
    Mutant(
        "DevicesMachine.looked",
        "self._asked is not None and self._asked[0] == key",
        "self._asked is not None",
        "an answer from before a claim was over ends it",
    ),
    Mutant(
        "obstacle_to_release",
        "user.resource not in others",
        "user.resource == resource",
        "a process that does not say whose it is keeps nobody off its device",
    ),
    Mutant(
        "obstacle_to_start",
        "user.resource not in sharers and (user.resource or not sharers)",
        "user.resource and user.resource not in sharers",
        "something starts on a device that a stranger uses",
    ),
    Mutant("_obstacle", "device in use.unknown", "False", "a device of which nobody can say counts as free"),
    Mutant(
        "DeviceProofs.is_proven",
        "elapsed_ms(proof.free_at, now) <= FRESH_MS",
        "True",
        "a proof is good for ever: what came between it and the start is not seen",
    ),
    Mutant(
        "DeviceProofs.answered",
        "proof is None or proof.asked_at is None or key != _key(order, proof)",
        "proof is None",
        "an answer that was given up counts as fresh when it comes",
    ),
    Mutant(
        "ExecutorMachine._awaits_devices",
        "not self._proofs.is_proven(order, moment.now) and not self._proofs.failure(order, moment.now)",
        "False",
        "a start begins before its devices are proven free",
    ),
)
"""Who may have a device, and when it is free."""

CURATED = (
    *ACTIVITY,
    *APPLY,
    *EXECUTOR,
    *JOINING,
    *MEMBERSHIP,
    *FENCING,
    *WATCHDOG,
    *PACER,
    *TRANSITION,
    *REPLICA,
    *RAFT,
    *ANSWERS,
    *OTHER_ENDS,
    *OPTIONS,
    *RECORDS,
    *COPIES,
    *DEVICES,
)
"""All of them, in the order of the table."""
