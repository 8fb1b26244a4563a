"""The only way to change the CIB: `apply(cib, envelope)`, pure and total.

Every node folds the same entries through this function and must get the same value, so it reads nothing but its
arguments. A refused command is an answer, equal everywhere, never an exception. An exception in a handler is a bug, and
is turned into a refusal so that one entry cannot stop every node at once (safety.md §4); only exceptions that depend on
the machine (`NODES_OWN`) end the process.
"""

from collections.abc import Callable, Mapping
from typing import Any

from haclusterd.cib import (
    apply_alerts,
    apply_api_tokens,
    apply_clean_up,
    apply_configuration,
    apply_devices,
    apply_fencing,
    apply_leadership,
    apply_members,
    apply_nodes,
    apply_orders,
    apply_recoveries,
    apply_restarts,
    apply_rules,
    apply_staged,
    apply_tickets,
    apply_watchdog,
    commands,
)
from haclusterd.cib.changes import Applied, Change, ChangeKind, Refusal, RefusalCode
from haclusterd.cib.derived.alert_events import with_alerts, with_one_dropped
from haclusterd.cib.derived.availability import with_availability
from haclusterd.cib.derived.history_facts import facts_of, marked
from haclusterd.cib.levels import level_of, rules_at
from haclusterd.cib.secrets import apply_secrets
from haclusterd.cib.staging import PutTogether, put_together
from haclusterd.cib.verdict import Entry, Verdict
from haclusterd.model.cluster import Cib, RefusedRequest
from haclusterd.model.ids import RequestId, Term
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules

REMEMBERED_REQUESTS = 128
"""Number of remembered request ids per proposer: more than it can have in flight."""
REFUSAL_TEXT_MAX = 200
"""Maximum length in characters of a remembered refusal."""

_Handler = Callable[[Cib, Any, Entry], Verdict]

_HANDLERS: dict[type, _Handler] = {
    commands.FormCluster: apply_members.form_cluster,
    commands.ChangeMembers: apply_members.change_members,
    commands.Retire: apply_members.retire,
    commands.RequestCertificate: apply_members.request_certificate,
    commands.MembersFollowed: apply_members.members_followed,
    commands.DcElected: apply_leadership.dc_elected,
    commands.Join: apply_nodes.join,
    commands.PublishWatchdog: apply_watchdog.publish_watchdog,
    commands.PublishLoad: apply_nodes.publish_load,
    commands.PublishDevices: apply_devices.publish_devices,
    commands.ReleaseDevices: apply_devices.release_devices,
    commands.SteerDevice: apply_devices.steer_device,
    commands.BeginRecovery: apply_recoveries.begin_recovery,
    commands.RecordRecovery: apply_recoveries.record_recovery,
    commands.EndDeviceStorm: apply_recoveries.end_device_storm,
    commands.RequestLeave: apply_nodes.request_leave,
    commands.Leaving: apply_nodes.leaving,
    commands.Lost: apply_nodes.lost,
    commands.RequestFence: apply_nodes.request_fence,
    commands.SetTransientAttribute: apply_nodes.set_transient_attribute,
    commands.IssueOrders: apply_orders.issue_orders,
    commands.JudgeRules: apply_rules.judge_rules,
    commands.VoidOrders: apply_orders.void_orders,
    commands.RecordResults: apply_orders.record_results,
    commands.CleanUp: apply_clean_up.clean_up,
    commands.ForgetHistory: apply_clean_up.forget_history,
    commands.Forget: apply_clean_up.forget,
    commands.IssueFence: apply_fencing.issue_fence,
    commands.RecordFenceAgent: apply_fencing.record_fence_agent,
    commands.Fenced: apply_fencing.fenced,
    commands.RecordFenceFailure: apply_fencing.record_fence_failure,
    commands.EndAbandonedFencing: apply_fencing.end_abandoned_fencing,
    commands.RecordProof: apply_fencing.record_proof,
    commands.ForgetFencings: apply_fencing.forget_fencings,
    commands.SetTicket: apply_tickets.set_ticket,
    commands.RestartResource: apply_restarts.restart_resource,
    commands.EndRestart: apply_restarts.end_restart,
    commands.AddApiToken: apply_api_tokens.add_api_token,
    commands.RevokeApiToken: apply_api_tokens.revoke_api_token,
    commands.RequestLeader: apply_leadership.request_leader,
    commands.ReadBarrier: apply_leadership.read_barrier,
    commands.RecordAlerts: apply_alerts.record_alerts,
    commands.RequestAlertTest: apply_alerts.request_alert_test,
    commands.PutSecret: apply_secrets.put_secret,
    commands.DeleteSecret: apply_secrets.delete_secret,
    commands.RotateSecrets: apply_secrets.rotate_secrets,
    commands.ShareSecretKey: apply_secrets.share_secret_key,
    commands.NoteSecretShown: apply_secrets.note_secret_shown,
    commands.ChangeConfiguration: apply_configuration.change_configuration,
    commands.StageChange: apply_staged.stage_change,
    commands.ActivateStaged: apply_staged.activate_staged,
}


