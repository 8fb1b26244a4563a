"""One daemon: passes events to the machines and performs their effects through the ports.

Nothing is decided here. Every event only causes a wake; a wake steps each machine once with the newest applied CIB and
performs the effects in order. Wakes coalesce: however many entries were applied, one wake follows. Everything happens
on the main loop; the store's thread is reached through the store port only.
"""

from collections.abc import Callable, Sequence
from functools import partial

from haclusterd.cib.changes import Applied as CibApplied
from haclusterd.cib.changes import Change, ChangeKind, RefusalCode
from haclusterd.cib.commands import Command, FormCluster, Join, MembersFollowed, RequestLeader
from haclusterd.machines.controller import ControllerMachine
from haclusterd.machines.copied_nodes import CopiedNodes
from haclusterd.machines.devices import DevicesMachine
from haclusterd.machines.effects import (
    AskForPlan,
    CallFenceAgent,
    Condemn,
    Effect,
    ExamineDevice,
    KillAgent,
    LookAtDevices,
    Note,
    PrepareToPlan,
    Propose,
    PublishEmpty,
    RecoverDevice,
    RunAgent,
    Scope,
    TransferLeadership,
    UnwatchService,
    WatchService,
)
from haclusterd.machines.executing.device_recovery import DeviceRecoveryMachine
from haclusterd.machines.executing.executor import ExecutorMachine
from haclusterd.machines.fencer import FencerMachine
from haclusterd.machines.joining import DrawIncarnation, JoiningMachine, JoinState
from haclusterd.machines.learners import LearnersMachine
from haclusterd.machines.load_watch import LoadWatch
from haclusterd.machines.moment import Moment
from haclusterd.machines.tally import Tally
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.followers import Followers
from haclusterd.model.ids import Incarnation, NodeName, RequestId, Term
from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.model.pacer import PacerReport
from haclusterd.model.planning import PlanAnswer
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.timing import Timing
from haclusterd.ports.clock import Timer
from haclusterd.ports.crashes import CrashRecord
from haclusterd.ports.event_log import Priority
from haclusterd.ports.store import (
    Appended,
    Applied,
    LeadershipChanged,
    LearnersReady,
    ReplicasDiffer,
    Restored,
    StoreEvent,
    VoterLinks,
)
from haclusterd.runtime.alert_delivery import AlertDelivery
from haclusterd.runtime.cluster_settings import ClusterSettings
from haclusterd.runtime.dc_bulletins import DcBulletins
from haclusterd.runtime.hand_over import HandOver
from haclusterd.runtime.history_keeper import HistoryKeeper
from haclusterd.runtime.history_rows import rows_of, version_of
from haclusterd.runtime.leaving import Leaving, Presence
from haclusterd.runtime.local_work import LocalWork
from haclusterd.runtime.log_priorities import priority_of
from haclusterd.runtime.pacer_contact import PacerNews, RoundTrips
from haclusterd.runtime.ports import NodePorts
from haclusterd.runtime.proposer import EntryTooLargeError, NeedsUpgradeError, Proposer, require_level
from haclusterd.runtime.safe_mode import SafeMode
from haclusterd.runtime.secrets.keys import NodeSecrets
from haclusterd.runtime.settings import NodeSettings

CATCH_UP_MS = 3_000
"""How long after its start a daemon without a leader is expected to find one."""
HISTORY_STOP_MS = 1000
"""How long the end of this daemon may wait for its history."""


