"""What becomes of secrets by commands, equally on every node: order, and no value lost by which something may run."""

from collections.abc import Mapping

from haclusterd.cib.apply import apply
from haclusterd.cib.changes import Applied, ChangeKind, RefusalCode
from haclusterd.cib.commands import (
    Command,
    DeleteSecret,
    Envelope,
    IssueOrders,
    NoteSecretShown,
    PutSecret,
    RotateSecrets,
    ShareSecretKey,
)
from haclusterd.cib.secrets.apply_secrets import without_keys_of
from haclusterd.model.cluster import Cib, DesignatedController, Member, NodeState, NodeStatus, Status
from haclusterd.model.configuration import AttributeSet, Configuration, Primitive
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import replace
from haclusterd.model.secrets import EARLIER_MAX, SECRETS_MAX, Secrets, WrappedKey

N1, N2 = NodeName("n1"), NodeName("n2")
KEYS = {N1: WrappedKey("p1", "for n1"), N2: WrappedKey("p2", "for n2")}
AGENT = AgentReference("ocf", "test", "web")
WEB = ResourceId("web")
INCARNATION = Incarnation("boot", "process")


def cluster() -> Cib:
    nodes = {name: NodeStatus(name, state=NodeState.ONLINE, incarnation=INCARNATION, secret_key=f"p{name[1]}")
             for name in (N1, N2)}  # fmt: skip
    members = {name: Member(name, ()) for name in (N1, N2)}
    controller = DesignatedController(N1, INCARNATION, Term(1))
    web = Primitive(WEB, AGENT)
    return Cib("uuid", "test", members, configuration=Configuration(resources={WEB: web}),
               status=Status(nodes=nodes, controller=controller))  # fmt: skip


def put(cib: Cib, command: Command) -> Applied:
    envelope = Envelope(RequestId(f"r{cib.index}"), N1, WallTime(9), command)
    return apply(cib, envelope, index=cib.index + 1, term=Term(1))


def value(cib: Cib, name: str, sealed: str, keys: Mapping[NodeName, WrappedKey] | None = None) -> PutSecret:
    first = {} if cib.secrets.key_id else KEYS
    return PutSecret(cib.secrets.version, name, sealed, "k1", "root@n1", "new", first if keys is None else keys)


def done(cib: Cib, command: Command) -> Cib:
    applied = put(cib, command)
    assert applied.refusal is None, applied.refusal
    return applied.cib


def refusal(cib: Cib, command: Command) -> RefusalCode:
    applied = put(cib, command)
    assert applied.refusal is not None
    assert applied.cib.secrets == cib.secrets
    return applied.refusal.code


def running(cib: Cib, parameter: str) -> Cib:
    """Return the same with `web` active on n2, started with a parameter."""
    at = WallTime(1)
    record = OperationRecord("start", 0, 1, ExitCode.OK, ExecutionStatus.DONE, ExitCode.OK, at, at)
    history = ResourceHistory(WEB, AGENT, {"start_0": record}, parameters={"password": parameter})
    node = replace(cib.status.nodes[N2], histories={WEB: history})
    return replace(cib, status=replace(cib.status, nodes={**cib.status.nodes, N2: node}))


def test_the_first_secret_brings_the_key_and_a_revision_is_where_it_stands() -> None:
    applied = put(cluster(), value(cluster(), "db", "sealed"))
    secrets = applied.cib.secrets
    assert (secrets.key_id, secrets.keys, secrets.values["db"].revision) == ("k1", KEYS, 1)
    [said] = applied.changes
    assert (said.kind, said.text) == (ChangeKind.SECRET_CHANGED, "secret db made by root@n1: new")
    assert "sealed" not in repr(applied.facts)
    changed = done(applied.cib, value(applied.cib, "db", "other"))
    assert (changed.secrets.values["db"].revision, dict(changed.secrets.values["db"].earlier)) == (2, {})


