"""What programs end with: Pacemaker's exit codes, so that scripts written for it keep working (cli.md §5)."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit statuses of `crm` and the daemons."""

    OK = 0
    FAILED = 1
    BAD_VALUE = 2
    USAGE = 64
    DATA = 65
    """The text of a configuration cannot be read."""
    NO_INPUT = 66
    UNKNOWN_NODE = 68
    UNAVAILABLE = 69
    """The daemon is not running."""
    IO = 74
    TRY_AGAIN = 75
    NOT_PERMITTED = 77
    CONFIGURATION = 78
    """A configuration that can be read but is not valid."""
    DISCONNECTED = 102
    OUTDATED = 103
    """The configuration was changed meanwhile."""
    NO_SUCH_OBJECT = 105
    NO_QUORUM = 106
    UNSAFE = 107
    """Needs --force."""
    EXISTS = 108
    AMBIGUOUS = 109
    INDETERMINATE = 112
    TIMEOUT = 124