class NodeRuntime:
    """The runtime of one node; see the module."""

    def __init__(
        self,
        settings: NodeSettings,
        ports: NodePorts,
        *,
        left: Callable[[], None] = lambda: None,
        retired: Callable[[], None] = lambda: None,
        members_changed: Callable[[tuple[Member, ...]], None] = lambda _: None,
    ) -> None:
        """`left` is called when this node has left the cluster, after `drain`; `members_changed` with new members.

        `retired` is called when this node was removed from the cluster: it must not run again under this name.
        """
        self._settings = settings
        self._secrets = NodeSecrets(settings.node, ports, lambda: self._cib, self._propose)
        self._ports = ports = self._secrets.ports
        self._left, self._retired = left, retired
        self._learners = LearnersMachine(settings.rules)
        self._load_watch, self._devices = LoadWatch(settings.node), DevicesMachine(settings.node)
        now = ports.clock.now()
        self.started_at, self._began_at = ports.clock.wall(), now
        self._cluster_settings = ClusterSettings(
            settings, ports, retimed=self._retimed, members_changed=members_changed
        )
        self._incarnation = Incarnation(settings.boot_id, ports.entropy.token())
        self._proposer = Proposer(settings.node, ports.entropy.token(), ports.store)
        form = FormCluster(settings.cluster_uuid, settings.cluster_name, settings.members)
        rules, node = settings.rules, settings.node
        self._recovery = DeviceRecoveryMachine(node, rules)
        own_key = ports.secrets.public_key()
        self._joining = JoiningMachine(node, self._incarnation, settings.feature_level, own_key)
        self._executor = ExecutorMachine(
            node,
            self._incarnation,
            now,
            lease_grace_ms=self._cluster_settings.timing.lease_ms,
            actions_max=settings.actions_max,
            rules=rules,
        )
        self._fencer = FencerMachine(node, self._incarnation)
        self._work = self._local_work()
        self._controller = ControllerMachine(node, self._incarnation, self._cluster_settings.timing, form, rules=rules)
        self._cib = Cib()
        self._changes: list[Change] = []
        self._is_cib_new = self._is_woken = False
        self._timer: Timer | None = None
        self._stamp_timer: Timer | None = None
        self._leadership = LeadershipChanged(Term(0), None, is_self=False)
        self.leaderless_since: Instant | None = now
        """Since when no leader is known; None while one is."""
        self._links: tuple[NodeName, ...] = ()
        self._pacer_news = PacerNews(settings)
        self.round_trips = RoundTrips()
        """The round-trip times to the peers."""
        self.tally = Tally()
        self.copied_nodes = CopiedNodes()
        """Peers to refuse, because they are copies of members."""
        self._hand_over, self._safe_mode = HandOver(), SafeMode()
        self._appended: int | None = None
        """The newest entry of this leader's log that was shown before its commit and is not considered yet."""
        self._leaving = Leaving(after(now, self._cluster_settings.timing.lease_ms))
        self._watchers: list[Callable[[], None]] = []
        self._history_watchers: list[Callable[[], None]] = []
        self._keeper = HistoryKeeper(node, ports.clock, ports.history, lambda: self._cib, self._propose)
        self.dc_bulletins = DcBulletins(node, ports.clock, ports.peer_messages)
        """The exchange of what the DC knows beyond the CIB."""
        self._alerts = AlertDelivery(node, self._incarnation, ports, propose=self._propose, wake=self._wake)

    def _local_work(self) -> LocalWork:
        return LocalWork(
            self._ports,
            executor=self._executor,
            fencer=self._fencer,
            devices=self._devices,
            recovery=self._recovery,
            moment=self.moment,
            show_cib=self._show_cib,
            conclude=self._conclude,
        )

    # -- start and end ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start; raises StoreDamagedError or StoreRefusedError when the store must not run."""
        ports = self._ports
        self._log("daemon.start", incarnation=str(self._incarnation), cluster=self._settings.cluster_name)
        self._judge_crashes()
        ports.history.start(self._history_failed)
        self.dc_bulletins.start()
        ports.planner.start(self._planned)
        ports.pacer.start(self._cluster_settings.pacer_settings(self._cib, self._incarnation), self._pacer_reported)
        self._work.adopt()
        ports.store.start(self._store_event)
        # The store has shown every entry that may still declare a loss: the withdrawn set is complete.
        ports.pacer.withdrawals_known()
        self._work.watch_devices()
        self._keeper.look_soon()
        self._stamp()
        self._wake()

    def stop(self) -> None:
        """End at once and leave everything running as it is."""
        self._leaving.stop()
        for timer in (self._timer, self._stamp_timer):
            if timer is not None:
                timer.cancel()
        self._keeper.stop()
        self._ports.store.stop()
        self._ports.planner.stop()
        self._ports.history.stop(HISTORY_STOP_MS)
        self._ports.pacer.stop()

    def drain(self) -> None:
        """Have everything moved away, leave the cluster, then call `left` (SIGTERM)."""
        self._log("daemon.drain")
        properties = ClusterProperties(self._cib.in_force)
        self._leaving.drain(properties.duration_ms("shutdown-escalation"), self._ports.clock.now())
        self._joining.leave()
        self._wake()

    def crashed(self, detail: str) -> None:
        """Record an uncaught error of the main loop; the process ends right afterwards."""
        self._ports.crashes.add(
            CrashRecord(self._ports.clock.now(), self._cib.version.epoch, self._controller.is_dc, detail)
        )

    def _judge_crashes(self) -> None:
        if self._settings.rules.safe_mode_after_crash_loop:
            self._safe_mode.judge(self._ports.crashes.recent(), self._ports.clock.now())
        if self._safe_mode.reason:
            self._log("safe-mode.entered", Priority.ERROR, reason=self._safe_mode.reason)

    # -- state for others -------------------------------------------------------------------------------------------

    @property
    def cib(self) -> Cib:
        """The newest applied CIB."""
        return self._cib

    @property
    def settings(self) -> NodeSettings:
        """The settings that this daemon was started with."""
        return self._settings

    @property
    def ports(self) -> NodePorts:
        """The ports of this daemon."""
        return self._ports

    @property
    def timing(self) -> Timing:
        """The timers in force."""
        return self._cluster_settings.timing

    @property
    def incarnation(self) -> Incarnation:
        """The present incarnation of this daemon."""
        return self._incarnation

    @property
    def leadership(self) -> LeadershipChanged:
        """Who leads Raft, as far as this node knows."""
        return self._leadership

    @property
    def links(self) -> tuple[NodeName, ...]:
        """Voters that the Raft transport is connected to."""
        return self._links

    @property
    def controller(self) -> ControllerMachine:
        """This node's controller, for display."""
        return self._controller

    @property
    def joining(self) -> JoiningMachine:
        """This node's membership, for display."""
        return self._joining

    @property
    def executor(self) -> ExecutorMachine:
        """This node's executor, for display."""
        return self._executor

    @property
    def is_catching_up(self) -> bool:
        """Whether this daemon has not yet seen its own Join, and may soon: its state may be old."""
        is_young = elapsed_ms(self._began_at, self._ports.clock.now()) < CATCH_UP_MS
        is_led = self._leadership.leader is not None
        return self._joining.state is JoinState.OUTSIDE and (is_led or is_young)

    @property
    def safe_mode(self) -> str:
        """Why there is no controller here; empty when there is one."""
        return self._safe_mode.reason

    @property
    def safe_mode_remedy(self) -> str:
        """How this node gets a controller again."""
        return self._safe_mode.remedy

    def moment(self) -> Moment:
        """Return the present time and lease."""
        clock = self._ports.clock
        return Moment(clock.now(), clock.wall(), self._ports.pacer.lease_until())

    def propose(self, key: str, command: Command, done: Callable[[CibApplied], None]) -> RequestId:
        """Propose an administrator's command under a new key; return its request id."""
        require_level(self._cib, command)
        moment = self.moment()
        self._proposer.propose(key, command, moment.now, moment.wall, done)
        self._wake()
        return self._proposer.request_of(key)

    def forget(self, key: str) -> None:
        """Stop repeating an administrator's command."""
        self._proposer.forget(key)

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after each wake; return the function that ends this."""
        self._watchers.append(changed)
        return lambda: self._watchers.remove(changed) if changed in self._watchers else None

    def watch_history(self, recorded: Callable[[], None]) -> None:
        """Call `recorded` after each entry that added to the history."""
        self._history_watchers.append(recorded)

    # -- events -----------------------------------------------------------------------------------------------------

    def _store_event(self, event: StoreEvent) -> None:
        match event:
            case Appended(index=index, term=term, entry=entry):
                self._controller.speculate(self._cib, term, entry)
                self._appended = index
            case Applied(index=index, outcome=outcome):
                assert isinstance(outcome, CibApplied)
                self._ports.planner.applied(event)
                self._applied(index, outcome)
            case Restored(index=index, outcome=outcome):
                assert isinstance(outcome, Cib)
                self._log("store.restored", index=index)
                self._cib = outcome
                self._is_cib_new = True
                self._ports.planner.rest()
                self._controller.cib_replaced()
                self._ports.history.restored(index, outcome.history, version_of(outcome))
                self._tell_history_watchers()
                self._cluster_settings.retime(self._cib, self._incarnation)
                self._cluster_settings.learn_fence_agents(self._cib)
                self._cluster_settings.follow_members(self._cib, self._incarnation)
            case LeadershipChanged():
                self._leader_changed(event)
            case ReplicasDiffer(why=why):
                self._safe_mode.hold(why)
                self._controller.interrupted()
                if why:
                    self._log("replicas.differ", Priority.CRITICAL, detail=why)
                else:
                    self._log("replicas.agree", Priority.NOTICE)
            case LearnersReady(learners=learners):
                self._learners.ready(learners)
            case VoterLinks(connected=connected):
                self._log("store.links", connected=",".join(connected))
                self._links = connected
                self._ports.pacer.set_links(connected)
            case Followers():
                self._controller.take_followers(event)
        self._wake()

    def _applied(self, index: int, outcome: CibApplied) -> None:
        before = self._cib.history
        is_replayed = outcome.envelope is not None and outcome.envelope.at < self.started_at
        if not is_replayed:
            self.tally.observe(self._cib, outcome)
        self._cib = outcome.cib
        self._is_cib_new = True
        for change in outcome.changes:
            self._changes.append(change)
            self._log_change(index, change, is_replayed=is_replayed)
        is_new_version = any(change.kind is ChangeKind.CONFIGURATION_CHANGED for change in outcome.changes)
        version = version_of(outcome.cib) if is_new_version else None
        self._ports.history.record(index, rows_of(index, outcome), before, outcome.cib.history, version)
        if outcome.changes:
            self._tell_history_watchers()
        if is_new_version or any(change.kind is ChangeKind.RULES_JUDGED for change in outcome.changes):
            self._cluster_settings.retime(self._cib, self._incarnation)
            self._keeper.look_soon()
            self._cluster_settings.learn_fence_agents(self._cib)
        self._cluster_settings.follow_members(self._cib, self._incarnation)
        if outcome.refusal is not None and outcome.refusal.code is RefusalCode.INTERNAL_ERROR:
            self._log("apply.bug", Priority.CRITICAL, index=index, detail=outcome.refusal.text)
        command = outcome.envelope.command if outcome.envelope is not None else None
        if isinstance(command, RequestLeader) and outcome.refusal is None:
            self._hand_over.want(command.node, self._ports.clock.now())
        self._proposer.applied(outcome)

    def _tell_history_watchers(self) -> None:
        for recorded in self._history_watchers:
            recorded()

    def _log_change(self, index: int, change: Change, *, is_replayed: bool) -> None:
        self._log(
            f"cib.{change.kind}",
            priority_of(change.kind, is_replayed=is_replayed),
            index=index,
            node=change.node,
            resource=change.resource,
            text=change.text,
        )

    def _leader_changed(self, event: LeadershipChanged) -> None:
        self._log("store.leader", term=int(event.term), leader=event.leader, is_self=event.is_self)
        was_dc = self._controller.is_dc
        self._leadership = event
        now = self._ports.clock.now()
        self._leaving.leader_changed(self._cluster_settings.timing.lease_ms, now)
        if event.leader is not None:
            self.leaderless_since = None
        elif self.leaderless_since is None:
            self.leaderless_since = now
        self._controller.leadership_changed(event.term, is_self=event.is_self)
        self._ports.pacer.set_follower(is_follower=not event.is_self)
        if was_dc and not self._controller.is_dc:
            self._proposer.forget_scope(Scope.DC)
            self._ports.planner.rest()
        self._proposer.leader_changed(self._ports.clock.now())

    def _pacer_reported(self, report: PacerReport) -> None:
        self._stamp()
        for error in self._pacer_news.new_errors(report):
            self._log("pacer.error", Priority.WARNING, error=error)
        self.round_trips.observe(report)
        if self._leadership.is_self or self._watchers or self._pacer_news.is_in(report, self.moment()):
            self._wake()

    def _retimed(self, timing: Timing) -> None:
        self._controller.retimed(timing)
        self._executor.retimed(timing.lease_ms)

    def _history_failed(self, problem: str) -> None:
        if problem:
            self._log("history.failed", Priority.WARNING, problem=problem)
        else:
            self._log("history.recovered", Priority.NOTICE)

    def _planned(self, answer: PlanAnswer) -> None:
        self._controller.answered(answer)
        self._wake()

    # -- the one loop -----------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if not self._is_woken and self._leaving.presence is not Presence.STOPPED:
            self._is_woken = True
            self._ports.clock.call_soon(self._run)

    def _run(self) -> None:
        self._is_woken = False
        if self._leaving.presence is Presence.STOPPED:
            return
        changes, self._changes = tuple(self._changes), []
        self._step_membership()
        self._step_executor_and_fencer()
        self._step_controller(changes)
        self._secrets.step(self._incarnation)
        self._alerts.step(self._cib)
        self.dc_bulletins.step(self._cib, self._leadership, self._controller)
        now, read = self._ports.clock.now(), self._ports.load.read
        self._perform_all(self._load_watch.step(self._cib, self._incarnation, read, now))
        self._perform_all(self._devices.step(self._cib, self._incarnation, now))
        self._perform_all(self._recovery.step(self._cib, self._incarnation, self.moment()))
        if self._appended is not None:
            self._ports.store.considered(self._appended)
            self._appended = None
        self._proposer.step(self._ports.clock.now())
        self._hand_over_as_wanted()
        for watcher in tuple(self._watchers):
            watcher()
        self._finish_leaving()
        self._finish_retirement()
        self._arm()

    def _step_membership(self) -> None:
        own, version = self._cib.status.nodes.get(self._settings.node), self._cluster_settings.members_version
        if own is not None and own.incarnation == self._incarnation and own.membership < version:
            followed = MembersFollowed(self._settings.node, self._incarnation, version)
            self._propose(Scope.INCARNATION, f"followed:{self._incarnation}:{version}", followed)
        moment = self.moment()
        report, has_pacer = self._ports.pacer.report(), self._ports.pacer.is_answering()
        effects = self._joining.step(
            self._cib,
            moment,
            has_acted_alone=self._executor.has_acted_alone,
            is_stopping_alone=self._executor.is_stopping_alone or self._executor.awaits_reset(self._cib),
            is_fencing=self._fencer.is_fencing,
            is_leader=self._leadership.is_self,
            device=self._pacer_news.device_at(report, moment, is_answering=has_pacer),
            has_pacer=has_pacer,
            keeps_running=self._executor.keeps_running,
        )
        for effect in effects:
            if isinstance(effect, DrawIncarnation):
                self._reincarnate()
            else:
                self._perform(effect)

    def _reincarnate(self) -> None:
        self._incarnation = Incarnation(self._settings.boot_id, self._ports.entropy.token())
        self._log("daemon.reincarnated", Priority.WARNING, incarnation=str(self._incarnation))
        self._proposer.forget_scope(Scope.INCARNATION)
        self._joining.reincarnated(self._incarnation)
        self._fencer.reincarnated(self._incarnation)
        self._alerts.reincarnated(self._incarnation)
        self._devices.reincarnated()
        self._recovery.reincarnated()
        self._controller.reincarnated(self._incarnation)
        self._perform_all(self._executor.reincarnated(self._incarnation, self.moment()))
        self._ports.pacer.configure(self._cluster_settings.pacer_settings(self._cib, self._incarnation))
        self._wake()

    def _step_executor_and_fencer(self) -> None:
        had_acted_alone = self._executor.has_acted_alone
        if not self._show_cib():
            self._perform_all(self._executor.ticked(self.moment()))
        self._perform_all(self._fencer.ticked(self.moment()))
        if self._executor.has_acted_alone and not had_acted_alone:
            # Where nothing had to be stopped, no agent's end triggers the next step of the membership.
            self._wake()

    def _show_cib(self) -> bool:
        """Pass the newest applied CIB to executor and fencer, if it is new; return whether it was.

        What they start must still be wanted in it.
        """
        is_cib_new, self._is_cib_new = self._is_cib_new, False
        if is_cib_new:
            self._perform_all(self._executor.cib_changed(self._cib, self.moment()))
            self._perform_all(self._fencer.cib_changed(self._cib, self.moment()))
        return is_cib_new

    def _step_controller(self, changes: Sequence[Change]) -> None:
        if self._safe_mode.is_over_at(self._cib.version.epoch):
            self._log("safe-mode.left", Priority.NOTICE, epoch=self._cib.version.epoch)
        if self._safe_mode.reason:
            return
        report = self._ports.pacer.report()
        self._perform_all(self._controller.step(self._cib, changes, report, self.moment()))
        if self._controller.is_dc:
            heard = _heard_both_ways(report)
            self._perform_all(self._learners.step(self._cib, self._leadership.term, self.moment(), heard))

    def _finish_leaving(self) -> None:
        if self._leaving.presence is not Presence.DRAINING:
            return
        moment = self.moment()
        why = self._leaving.why_to_give_up(is_led=self._leadership.leader is not None, now=moment.now)
        if why:
            self._perform_all(self._executor.give_up(why, moment))
        has_stopped_alone = self._executor.has_acted_alone and not self._executor.is_stopping_alone
        if self._joining.state is JoinState.LEFT or has_stopped_alone:
            self._leaving.left()
            self._log("daemon.left", joined=str(self._joining.state))
            self._left()

    def _finish_retirement(self) -> None:
        """End when this node was removed: nothing that it did from now on would be accepted."""
        node, cib = self._settings.node, self._cib
        status = cib.status.nodes.get(node)
        is_retired = node in cib.membership.retired or (status is not None and status.is_retired)
        if is_retired and self._leaving.presence is not Presence.REMOVED:
            self._leaving.removed()
            self._log("daemon.retired", Priority.NOTICE)
            self._retired()

    def _arm(self) -> None:
        moment = self.moment()
        due = min(
            self._executor.deadline(moment),
            self._fencer.deadline(),
            self._joining.deadline(),
            self._controller.deadline() if not self._safe_mode.reason else NEVER,
            self._proposer.deadline(),
            self._learners.deadline() if self._controller.is_dc else NEVER,
            self._load_watch.deadline(),
            self._devices.deadline(),
            self._recovery.deadline(),
            self._alerts.deadline(),
            self.dc_bulletins.deadline(),
            self._hand_over.deadline() if self._leadership.is_self else NEVER,
            self._leaving.deadline(is_led=self._leadership.leader is not None),
        )
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due < NEVER:
            self._timer = self._ports.clock.call_at(max(due, after(moment.now, 1)), self._wake)

    def _stamp(self) -> None:
        """Stamp the pacer's page to show that the main loop runs; whatever blocks the loop ends the stamps."""
        if self._leaving.presence is Presence.STOPPED:
            return
        if self._stamp_timer is not None:
            self._stamp_timer.cancel()
        self._ports.pacer.stamp_main()
        self._stamp_timer = self._ports.clock.call_at(
            after(self._ports.clock.now(), self._cluster_settings.timing.stamp_ms), self._stamp
        )

    # -- effects ----------------------------------------------------------------------------------------------------

    def _conclude(self, effects: Sequence[Effect]) -> None:
        self._perform_all(effects)
        self._wake()

    def _perform_all(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        ports = self._ports
        match effect:
            case Propose(scope=scope, key=key, command=command):
                self._propose(scope, key, command)
            case RunAgent() | KillAgent() | WatchService() | UnwatchService():
                self._work.use_agents(effect)
            case LookAtDevices() | RecoverDevice() | ExamineDevice():
                self._work.use_devices(effect)
            case CallFenceAgent():
                self._work.fence(effect)
            case TransferLeadership(to=to):
                self._transfer(to)
            case PrepareToPlan():
                ports.planner.prepare(self._cib)
            case AskForPlan(number=number, now=now):
                ports.planner.ask(number, self._cib, now)
            case PublishEmpty() | Condemn():
                self._tell_pacer(effect)
            case Note(kind=kind, text=text):
                self._log(f"note.{kind}", Priority.NOTICE, text=text)

    def _tell_pacer(self, effect: PublishEmpty | Condemn) -> None:
        if isinstance(effect, PublishEmpty):
            self._ports.pacer.set_empty(is_empty=effect.is_empty)
        else:
            self._log("effect.condemn", Priority.WARNING, is_condemned=effect.is_condemned)
            self._ports.pacer.set_condemned(is_condemned=effect.is_condemned)

    def _propose(self, scope: Scope, key: str, command: Command) -> None:
        moment = self.moment()
        done = partial(self._proposal_applied, command)
        try:
            require_level(self._cib, command)
            is_new = self._proposer.propose(key, command, moment.now, moment.wall, done, scope=scope)
        except (EntryTooLargeError, NeedsUpgradeError) as error:
            self._log("command.not-proposed", Priority.ERROR, key=key, problem=str(error))
            self._controller.not_proposed(command, str(error))
            return
        if is_new:
            self._log("command.proposed", Priority.DEBUG, key=key, command=type(command).__name__)

    def _proposal_applied(self, command: Command, applied: CibApplied) -> None:
        if applied.refusal is not None:
            self._log("command.refused", Priority.NOTICE, command=type(command).__name__, why=applied.refusal.text)
            if isinstance(command, Join):
                self._joining.refused(applied.refusal, self.moment())
        self._perform_all(self._controller.applied(command, applied.refusal, applied.cib, self.moment()))

    def _hand_over_as_wanted(self) -> None:
        """Hand over to the leader that an administrator requested."""
        wanted = self._hand_over.wanted(self._leadership.leader, self._ports.clock.now())
        if wanted is not None and self._leadership.is_self:
            self._transfer(wanted)

    def _transfer(self, to: NodeName) -> None:
        if not self._hand_over.may_try(self._ports.clock.now()):
            return
        self._log("effect.transfer-leadership", Priority.NOTICE, to=str(to))
        self._ports.store.transfer_leadership(to)

    def _log(self, kind: str, priority: Priority = Priority.INFO, /, **fields: str | int | bool | None) -> None:
        self._ports.log.write(kind, priority=priority, **fields)


def _heard_both_ways(report: PacerReport | None) -> frozenset[NodeName]:
    nodes = () if report is None else report.nodes
    return frozenset(node.name for node in nodes if node.answered_at is not None)
