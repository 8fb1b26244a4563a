"""`apply` for the members: the first ones, then one change after the other (Raft thesis §4.1).

A change adds or removes at most one voter. Raft counts votes by a change as soon as it is in the log, so the leader
decides whether it is allowed when it appends it; a change that was appended as in force is folded here without a second
judgement, and any other is refused. A member that leaves is retired first: from then on it cannot join, so nothing can
start there between the judgement and the change.
"""

from collections.abc import Mapping

from haclusterd.cib import commands
from haclusterd.cib.activity import possibly_active
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.secrets.apply_secrets import without_keys_of
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse, with_node, with_status
from haclusterd.model.cluster import Cib, Member, Membership, NodeState, NodeStatus
from haclusterd.model.ids import NodeName
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules

VOTERS_MAX = 7
"""With more voters each commit waits for more disks, and no further failures that occur in practice are survived."""
MEMBERS_MAX = 64
REQUEST_LENGTH_MAX = 8 * 1024


def form_cluster(cib: Cib, command: commands.FormCluster, entry: Entry) -> Verdict:
    """Form the cluster; every member is unseen until it joins.

    Something is known of a member before only where a cluster is recovered from it (`cib.recovery`).
    """
    if cib.cluster_uuid:
        return refuse(cib, RefusalCode.ALREADY_FORMED, f"the cluster is formed already ({cib.cluster_uuid})")
    members = {member.name: member for member in sorted(command.members, key=lambda member: member.name)}
    nodes = {name: replace(cib.status.nodes.get(name, NodeStatus(name)), since=entry.at) for name in members}
    formed = replace(
        cib,
        cluster_uuid=command.cluster_uuid,
        cluster_name=command.cluster_name,
        members=members,
        status=replace(cib.status, nodes=nodes),
    )
    text = f"cluster {command.cluster_name} formed with {', '.join(members)}"
    return accept(formed, change(ChangeKind.CLUSTER_FORMED, text))


def change_members(cib: Cib, command: commands.ChangeMembers, entry: Entry) -> Verdict:
    """Set the members that Raft follows already; refuse a change that the leader did not put into force."""
    if not entry.is_in_force:
        objection = objection_to(cib, command)
        if objection:
            return refuse(cib, RefusalCode.MEMBERS_CONFLICT, objection)
        waiting = waits_for(cib, command, entry.rules)
        why = waiting or "another change of the members is under way, or the leader has just begun"
        return refuse(cib, RefusalCode.MEMBERS_NOT_NOW, f"{why}; try again in a moment")
    members = {member.name: member for member in sorted(command.members, key=lambda member: member.name)}
    dropped = sorted(name for name in cib.members if name not in members)
    membership = Membership(
        command.version,
        tuple(sorted({*cib.membership.retired, *dropped})),
        tuple(sorted({*cib.membership.revoked, *command.revoked})),
        {
            name: request
            for name, request in cib.membership.renewals.items()
            if name in members and members[name].certificate == cib.members[name].certificate
        },
    )
    nodes = {name: status for name, status in cib.status.nodes.items() if name not in dropped}
    for name in members:
        if name not in nodes:
            # It has never run anything in this cluster: nothing has to be fenced before others start.
            nodes[name] = NodeStatus(name, state=NodeState.LEFT, since=entry.at)
    changed = without_keys_of(replace(cib, members=members, membership=membership), dropped)
    devices = {name: known for name, known in cib.status.devices.items() if name not in dropped}
    text = _describe(cib.members, members, command)
    status = replace(cib.status, nodes=nodes, devices=devices)
    return accept(with_status(changed, status), change(ChangeKind.MEMBERS_CHANGED, text))


def objection_to(cib: Cib, command: commands.ChangeMembers) -> str:
    """Return why this change can never be made from the present members; empty when it can."""
    names = [member.name for member in command.members]
    before, after = set(cib.voters()), {member.name for member in command.members if member.is_voter}
    if command.version != cib.membership.version + 1:
        return f"the members are at version {cib.membership.version} now, the change was made for {command.version - 1}"
    if len(set(names)) != len(names):
        return "a member is named twice"
    retired = sorted(set(names) & set(cib.membership.retired))
    if retired:
        return f"{', '.join(retired)} was a member before: a name never comes back, take another"
    if len(before ^ after) > 1:
        return "one voter at a time: each majority before and after must have a voter in common"
    if not after:
        return "a cluster needs a voter"
    if len(after) > VOTERS_MAX:
        return f"at most {VOTERS_MAX} nodes vote; let further nodes be members without a vote"
    return f"at most {MEMBERS_MAX} members" if len(names) > MEMBERS_MAX else ""


