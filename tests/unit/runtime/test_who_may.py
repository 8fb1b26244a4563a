"""Every verb of the table by every principal, at the control socket."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.edits import PutAccess
from haclusterd.commands import registry
from haclusterd.model.access import SUPERUSER, AclPermission, AclRole, Principal, Right
from haclusterd.model.requests import Options
from haclusterd.runtime.requests.request_services import Caller
from tests.unit.runtime.desk import Desk, configure
from tests.who_may import BARE, DENIALS, LIMITED, ROLES, SIMPLE, TABLE

PRINCIPALS = (*SIMPLE, LIMITED, BARE, "")


@pytest.fixture(scope="module")
def desk() -> Desk:
    made = Desk()
    configure(made, f"primitive svc ocf:haclusterd:dummy\n{ROLES}")
    for role in (*SIMPLE, LIMITED, BARE):
        made.accept_token(role, f"hacl_{role}", f"t-{role}")
    return made


def denials(desk: Desk, number: int, who: Caller) -> set[str]:
    asked = TABLE[number]
    name = desk.ask(asked.verb, asked.arguments, Options(wait_ms=0, dry_run=True, force=True), who)
    desk.daemon.settle()
    return DENIALS.intersection(desk.codes(name))


def test_the_table_is_large_enough() -> None:
    assert len({each.verb for each in TABLE}) >= 30
    assert {each.verb for each in TABLE} <= registry.VERBS.keys()


@pytest.mark.parametrize("number", range(len(TABLE)), ids=lambda number: f"{number}-{TABLE[number].verb}")
def test_who_may(desk: Desk, number: int) -> None:
    found = {role: not denials(desk, number, desk.control.bearer(f"hacl_{role}" if role else "hacl_guessed"))
             for role in PRINCIPALS}  # fmt: skip
    assert found == {role: TABLE[number].is_permitted(role) for role in PRINCIPALS}
    assert not denials(desk, number, desk.control.caller("root@n1", is_trusted=True))


def test_no_edit_of_the_lists_locks_out_root_and_hacluster() -> None:
    desk = Desk()
    configure(desk, "property enable-acl=true\nrole nothing deny cib\nacl_target root nothing\n"
                    "acl_target hacluster nothing\nacl_group haclient nothing")  # fmt: skip
    for who in (
        desk.control.caller("root@n1", is_trusted=True),
        desk.control.caller(f"{SUPERUSER}@n1", is_trusted=False, groups=("haclient",)),
    ):
        name = desk.ask("configure.statement", {"words": ["property", "enable-acl=true"]}, Options(wait_ms=0), who)
        desk.daemon.settle()
        assert not DENIALS.intersection(desk.codes(name))
    eve = desk.control.caller("eve@n1", is_trusted=False, groups=("haclient",))
    assert desk.codes(desk.ask("status", who=eve)) == ["ACL_DENIED"]


def test_lists_that_change_before_the_commit_are_asked_again() -> None:
    """A change is decided over lists that permit it; others are committed first, and it is judged again, and denied."""
    desk = Desk()
    configure(desk, "primitive svc ocf:haclusterd:dummy\nproperty enable-acl=true\n"
                    "role may read cib write meta:svc:target-role\nacl_target alice may")  # fmt: skip
    alice = Caller("alice@n1", Principal("alice"), is_trusted=False)
    name = desk.ask("resource.stop", {"resources": ["svc"]}, Options(wait_ms=0), alice)
    assert desk.response(name) is None
    before = desk.daemon.cib
    edit = PutAccess(AclRole("may", (AclPermission("p", Right.READ, xpath="/cib"),)))
    desk.daemon.put(commands.ChangeConfiguration(before.version.epoch, (edit,), "root@n2", ""))
    desk.daemon.settle()
    assert desk.codes(name) in (["ACL_DENIED"], ["NOT_PERMITTED"])
    assert desk.daemon.cib.configuration.resources == before.configuration.resources
