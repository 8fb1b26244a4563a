"""The one table of report codes, with the exit status of `crm` for each (Pacemaker's numbers, `crm_error --list`).

A code is for ever: programs look at it. Rooms add their rows here.
"""

from enum import StrEnum


class Code(StrEnum):
    """Identity of a report."""

    # Requests
    USAGE = "USAGE"
    UNKNOWN_VERB = "UNKNOWN_VERB"
    UNKNOWN_ARGUMENT = "UNKNOWN_ARGUMENT"
    MISSING_ARGUMENT = "MISSING_ARGUMENT"
    BAD_ARGUMENT = "BAD_ARGUMENT"
    NOT_PERMITTED = "NOT_PERMITTED"
    NOT_OFFLINE = "NOT_OFFLINE"
    UNSAFE = "UNSAFE"
    NOTHING_TO_DO = "NOTHING_TO_DO"

    # Names
    UNKNOWN_NODE = "UNKNOWN_NODE"
    UNKNOWN_RESOURCE = "UNKNOWN_RESOURCE"
    UNKNOWN_OBJECT = "UNKNOWN_OBJECT"
    UNKNOWN_AGENT = "UNKNOWN_AGENT"
    UNKNOWN_PROPERTY = "UNKNOWN_PROPERTY"
    DUPLICATE_ID = "DUPLICATE_ID"

    # Texts and configurations
    NO_INPUT = "NO_INPUT"
    UNREADABLE = "UNREADABLE"
    SYNTAX = "SYNTAX"
    NOT_YET = "NOT_YET"
    BAD_VALUE = "BAD_VALUE"
    BAD_ID = "BAD_ID"
    DANGLING_REFERENCE = "DANGLING_REFERENCE"
    CONFIGURATION_INVALID = "CONFIGURATION_INVALID"
    CONFIGURATION_CONFLICT = "CONFIGURATION_CONFLICT"
    HAS_DEPENDANTS = "HAS_DEPENDANTS"
    NO_EFFECT = "NO_EFFECT"

    # The cluster
    NOT_RUNNING = "NOT_RUNNING"
    DISCONNECTED = "DISCONNECTED"
    NO_QUORUM = "NO_QUORUM"
    TRY_AGAIN = "TRY_AGAIN"
    REFUSED = "REFUSED"
    TIMEOUT = "TIMEOUT"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    STALE = "STALE"
    NO_FENCING = "NO_FENCING"
    SCHEDULER = "SCHEDULER"
    INPUT_OUTPUT = "INPUT_OUTPUT"
    INTERNAL = "INTERNAL"

    # What a verb did
    CHANGED = "CHANGED"
    MOVE_KEPT = "MOVE_KEPT"
    MOVE_WITHDRAWN = "MOVE_WITHDRAWN"


EXIT_STATUS: dict[Code, int] = {
    Code.USAGE: 64,
    Code.UNKNOWN_VERB: 64,
    Code.UNKNOWN_ARGUMENT: 64,
    Code.MISSING_ARGUMENT: 64,
    Code.BAD_ARGUMENT: 2,
    Code.NOT_PERMITTED: 77,
    Code.NOT_OFFLINE: 69,
    Code.UNSAFE: 107,
    Code.UNKNOWN_NODE: 68,
    Code.UNKNOWN_RESOURCE: 105,
    Code.UNKNOWN_OBJECT: 105,
    Code.UNKNOWN_AGENT: 78,
    Code.UNKNOWN_PROPERTY: 78,
    Code.DUPLICATE_ID: 108,
    Code.NO_INPUT: 66,
    Code.UNREADABLE: 65,
    Code.SYNTAX: 65,
    Code.NOT_YET: 65,
    Code.BAD_VALUE: 78,
    Code.BAD_ID: 78,
    Code.DANGLING_REFERENCE: 78,
    Code.CONFIGURATION_INVALID: 78,
    Code.CONFIGURATION_CONFLICT: 103,
    Code.HAS_DEPENDANTS: 107,
    Code.NOT_RUNNING: 69,
    Code.DISCONNECTED: 102,
    Code.NO_QUORUM: 106,
    Code.TRY_AGAIN: 75,
    Code.TIMEOUT: 124,
    Code.OUTCOME_UNKNOWN: 112,
    Code.INPUT_OUTPUT: 74,
}
"""Exit status of a request that was refused with this code; codes not named here are 1, "failed"."""