def waits_for(cib: Cib, command: commands.ChangeMembers, rules: SafetyRules = ALL_RULES) -> str:
    """Return what must happen before this change; empty when nothing must."""
    version = cib.membership.version
    behind = sorted(
        name
        for name, status in cib.status.nodes.items()
        if status.state is NodeState.ONLINE and status.membership != version
    )
    if behind and rules.members_followed_first:
        return f"{', '.join(behind)} does not follow version {version} of the members yet"
    kept = {member.name for member in command.members}
    present = sorted(
        name for name, status in cib.status.nodes.items() if name not in kept and not status.is_retired
    )
    return f"{', '.join(present)} must be retired first" if present and rules.retired_before_dropped else ""


def retire(cib: Cib, command: commands.Retire, entry: Entry) -> Verdict:
    """Exclude a member for good, once nothing can be active there any more."""
    status = cib.status.nodes.get(command.node)
    if status is None:
        return refuse(cib, RefusalCode.NOT_A_MEMBER, f"{command.node} is not a member of this cluster")
    if status.is_retired:
        return accept(cib)
    is_gone = status.state in (NodeState.LEFT, NodeState.FENCED) and not possibly_active(status)
    if not is_gone or any(order.target == command.node for order in cib.status.fence_orders.values()):
        text = f"{command.node} is {status.state}: it must have left, or its fencing must be recorded"
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, text)
    reason = f": {command.reason}" if command.reason else ""
    return accept(
        with_node(cib, replace(status, is_retired=True)),
        change(ChangeKind.NODE_RETIRED, f"{command.node} is retired by {command.author}{reason}", node=command.node),
    )


def request_certificate(cib: Cib, command: commands.RequestCertificate, entry: Entry) -> Verdict:
    """Record that a member is to get another certificate; the node with the authority's key will make it."""
    if command.node not in cib.members:
        return refuse(cib, RefusalCode.NOT_A_MEMBER, f"{command.node} is not a member of this cluster")
    if len(command.request) > REQUEST_LENGTH_MAX:
        return refuse(cib, RefusalCode.MEMBERS_CONFLICT, f"a request of {len(command.request)} characters")
    renewals = {**cib.membership.renewals, command.node: command.request}
    changed = replace(cib, membership=replace(cib.membership, renewals=dict(sorted(renewals.items()))))
    if command.request:
        return accept(changed)
    text = f"{command.node} is to get another certificate, says {command.author}"
    return accept(changed, change(ChangeKind.CERTIFICATE_REQUESTED, text, node=command.node))


def members_followed(cib: Cib, command: commands.MembersFollowed, entry: Entry) -> Verdict:
    """Record that a node's pacer and links follow a version of the members."""
    status = cib.status.nodes.get(command.node)
    if status is None or status.incarnation != command.incarnation:
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"that incarnation of {command.node} is over")
    if command.version <= status.membership:
        return accept(cib)
    return accept(with_node(cib, replace(status, membership=command.version)))


def _describe(
    before: Mapping[NodeName, Member], after: Mapping[NodeName, Member], command: commands.ChangeMembers
) -> str:
    parts = [f"{name} added{'' if after[name].is_voter else ' without a vote'}" for name in after if name not in before]
    parts += [f"{name} removed" for name in before if name not in after]
    for name in before:
        if name in after and before[name] != after[name]:
            parts.append(_difference(before[name], after[name]))
    parts += ["a certificate revoked"] if command.revoked else []
    reason = f" ({command.reason})" if command.reason else ""
    return f"members, version {command.version}, by {command.author}: {', '.join(parts) or 'as before'}{reason}"


def _difference(before: Member, after: Member) -> str:
    if before.is_voter != after.is_voter:
        return f"{after.name} votes" if after.is_voter else f"{after.name} votes no more"
    if before.addresses != after.addresses:
        places = " ".join(f"{host}:{port}" for host, port in after.addresses)
        return f"{after.name} is reached at {places}"
    if before.certificate != after.certificate:
        return f"{after.name} has {'another' if before.certificate else 'shown its'} certificate"
    return f"{after.name} changed"
