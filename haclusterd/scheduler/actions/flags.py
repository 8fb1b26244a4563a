"""What becomes of an action once others are looked at: whether it is needed, whether it can be done, and why.

Who finds out that something follows from something else asks here; nothing else changes the flags of an action after
it was made.
"""

from haclusterd.scheduler.model.entities import Action
from haclusterd.scheduler.model.tasks import RELOAD_AGENT

REQUIRED = "required"
UNRUNNABLE = "unrunnable"


def require(action: Action, cause: Action) -> bool:
    """Make an action required; tell whether it was not."""
    if not action.is_optional:
        return False
    action.is_optional = False
    give_reason(action, cause, REQUIRED)
    return True


def forbid(action: Action, cause: Action) -> bool:
    """Make an action impossible, and so a live migration of which it is a part; tell whether that is new.

    Fencing is never impossible because of something before it, except that of a guest node: its launcher must stop.
    """
    if not action.is_runnable or (action.is_fence and not action.is_pseudo):
        return False
    action.is_runnable = action.is_migratable = False
    give_reason(action, cause, UNRUNNABLE)
    return True


def give_reason(action: Action, cause: Action, word: str) -> None:
    """Say in Pacemaker's words why an action changed; the first reason stays.

    What its own resource prevents needs no reason of its own.
    """
    if action.reason or cause is action:
        return
    if cause.resource is None and cause.is_pseudo and not cause.is_fence:
        action.reason = f"{word} {cause.task}"
    elif cause.resource is None or (cause.resource is action.resource and word == REQUIRED):
        action.reason = cause.reason
    elif cause.resource is action.resource:
        return
    else:
        action.reason = f"{word} {cause.resource.id} {_announced(cause)}"


def _announced(cause: Action) -> str:
    """Name what an action does; of a notification whether it is to be done, or was."""
    if not cause.notification:
        return cause.task
    return "notified" if cause.task.startswith("confirmed") else "notify"


def stop_for(stop: Action, then: Action) -> None:
    """Require a stop for the sake of what starts, or cannot start, after it."""
    stop.is_optional = False
    if not stop.reason:
        stop.reason = then.reason if stop.resource is then.resource else ""
    give_reason(stop, then, REQUIRED if then.is_runnable else UNRUNNABLE)


def need(action: Action, why: str = "") -> None:
    """Make an action required for a reason that is no other action."""
    action.is_optional = False
    action.why = why or action.why


def join(action: Action, reason: str) -> bool:
    """Make an action required for the sake of others of its kind; tell whether it was not."""
    if not action.is_optional:
        return False
    action.is_optional = False
    action.reason = action.reason or reason
    return True


def drop(action: Action) -> None:
    """Make an action needless; a reload that is dropped was no reload."""
    action.is_optional = True
    if action.task == RELOAD_AGENT and action.resource is not None:
        action.resource.is_reloading = False


def block(action: Action, reason: str = "") -> None:
    """Make an action impossible for a reason that is no other action; the first reason stays."""
    action.is_runnable = False
    action.reason = action.reason or reason


def unblock(action: Action) -> None:
    """Make an action possible, as enough of what it waits for is."""
    action.is_runnable = True


def keep_from_migrating(action: Action) -> None:
    """Make an action no part of a live migration any more."""
    action.is_migratable = False


def make_real(action: Action) -> None:
    """Let the start at the end of a live migration be a start."""
    action.is_migratable = action.is_pseudo = False


def show(action: Action) -> None:
    """Make an action part of the graph even when it is optional."""
    action.is_always = True
