"""Who is let in and who is not: an inviting daemon, with an authority and a listener that are plain stand-ins."""

from collections.abc import Callable, Iterable

import pytest

from haclusterd.cib.commands import ChangeMembers, MembersFollowed
from haclusterd.model.addresses import Address
from haclusterd.model.certificates import CertificateFacts
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, InvitationTerms, News
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.ports.enrolment import Applicant, AuthorityMissingError
from haclusterd.protocol.enrolment import proof_of
from haclusterd.protocol.enrolment_token import Token, proof_key_of, read_token
from haclusterd.runtime.members.enrolment import CLOCKS_MAX_MS, REPEAT_MS, WRONG_PROOFS_MAX, EnrolmentService
from tests.unit.runtime.one_daemon import N1, N2, N3, Daemon

N4 = NodeName("n4")
HERE: tuple[Address, ...] = (("10.0.0.4", 7400),)


class PaperAuthority:
    """Signs everything, with a pen."""

    is_here = True

    def certificate(self, directory: str) -> tuple[str, bytes]:
        if not self.is_here:
            raise AuthorityMissingError(f"{directory or 'here'}: nothing")
        return "authority", b"p" * 32

    def sign(self, directory: str, request: str, node: NodeName, hosts: Iterable[str]) -> str:
        return f"{node} {request} {' '.join(hosts)} {directory}".strip()

    def has_key(self) -> bool:
        return self.is_here

    def sign_renewal(self, request: str, node: NodeName, hosts: Iterable[str], present: str) -> str:
        return f"{self.sign('', request, node, hosts)} after {present}"

    def begin_renewal(self, node: NodeName) -> str:
        return f"renew {node}"

    def adopt(self, certificate: str) -> bool:
        return bool(certificate)

    def own_certificate(self) -> str:
        return "own"

    def facts(self, certificate: str) -> CertificateFacts | None:
        return CertificateFacts(NodeName(certificate.partition(" ")[0]), certificate, WallTime(0), WallTime(1))


class OpenListener:
    """A listener to which tests connect."""

    def __init__(self) -> None:
        self.addresses: tuple[Address, ...] = ()
        self.greeting: Callable[[], Hello] | None = None
        self.applied: Callable[[Applicant, Hello, Apply], None] | None = None

    def open(
        self,
        addresses: tuple[Address, ...],
        greeting: Callable[[], Hello],
        applied: Callable[[Applicant, Hello, Apply], None],
        noted: Callable[[str, str], None],
    ) -> tuple[Address, ...]:
        del noted
        self.addresses, self.greeting, self.applied = addresses, greeting, applied
        return addresses

    def close(self) -> None:
        self.addresses = ()


class Caller:
    """An applicant."""

    address, session_certificate = "10.0.0.4:1", "session"

    def __init__(self) -> None:
        self.messages: list[News | Admitted | Denied] = []

    def tell(self, message: News | Admitted | Denied) -> None:
        self.messages.append(message)


class House:
    """n1, which invites; every member shows its certificate."""

    def __init__(self) -> None:
        self.daemon = Daemon().form()
        self.authority, self.listener = PaperAuthority(), OpenListener()
        self.enrolment = EnrolmentService(self.daemon.runtime, self.authority, self.listener)
        cib = self.daemon.runtime.cib
        shown = tuple(replace(member, certificate=f"{name} shown") for name, member in sorted(cib.members.items()))
        self.daemon.put(ChangeMembers(1, shown, (), "test"))
        self.follow()

    def follow(self) -> None:
        """Let everybody follow the newest members."""
        cib = self.daemon.cib
        for name in (N2, N3):
            life = cib.status.nodes[name].incarnation
            assert life is not None
            self.daemon.put(MembersFollowed(name, life, cib.membership.version))
        self.daemon.settle()

    def invite(self, terms: InvitationTerms | None = None) -> Token:
        reports, answer = self.enrolment.invite(terms or InvitationTerms(), "root@n1")
        assert reports == ()
        assert answer is not None
        return read_token(answer.token)

    def apply(self, token: Token, node: NodeName = N4, **changed: object) -> Caller:
        assert self.listener.greeting is not None
        assert self.listener.applied is not None
        hello, caller = replace(self.listener.greeting(), nonce=b"n" * 16), Caller()
        secret = bytes(changed.pop("secret", token.secret))
        plain = Apply(token.invitation, node, HERE, "request", b"m" * 16, self.daemon.clock.wall(), 9)
        application = replace(plain, **changed)
        proof = proof_of(proof_key_of(secret), hello, caller.session_certificate, application)
        self.listener.applied(caller, hello, replace(application, proof=proof))
        return caller


