"""Which API tokens a cluster accepts, equally on every node."""

from haclusterd.cib.apply import apply
from haclusterd.cib.changes import Applied, ChangeKind, RefusalCode
from haclusterd.cib.commands import AddApiToken, Command, Envelope, RevokeApiToken
from haclusterd.model.api_tokens import TOKENS_MAX, ApiToken, digest_of
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName, RequestId, Term
from haclusterd.model.instants import WallTime


def put(cib: Cib, command: Command, index: int = 1) -> Applied:
    envelope = Envelope(RequestId(f"r{index}"), NodeName("n1"), WallTime(9), command)
    return apply(cib, envelope, index=index, term=Term(1))


def token(name: str, secret: str = "hacl_a") -> AddApiToken:
    return AddApiToken(ApiToken(name, digest_of(secret), "viewer"), "root@n1", "dashboards")


def test_a_token_is_made_once_and_revoked() -> None:
    made = put(Cib(), token("grafana"))
    kept = made.cib.api_tokens["grafana"]
    assert (kept.author, kept.created_at, kept.role) == ("root@n1", 9, "viewer")
    assert [(each.kind, each.text) for each in made.changes] == [
        (ChangeKind.API_TOKEN_CHANGED, "API token grafana made, role viewer by root@n1: dashboards")
    ]
    again = put(made.cib, token("grafana", "hacl_b"), 2)
    assert again.refusal is not None
    assert again.refusal.code is RefusalCode.DUPLICATE_KEY
    revoked = put(made.cib, RevokeApiToken("grafana", "root@n1"), 2)
    assert (revoked.refusal, dict(revoked.cib.api_tokens)) == (None, {})
    assert put(Cib(), RevokeApiToken("grafana", "root@n1")).refusal is None


def test_two_names_never_share_a_token_and_there_are_not_too_many() -> None:
    made = put(Cib(), token("a"))
    same = put(made.cib, token("b"), 2).refusal
    assert same is not None
    assert same.code is RefusalCode.DUPLICATE_KEY
    cib = Cib()
    for number in range(TOKENS_MAX):
        cib = put(cib, token(f"t{number}", f"hacl_{number}"), number + 1).cib
    full = put(cib, token("more", "hacl_more"), TOKENS_MAX + 1)
    assert full.refusal is not None
    assert full.refusal.code is RefusalCode.WRONG_NODE_STATE


def test_what_is_no_digest_is_refused() -> None:
    bad = AddApiToken(ApiToken("a", "hacl_the_token_itself", "admin"), "root@n1")
    refusal = put(Cib(), bad).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.DUPLICATE_KEY
