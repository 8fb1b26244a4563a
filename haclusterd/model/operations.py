"""The table of an operation's attributes, beside the one of properties (Pacemaker Explained, "Operation Properties").

What is in this table is an attribute of the operation itself; every other name in an `op` is a parameter that the
agent gets for this operation only, as OCF_CHECK_LEVEL is.
"""

from collections.abc import Mapping

from haclusterd.model.properties import Row, ValueType

_OLD_ROLES = {"master": "Promoted", "slave": "Unpromoted"}

OPERATION_ATTRIBUTES: tuple[Row, ...] = (
    Row("interval", ValueType.DURATION, "0", "How often it recurs; 0: only when needed."),
    Row("timeout", ValueType.DURATION, "20s", "How long it may take.", minimum=1),
    Row("on-fail", ValueType.CHOICE, "restart", "What to do when it fails.",
        choices=("ignore", "block", "demote", "stop", "restart", "fence", "standby", "restart-container"),
        live=("ignore", "block", "demote", "stop", "restart", "fence", "standby"),
        old_words={"nothing": "ignore"}),
    Row("role", ValueType.CHOICE, "Started", "In which role it recurs.",
        choices=("Started", "Stopped", "Promoted", "Unpromoted"), old_words=_OLD_ROLES),
    Row("start-delay", ValueType.DURATION, "0", "How long to wait before it runs for the first time.", since=3),
    Row("enabled", ValueType.BOOLEAN, "true", "Whether it recurs at all."),
    Row("requires", ValueType.CHOICE, "fencing", "What must be done before it may run.",
        choices=("nothing", "quorum", "fencing"), since=3),
    Row("record-pending", ValueType.BOOLEAN, "true", "Whether what is under way is shown; it always is.",
        live=("true",), is_harmless=True, since=3),
)  # fmt: skip

DEFAULTABLE = ("timeout", "on-fail", "start-delay", "record-pending")
"""The attributes that operation defaults may give. `enabled` counts on the operation alone, as it does in Pacemaker."""

RECURRING = frozenset({"monitor"})
"""The only actions that recur."""

ONE_SHOT = frozenset({"start", "stop", "promote", "demote", "notify", "reload", "reload-agent", "migrate_to",
                      "migrate_from", "meta-data", "validate-all"})  # fmt: skip
"""Actions that may have no interval."""

ROLES = ("Started", "Stopped", "Promoted", "Unpromoted")

_BY_NAME: Mapping[str, Row] = {row.name: row for row in OPERATION_ATTRIBUTES}


def operation_row(name: str) -> Row | None:
    """Return the row of an operation's attribute."""
    return _BY_NAME.get(name)


def read_role(text: str) -> str:
    """Read a role in any case, old names too; raise ValueError otherwise."""
    word = text.strip().lower()
    for role in ROLES:
        if role.lower() == word:
            return role
    if word in _OLD_ROLES:
        return _OLD_ROLES[word]
    raise ValueError(f"{text!r} is not one of: {', '.join(ROLES)}")
