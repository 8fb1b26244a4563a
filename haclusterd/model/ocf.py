"""OCF's numbers and Pacemaker's roles (OCF Resource Agent API 1.1; Pacemaker Explained, "Resource agents")."""

from enum import Enum, IntEnum, StrEnum


class ExitCode(IntEnum):
    """OCF exit codes; `DEGRADED*` are Pacemaker's extension."""

    OK = 0
    ERROR = 1
    ARGUMENTS = 2
    UNIMPLEMENTED = 3
    PERMISSIONS = 4
    NOT_INSTALLED = 5
    NOT_CONFIGURED = 6
    NOT_RUNNING = 7
    PROMOTED = 8
    FAILED_PROMOTED = 9
    DEGRADED = 190
    DEGRADED_PROMOTED = 191
    UNKNOWN = 193
    """No exit code is known: the action is pending, or its outcome was lost."""

    @staticmethod
    def read(value: int) -> "ExitCode":
        """Return the code for an agent's exit status; what OCF does not define is ERROR."""
        try:
            return ExitCode(value)
        except ValueError:
            return ExitCode.ERROR


class ExecutionStatus(StrEnum):
    """How the execution of an action itself went, apart from what the agent said."""

    PENDING = "pending"
    DONE = "done"
    """The agent ended and its exit code was the expected one."""
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    NOT_SUPPORTED = "not-supported"
    ERROR = "error"
    """The agent ended with another exit code than expected, or was ended by a signal."""
    NOT_INSTALLED = "not-installed"
    NOT_CONNECTED = "not-connected"
    NO_SECRETS = "no-secrets"
    NO_FENCE_DEVICE = "no-fence-device"
    HARD_ERROR = "hard-error"
    FATAL_ERROR = "fatal-error"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """The outcome was lost (a restart of the daemon in mid-action); a probe must find out."""


class Role(Enum):
    """A resource's role; the numeric order is used in comparisons."""

    UNKNOWN = 0
    STOPPED = 1
    STARTED = 2
    UNPROMOTED = 3
    PROMOTED = 4

    def __str__(self) -> str:
        return self.name.capitalize()


class ActionName(StrEnum):
    """Actions that an order may name."""

    START = "start"
    STOP = "stop"
    MONITOR = "monitor"
    CANCEL = "cancel"
    """Ours: end a recurring monitor without touching the resource."""
    PROMOTE = "promote"
    DEMOTE = "demote"
    MIGRATE_TO = "migrate_to"
    MIGRATE_FROM = "migrate_from"
    NOTIFY = "notify"
    RELOAD_AGENT = "reload-agent"


ACTIVATING = frozenset(
    {ActionName.START, ActionName.PROMOTE, ActionName.MIGRATE_TO, ActionName.MIGRATE_FROM}
)
"""Actions that can make a resource active: an open order for one counts as possibly active."""
DEFAULT_TIMEOUT_MS = 20_000
"""Of an operation for which no timeout is configured (Pacemaker Explained, "Operation Properties")."""
BEGINNINGS = (ActionName.START, ActionName.MIGRATE_FROM)
"""Actions after whose success a resource runs on a node where it did not run before."""
