"""Verbs about secrets: what they propose, to whom they answer a value, and that a value is in nothing else."""

import random
from typing import Any

import pytest

from haclusterd.cib.codec import encode_cib, encode_envelope
from haclusterd.cib.commands import Command, Envelope, NoteSecretShown, PutSecret, RotateSecrets
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome
from haclusterd.commands.permissions import Access
from haclusterd.model.cluster import NodeState, NodeStatus
from haclusterd.model.ids import NodeName, RequestId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.simulator.hosts.secrets import SimulatedKeeper
from haclusterd.verbs.answers.secrets import SecretValue
from haclusterd.verbs.verb import Permission
from tests.administered_clusters import NOW, Cluster, running

VALUE = "swordfish"


class Desk:
    """A cluster, and an administrator on n1."""

    def __init__(self) -> None:
        self.cluster: Cluster = running()
        self.cluster.configure("primitive pdu ocf:haclusterd:dummy params passwd=clear fake=1")
        self.keeper = SimulatedKeeper(NodeName("n1"), random.Random(1))
        self.more: dict[str, Any] = {}

    def ask(self, verb: str, **arguments: Any) -> AnyOutcome:
        context = Context(self.cluster.cib, NOW, "root@n1", live=self.cluster.live, secrets=self.keeper)
        return registry.run(verb, arguments, replace(context, **self.more))

    def do(self, verb: str, **arguments: Any) -> AnyOutcome:
        """Carry it out, with what follows it."""
        outcome = self.ask(verb, **arguments)
        assert not outcome.is_refused, outcome.reports
        for command in outcome.commands:
            self.cluster.do(command)
        if outcome.afterwards is not None:
            for command in outcome.afterwards(self.cluster.cib, bool(outcome.until)).commands:
                self.cluster.do(command)
        return outcome

    def refused(self, verb: str, **arguments: Any) -> Code:
        outcome = self.ask(verb, **arguments)
        assert outcome.is_refused
        assert outcome.commands == ()
        return next(each.code for each in outcome.reports if each.severity == "error")

    def parameter(self) -> str | None:
        return self.cluster.cib.configuration.resources["pdu"].parameters[0].get("passwd")


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_setting_a_secret_proposes_it_sealed(desk: Desk) -> None:
    [put] = desk.do("secret.set", name="db", value=VALUE).commands
    assert isinstance(put, PutSecret)
    assert set(put.keys) == {"n1", "n2", "n3"}
    assert put.sealed == f"{put.key_id} db {VALUE}", "the keeper of tests seals like this"
    assert VALUE not in repr(put)
    [again] = desk.do("secret.set", name="db", value="another one").commands
    assert isinstance(again, PutSecret)
    assert (again.keys, again.expected_version, again.key_id) == ({}, 1, put.key_id)
    assert desk.ask("secret.set", name="db", value="another one").commands == ()


@pytest.mark.parametrize(("name", "value", "code"), [
    ("no name", VALUE, Code.BAD_ID), ("db", "", Code.BAD_ARGUMENT), ("db", "a\nb=c", Code.BAD_ARGUMENT),
    ("db", "secret:db", Code.BAD_ARGUMENT),
])  # fmt: skip
def test_what_cannot_be_a_secret_is_refused(desk: Desk, name: str, value: str, code: Code) -> None:
    assert desk.refused("secret.set", name=name, value=value) is code


def test_only_who_asks_on_a_node_is_shown_a_value_and_the_history_has_it_first(desk: Desk) -> None:
    desk.do("secret.set", name="db", value=VALUE)
    shown = desk.ask("secret.show", name="db")
    assert shown.answer == SecretValue("db", VALUE)
    assert [type(each) for each in shown.commands] == [NoteSecretShown]
    desk.more = {"is_token": True}
    assert desk.refused("secret.show", name="db") is Code.REFUSED
    desk.do("resource.secret", resource="pdu", action="stash", parameter="passwd")
    for action in ("show", "unstash"):
        assert desk.refused("resource.secret", resource="pdu", action=action, parameter="passwd") is Code.REFUSED
    desk.more = {"is_preview": True}
    assert desk.ask("secret.show", name="db").answer is None
    for permission in (Permission.READ, Permission.OPERATE):
        desk.more = {"access": Access(permission, "a test")}
        for verb in ("secret.show", "secret.set", "secret.delete"):
            assert desk.refused(verb, name="db", **({"value": VALUE} if verb == "secret.set" else {})) \
                is Code.NOT_PERMITTED