def test_nothing_is_changed_over_another_change_or_by_another_key() -> None:
    cib = done(cluster(), value(cluster(), "db", "sealed"))
    assert refusal(cib, replace(value(cib, "db", "x"), expected_version=0)) is RefusalCode.CONFIGURATION_CONFLICT
    assert refusal(cib, replace(value(cib, "db", "x"), key_id="k2")) is RefusalCode.UNKNOWN_KEY
    assert refusal(cib, value(cib, "db", "x", KEYS)) is RefusalCode.DUPLICATE_KEY, "two nodes made the first key"
    assert refusal(cluster(), value(cluster(), "db", "x", {})) is RefusalCode.UNKNOWN_KEY
    assert refusal(cluster(), value(cluster(), "no name", "x")) is RefusalCode.UNKNOWN_KEY
    assert refusal(cib, value(cib, "db", "x" * 7000)) is RefusalCode.UNKNOWN_KEY
    late = RotateSecrets(0, "k2", KEYS, cib.secrets.values, "root@n1")
    assert refusal(cib, late) is RefusalCode.CONFIGURATION_CONFLICT


def test_a_value_is_kept_as_long_as_something_may_run_with_it() -> None:
    cib = running(done(cluster(), value(cluster(), "db", "one")), "secret:db@1")
    cib = done(cib, value(cib, "db", "two"))
    cib = done(cib, value(cib, "db", "three"))
    assert dict(cib.secrets.values["db"].earlier) == {"1": "one"}, "by 2 nothing was ever started"
    restarted = running(cib, "secret:db@3")
    assert dict(done(restarted, value(restarted, "db", "four")).secrets.values["db"].earlier) == {"3": "three"}


def order(action: ActionName, parameter: str) -> IssueOrders:
    return IssueOrders(Term(1), (Order(
        OrderKey(f"o-{action}"), N2, INCARNATION, Term(1), WEB, action, 0, AGENT, {"password": parameter}, {},
        1000, 1000, ExitCode.OK,
    ),))  # fmt: skip


def test_no_order_of_an_earlier_plan_goes_by_a_value_that_is_not_kept() -> None:
    # It would be carried out by another value than it is recorded with, and what it starts would be found no more.
    cib = done(cluster(), value(cluster(), "db", "one"))
    cib = done(cib, value(cib, "db", "two"))
    for parameter in ("secret:db@1", "secret:db"):
        for action in (ActionName.START, ActionName.MONITOR, ActionName.RELOAD_AGENT):
            assert refusal(cib, order(action, parameter)) is RefusalCode.NOT_CONFIGURED
        assert done(cib, order(ActionName.STOP, parameter)).status.nodes[N2].orders
    for parameter in ("secret:db@2", "secret:none", "secret:none@1"):
        assert done(cib, order(ActionName.START, parameter)).status.nodes[N2].orders
    runs = running(cib, "secret:db@1")
    assert done(runs, order(ActionName.MONITOR, "secret:db@1")).status.nodes[N2].orders, "asked as it was started"
    assert refusal(runs, order(ActionName.RELOAD_AGENT, "secret:db@1")) is RefusalCode.NOT_CONFIGURED


def test_more_values_than_can_be_kept_are_refused() -> None:
    cib = done(cluster(), value(cluster(), "db", "sealed"))
    secret = cib.secrets.values["db"]
    nodes = dict(cib.status.nodes)
    for number in range(1, EARLIER_MAX + 2):
        name = NodeName(f"o{number}")
        nodes[name] = replace(running(cib, f"secret:db@{number}").status.nodes[N2], name=name)
    many = replace(secret, revision=EARLIER_MAX + 1, earlier={str(each): "x" for each in range(1, EARLIER_MAX + 1)})
    cib = replace(
        cib, status=replace(cib.status, nodes=nodes), secrets=replace(cib.secrets, values={"db": many})
    )
    assert refusal(cib, value(cib, "db", "next")) is RefusalCode.STILL_ACTIVE


def test_a_secret_goes_when_nothing_needs_it() -> None:
    cib = done(cluster(), value(cluster(), "db", "one"))
    web = Primitive(WEB, AGENT, parameters=(AttributeSet("p", (("password", "secret:db"),)),))
    delete = DeleteSecret("db", "root@n1")
    used = replace(cib, configuration=Configuration(resources={WEB: web}))
    assert refusal(used, delete) is RefusalCode.UNSAFE_CONFIGURATION
    assert refusal(running(cib, "secret:db@1"), delete) is RefusalCode.STILL_ACTIVE
    assert done(cib, delete).secrets.values == {}
    assert done(cluster(), delete).secrets == Secrets()


