"""What a text says in its own way: spellings of durations, and what it says although it goes without saying.

Writers show it as it was written, as long as it means what is configured.
"""

from haclusterd.model import durations
from haclusterd.model.configuration import Operation, Ordering, OrderingKind
from haclusterd.model.properties import read_boolean

KIND = "kind"
FIRST_ACTION = "first-action"


def stated(kind: str | None, first_action: str | None) -> tuple[str, ...]:
    """Return which attributes of an ordering were written with the value that they have anyway; None: not written."""
    found = []
    if kind is not None and kind.lower() == OrderingKind.MANDATORY.lower():
        found.append(KIND)
    if first_action == "start":
        found.append(FIRST_ACTION)
    return tuple(found)


def stated_enabled(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return the spelling of an operation's `enabled` that says what goes without saying; empty: it says another thing.

    It is kept among the spellings of the operation's durations.
    """
    try:
        return (("enabled", text),) if text is not None and read_boolean(text) else ()
    except ValueError:
        return ()


def written_enabled(operation: Operation) -> str | None:
    """Return whether an operation is performed, where that is to be written."""
    return dict(operation.spelled).get("enabled") if operation.is_enabled else "false"


def written_kind(ordering: Ordering) -> str | None:
    """Return how binding an ordering is, where that is to be written."""
    return str(ordering.kind) if ordering.kind is not OrderingKind.MANDATORY or KIND in ordering.stated else None


def written_first_action(ordering: Ordering) -> str | None:
    """Return the action of an ordering's first resource, where that is to be written."""
    is_written = ordering.first_action != "start" or FIRST_ACTION in ordering.stated
    return ordering.first_action if is_written else None


def written_interval(operation: Operation) -> str:
    """Return the interval of an operation, also one of 0."""
    return durations.spell(operation.spelled, "interval", operation.interval_ms)


def written_timeout(operation: Operation) -> str | None:
    """Return the timeout of an operation, where it has one."""
    timeout_ms = operation.timeout_ms
    return None if timeout_ms is None else durations.spell(operation.spelled, "timeout", timeout_ms)


def written_start_delay(operation: Operation) -> str | None:
    """Return how long an operation waits before it begins, where that is said."""
    delay_ms = operation.start_delay_ms
    return None if delay_ms is None else durations.spell(operation.spelled, "start-delay", delay_ms)