def test_cibsecrets_words_for_a_parameter(desk: Desk) -> None:
    def secret(action: str, **more: Any) -> AnyOutcome:
        return desk.do("resource.secret", resource="pdu", action=action, parameter="passwd", **more)

    stashed = secret("stash")
    assert Code.SECRET_WAS_CLEAR in {each.code for each in stashed.reports}
    assert desk.parameter() == "secret:pdu.passwd"
    assert secret("show").answer == SecretValue("pdu.passwd", "clear")
    assert len(secret("set", value=VALUE).commands) == 1, "the reference stays"
    assert secret("check").commands == ()
    secret("unstash")
    assert (desk.parameter(), dict(desk.cluster.cib.secrets.values)) == (VALUE, {})
    assert desk.refused("resource.secret", resource="pdu", action="check", parameter="passwd") is Code.REFUSED
    secret("set", value=VALUE)
    secret("delete")
    assert (desk.parameter(), dict(desk.cluster.cib.secrets.values)) == (None, {})
    for arguments, code in (
        ({"resource": "pdu", "action": "show", "parameter": "none"}, Code.UNKNOWN_OBJECT),
        ({"resource": "none", "action": "set", "parameter": "x", "value": VALUE}, Code.NO_SUCH_RESOURCE),
    ):
        assert desk.refused("resource.secret", **arguments) is code


def test_a_node_that_has_not_joined_yet_says_so(desk: Desk) -> None:
    # Another cluster that continues one begins without secrets, and is asked before its first Join is applied.
    status = desk.cluster.cib.status
    nodes = {**status.nodes, NodeName("n1"): NodeStatus(NodeName("n1"))}
    desk.cluster.cib = replace(desk.cluster.cib, status=replace(status, nodes=nodes))
    assert desk.refused("secret.set", name="db", value=VALUE) is Code.TRY_AGAIN
    formed = desk.cluster.cib
    desk.cluster.cib = replace(formed, members={}, status=status)
    assert desk.refused("secret.set", name="db", value=VALUE) is Code.TRY_AGAIN, "joined, and no member yet"
    desk.cluster.cib = formed
    nodes[NodeName("n1")] = replace(nodes[NodeName("n1")], state=NodeState.ONLINE)
    desk.cluster.cib = replace(desk.cluster.cib, status=replace(status, nodes=nodes))
    assert desk.refused("secret.set", name="db", value=VALUE) is Code.SECRET_CLOSED, "it has joined without a key"


def test_a_secret_in_use_is_not_deleted(desk: Desk) -> None:
    desk.do("resource.secret", resource="pdu", action="stash", parameter="passwd")
    assert desk.refused("secret.delete", name="pdu.passwd") is Code.REFUSED
    assert desk.refused("secret.delete", name="none") is Code.NO_SUCH_SECRET


def test_another_key_is_for_members_alone_and_values_that_nobody_can_open_are_named(desk: Desk) -> None:
    assert desk.ask("secret.rotate").commands == ()
    desk.do("secret.set", name="db", value=VALUE)
    before = desk.cluster.cib.secrets
    [rotated] = desk.do("secret.rotate").commands
    assert isinstance(rotated, RotateSecrets)
    assert rotated.key_id != before.key_id
    assert desk.ask("secret.show", name="db").answer == SecretValue("db", VALUE)

    stranger = desk.keeper = SimulatedKeeper(NodeName("n9"), random.Random(2))
    assert not stranger.has_key(desk.cluster.cib.secrets)
    assert desk.refused("secret.show", name="db") is Code.SECRET_CLOSED
    assert desk.refused("secret.set", name="db", value="other") is Code.SECRET_CLOSED
    assert desk.refused("secret.rotate") is Code.REFUSED
    desk.more = {"secrets": None}
    assert desk.refused("secret.rotate") is Code.NOT_OFFLINE


def test_a_value_stands_in_nothing_that_is_replicated_but_sealed(desk: Desk) -> None:
    class Sealing(SimulatedKeeper):
        def seal(self, secrets: Any, name: str, value: str) -> str | None:
            return None if super().seal(secrets, name, value) is None else f"sealed {len(value)}"

    desk.keeper = Sealing(NodeName("n1"), random.Random(1))
    commands: list[Command] = []
    for verb, arguments in (
        ("secret.set", {"name": "db", "value": VALUE}),
        ("resource.secret", {"resource": "pdu", "action": "set", "parameter": "passwd", "value": VALUE}),
    ):
        outcome = desk.do(verb, **arguments)
        commands += outcome.commands
        assert VALUE not in repr(outcome.reports)
        assert VALUE not in repr(outcome.data)
    for command in commands:
        assert VALUE.encode() not in encode_envelope(Envelope(RequestId("r"), NodeName("n1"), WallTime(1), command))
    assert VALUE.encode() not in encode_cib(desk.cluster.cib)