def denied(caller: Caller) -> str:
    (message,) = [each for each in caller.messages if not isinstance(each, News)]
    assert isinstance(message, Denied)
    return message.problem


@pytest.mark.parametrize(
    ("terms", "changed", "why"),
    [
        ({}, {"secret": b"x" * 16}, "the token's secret is not proven"),
        ({}, {"invitation": "another"}, "this invitation is not known here"),
        ({"node": NodeName("n5")}, {}, "the token is for n5"),
        ({}, {"node": N1}, "node n1 exists already"),
        ({}, {"addresses": (("127.0.0.1", 7000),)}, "127.0.0.1:7000 is the address of n1"),
        ({}, {"now": WallTime(0)}, "the clocks differ by"),
        ({}, {"feature_level": 0}, "it reads feature level 0, the cluster uses"),
    ],
)
def test_who_is_not_let_in(terms: dict[str, NodeName], changed: dict[str, object], why: str) -> None:
    house = House()
    token = house.invite(InvitationTerms(**terms))
    house.daemon.clock.at += CLOCKS_MAX_MS + 1 if "now" in changed else 0
    assert why in denied(house.apply(token, **changed))
    assert "enrolment.denied" in house.daemon.log.kinds()


def test_without_the_authority_nobody_is_invited() -> None:
    house = House()
    house.authority.is_here = False
    reports, answer = house.enrolment.invite(InvitationTerms(authority="/there"), "root@n1")
    assert (reports[0].message, answer) == ("the authority's key is not here: /there: nothing", None)


def test_five_wrong_proofs_withdraw_an_invitation() -> None:
    house = House()
    token = house.invite()
    for _ in range(WRONG_PROOFS_MAX):
        assert "not proven" in denied(house.apply(token, secret=b"x" * 16))
    assert "not known here" in denied(house.apply(token))


def test_an_invitation_ends_and_the_listener_closes() -> None:
    house = House()
    token = house.invite(InvitationTerms(valid_ms=5_000))
    other = house.invite(InvitationTerms(valid_ms=9_000))
    house.daemon.clock.run(5_000)
    assert "not known here" in denied(house.apply(token))
    assert house.listener.addresses
    house.daemon.clock.run(4_000)
    assert not house.listener.addresses
    assert other.invitation != token.invitation


def test_nothing_secret_is_logged() -> None:
    house = House()
    token = house.invite()
    house.apply(token)
    text = repr(house.daemon.log.lines)
    assert token.secret.hex() not in text
    assert repr(token.secret)[2:-1] not in text
    assert proof_key_of(token.secret).hex() not in text


def test_who_is_invited_becomes_a_learner_that_is_to_vote_and_may_ask_again() -> None:
    house = House()
    token = house.invite(InvitationTerms(N4, is_witness=True))
    caller = house.apply(token)
    assert "an earlier attempt is still under way" in denied(house.apply(token))
    house.daemon.settle()
    admitted = caller.messages[-1]
    assert isinstance(admitted, Admitted)
    assert admitted.certificate == "n4 request 10.0.0.4"
    member = house.daemon.cib.members[N4]
    assert (member.is_voter, member.wants_vote, member.is_witness, member.addresses) == (False, True, True, HERE)
    assert member in admitted.members
    house.follow()
    again = house.apply(token)
    house.daemon.settle()
    assert again.messages[-1] == replace(admitted, members=tuple(house.daemon.cib.members.values()))
    assert "the token was used already, by n4" in denied(house.apply(token, request="another"))
    house.daemon.clock.run(REPEAT_MS)
    assert not house.listener.addresses


def test_a_change_that_is_under_way_is_waited_for() -> None:
    house = House()
    token = house.invite()
    members = tuple(house.daemon.cib.members.values())
    house.daemon.put(ChangeMembers(2, members, ("ab" * 32,), "test"))
    house.daemon.settle()
    caller = house.apply(token)
    house.daemon.settle()
    assert [each.text for each in caller.messages if isinstance(each, News)] == [
        "waiting: n2, n3 does not follow version 2 of the members yet"
    ]
    house.follow()
    house.daemon.clock.run(1_000)
    house.daemon.settle()
    assert isinstance(caller.messages[-1], Admitted)