def apply(
    cib: Cib,
    envelope: commands.Envelope,
    *,
    index: int,
    term: Term,
    rules: SafetyRules = ALL_RULES,
    is_in_force: bool = False,
    read_staged: PutTogether = put_together,
) -> Applied:
    """Apply one committed command, which is at `index` and was appended in Raft term `term`.

    `is_in_force`: it changes the members, and Raft follows it since it was appended. It can then be neither refused nor
    skipped as a repetition; its version makes a repetition harmless. `read_staged` must return what `put_together`
    does.
    """
    level = level_of(envelope.command)
    if level > cib.feature_level:
        # Older nodes cannot read it: it must have no effect here either, not even on the remembered requests.
        return unreadable(cib, index=index, detail=f"it needs feature level {level}", envelope=envelope)
    known = cib.requests.get(envelope.proposer, ())
    if envelope.request in known and not is_in_force:
        return Applied(replace(cib, index=index), envelope, (), _refusal_before(cib, envelope), is_repetition=True)
    entry = Entry(
        at=envelope.at,
        proposer=envelope.proposer,
        index=index,
        term=term,
        rules=rules_at(rules, cib.feature_level),
        is_in_force=is_in_force,
        request=envelope.request,
        put_together=read_staged,
    )
    verdict = _verdict(cib, envelope.command, entry)
    remembered = _remember(known, envelope.request)
    changes = verdict.changes
    if verdict.refusal is not None:
        text = f"{type(envelope.command).__name__} by {envelope.proposer}: {verdict.refusal.text}"
        changes = (Change(ChangeKind.REFUSED, envelope.proposer, None, text),)
    facts = facts_of(envelope, changes)
    after = replace(
        verdict.cib,
        index=index,
        requests={**cib.requests, envelope.proposer: remembered},
        refused=_remember_refusal(cib, envelope, remembered, verdict.refusal),
        history=marked(verdict.cib.history, index, facts),
    )
    return Applied(after, envelope, changes, verdict.refusal, facts)


def unreadable(cib: Cib, *, index: int, detail: str, envelope: commands.Envelope | None = None) -> Applied:
    """Return the result of an entry that the codec refuses, or that older nodes cannot read: a recorded refusal."""
    refusal = Refusal(RefusalCode.UNREADABLE if envelope is None else RefusalCode.NEEDS_UPGRADE, detail)
    changes = (Change(ChangeKind.REFUSED, None, None, detail),)
    facts = facts_of(envelope, changes)
    after = replace(cib, index=index, history=marked(cib.history, index, facts))
    return Applied(after, envelope, changes, refusal, facts)


NODES_OWN = (MemoryError, RecursionError, OSError, SystemError)
"""Exceptions that depend on the machine and the moment: they end the process, which then folds the entry again."""


def _verdict(cib: Cib, command: commands.Command, entry: Entry) -> Verdict:
    try:
        verdict = _HANDLERS[type(command)](cib, command, entry)
        if verdict.refusal is not None:
            # Whatever was prepared before the objection was found.
            return Verdict(cib, (), verdict.refusal)
        verdict = apply_devices.with_claims_over(cib, verdict, entry.rules)
        if verdict.changes:
            verdict = apply_restarts.with_restarts_ended(verdict)
            verdict = _with_availability(cib, verdict, command, entry)
            verdict = _with_alerts(cib, verdict, command, entry)
        return verdict
    except NODES_OWN as error:
        # What may not happen on another node must never become a refusal that the others do not make.
        raise RuntimeError(f"entry {entry.index} was not applied: {type(error).__name__} on this node") from error
    except Exception as bug:
        if not entry.rules.raising_apply_is_a_refusal:
            raise
        detail = f"internal error in apply: {type(bug).__name__}"
        return Verdict(cib, (), Refusal(RefusalCode.INTERNAL_ERROR, detail))


def _with_availability(before: Cib, verdict: Verdict, command: commands.Command, entry: Entry) -> Verdict:
    """Add changes of the availability; a bug there loses a part of the account, and never the command's effect."""
    try:
        return with_availability(before, verdict, command, entry)
    except NODES_OWN:
        raise
    except Exception:
        if not entry.rules.raising_apply_is_a_refusal:
            raise
        return verdict


def _with_alerts(before: Cib, verdict: Verdict, command: commands.Command, entry: Entry) -> Verdict:
    """Add alerts to be sent; a bug there loses an alert, which is counted, and never the command's effect."""
    try:
        return replace(verdict, cib=with_alerts(before, verdict.cib, command, entry.at, verdict.changes[0].incident))
    except NODES_OWN:
        raise
    except Exception:
        if not entry.rules.raising_apply_is_a_refusal:
            raise
        return replace(verdict, cib=with_one_dropped(verdict.cib, entry.at))


def _remember(known: tuple[RequestId, ...], request: RequestId) -> tuple[RequestId, ...]:
    return (*known[-(REMEMBERED_REQUESTS - 1) :], request)


def _remember_refusal(
    cib: Cib, envelope: commands.Envelope, remembered: tuple[RequestId, ...], refusal: Refusal | None
) -> Mapping[str, tuple[RefusedRequest, ...]]:
    """Return the remembered refusals after a command; a proposer's refusals are kept as long as its request ids."""
    before = cib.refused.get(envelope.proposer, ())
    kept = tuple(each for each in before if each.request in remembered)
    if refusal is not None:
        kept = (*kept, RefusedRequest(envelope.request, str(refusal.code), refusal.text[:REFUSAL_TEXT_MAX]))
    if kept == before:
        return cib.refused
    others = {proposer: each for proposer, each in cib.refused.items() if proposer != envelope.proposer}
    return {**others, envelope.proposer: kept} if kept else others


def _refusal_before(cib: Cib, envelope: commands.Envelope) -> Refusal | None:
    """Return the refusal of a request that was applied before; None: it had its effect.

    Its proposer may not have seen that answer: a snapshot may have taken it past the entry.
    """
    for each in cib.refused.get(envelope.proposer, ()):
        if each.request == envelope.request:
            return Refusal(RefusalCode(each.code), each.text)
    return None
