"""Which verbs who may ask: one table, which the control socket and the REST interface are both held against."""

from collections.abc import Mapping

from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field

ROLES = """
role svc-operator read cib deny xpath:"//nvpair[@name='password']" write meta:svc:target-role
role nothing-at-all read xpath:"//nothing"
"""
LIMITED, BARE = "svc-operator", "nothing-at-all"
SIMPLE = ("viewer", "operator", "admin")
DENIALS = frozenset({"NOT_PERMITTED", "ACL_DENIED", "NOT_AUTHENTICATED"})


@dataclass(frozen=True, slots=True)
class Asked:
    """One verb with arguments, and who may ask it so."""

    verb: str
    least: str
    """The simple role that suffices."""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    is_limited_permitted: bool = False
    """Whether the bearer of LIMITED may, too."""

    def is_permitted(self, role: str) -> bool:
        """Tell whether a role suffices; `""`: nobody that is known."""
        if role == LIMITED:
            return self.is_limited_permitted
        if role == BARE:
            return self.verb in ("api.whoami", "acl.whoami", "acl.can")
        return role in SIMPLE and SIMPLE.index(role) >= SIMPLE.index(self.least)


def _reading(verb: str, /, **arguments: Json) -> Asked:
    return Asked(verb, "viewer", arguments, is_limited_permitted=True)


def _operating(verb: str, /, *, is_limited_permitted: bool = False, **arguments: Json) -> Asked:
    return Asked(verb, "operator", arguments, is_limited_permitted=is_limited_permitted)


def _administering(verb: str, /, **arguments: Json) -> Asked:
    return Asked(verb, "admin", arguments)


TABLE: tuple[Asked, ...] = (
    _reading("status"),
    _reading("node.show"),
    _reading("resource.status"),
    _reading("resource.why", resource="svc"),
    _reading("resource.scores", resources=["svc"]),
    _reading("resource.constraints", resource="svc"),
    _reading("resource.operations"),
    _reading("configure.show"),
    _reading("configure.verify"),
    _reading("configure.get_property", names=["node-timeout"]),
    _reading("fencing.list"),
    _reading("history.events"),
    _reading("cluster.members"),
    _reading("api.whoami"),
    _reading("acl.whoami"),
    _reading("acl.can", verb="resource.stop", object="svc"),
    _reading("acl.list"),
    _reading("acl.explain", object="svc"),
    _reading("simulate"),
    _operating("resource.stop", resources=["svc"], is_limited_permitted=True),
    _operating("resource.manage", resources=["svc"], unmanage=True),
    _operating("resource.ban", resource="svc", node="n2"),
    _operating("node.standby", node="n2", lifetime="reboot"),
    _operating("node.attribute", node="n2", action="set", name="x", value="1", lifetime="reboot"),
    _operating("cluster.transfer_leader", node="n3"),
    _operating("ticket.change", ticket="t", action="grant"),
    _administering("configure.statement", words=["property", "stonith-timeout=61s"]),
    _administering("configure.load", mode="update", text="role svc-operator write cib"),
    _administering("configure.apply", text="acl_target eve admin"),
    _administering("configure.set", path="svc.priority", value="5"),
    _administering("configure.show", secrets=True),
    _administering("node.utilization", node="n2", action="set", name="cpu", value="4"),
    _administering("api.token_add", name="made", role="admin", digest="0" * 64),
    _administering("api.token_list"),
    _administering("cluster.backup"),
    _administering("cluster.export"),
    _administering("acl.explain", user="alice"),
)
"""Reading, operating, administering."""