def test_another_key_changes_neither_values_nor_revisions() -> None:
    cib = running(done(cluster(), value(cluster(), "db", "one")), "secret:db@1")
    cib = done(cib, value(cib, "db", "two"))
    known = cib.secrets.values["db"]
    again = replace(known, sealed="two again", earlier={"1": "one again"}, author="somebody")
    applied = put(cib, RotateSecrets(cib.secrets.version, "k2", {N1: KEYS[N1]}, {"db": again}, "root@n1"))
    after = applied.cib.secrets
    assert (after.key_id, set(after.keys)) == ("k2", {N1})
    assert after.values == {"db": replace(again, author="root@n1")}
    assert [each.kind for each in applied.changes] == [ChangeKind.SECRET_KEY_CHANGED]
    assert applied.cib.in_force == cib.in_force

    other = RotateSecrets(cib.secrets.version, "k2", KEYS, {"db": replace(again, revision=9)}, "root@n1")
    assert refusal(cib, other) is RefusalCode.UNKNOWN_KEY
    assert refusal(cib, replace(other, values={"db": replace(again, earlier={})})) is RefusalCode.UNKNOWN_KEY
    assert refusal(cib, replace(other, values={})) is RefusalCode.STILL_ACTIVE, "nothing could find or end what runs"
    ended = done(cluster(), value(cluster(), "db", "one"))
    lost = put(ended, replace(other, expected_version=ended.secrets.version, values={}))
    assert (lost.cib.secrets.values, [each.kind for each in lost.changes]) == ({}, [ChangeKind.SECRET_CHANGED])


def test_what_has_ended_keeps_no_secret_that_nobody_can_open() -> None:
    cib = running(done(cluster(), value(cluster(), "db", "one")), "secret:db@1")
    at = WallTime(2)
    stop = OperationRecord("stop", 0, 2, ExitCode.OK, ExecutionStatus.DONE, ExitCode.OK, at, at)
    history = cib.status.nodes[N2].histories[WEB]
    stopped = replace(history, records={**history.records, "stop_0": stop})
    node = replace(cib.status.nodes[N2], histories={WEB: stopped}, unverified=frozenset({WEB}))
    cib = replace(cib, status=replace(cib.status, nodes={**cib.status.nodes, N2: node}))
    assert done(cib, RotateSecrets(cib.secrets.version, "k2", KEYS, {}, "root@n1")).secrets.values == {}


def test_members_without_the_key_get_it_once() -> None:
    cib = done(cluster(), value(cluster(), "db", "one", {N1: KEYS[N1]}))
    share = ShareSecretKey("k1", {N2: KEYS[N2], N1: WrappedKey("p1", "again"), NodeName("n9"): KEYS[N1]})
    after = done(cib, share)
    assert after.secrets.keys == KEYS
    assert done(after, share).secrets is after.secrets
    assert refusal(after, replace(share, key_id="k0")) is RefusalCode.UNKNOWN_KEY
    other = done(cib, ShareSecretKey("k1", {N2: WrappedKey("not its key", "x")}))
    assert set(other.secrets.keys) == {N1}
    assert set(without_keys_of(after, [N2]).secrets.keys) == {N1}


def test_who_is_shown_a_value_is_noted() -> None:
    cib = done(cluster(), value(cluster(), "db", "one"))
    applied = put(cib, NoteSecretShown("db", "root@n1", "audit"))
    assert [(each.kind, each.text) for each in applied.changes] == [
        (ChangeKind.SECRET_SHOWN, "secret db shown by root@n1: audit")
    ]
    assert refusal(cib, NoteSecretShown("none", "root@n1")) is RefusalCode.UNKNOWN_KEY


def test_there_are_not_too_many() -> None:
    cib = cluster()
    for number in range(SECRETS_MAX):
        cib = done(cib, value(cib, f"s{number}", "x"))
    assert refusal(cib, value(cib, "more", "x")) is RefusalCode.WRONG_NODE_STATE
    large = cluster()
    for number in range(6):
        large = done(large, value(large, f"s{number}", "x" * 6000))
    assert refusal(large, value(large, "more", "x" * 6000)) is RefusalCode.WRONG_NODE_STATE
