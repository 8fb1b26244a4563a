"""Requests that wait for the next events in this node's history: they are answered when there are some.

Invariant: each waits for a bounded time, the number of waiting ones is bounded, and no log entry costs the main loop
more than one query of the history for each of them in PAUSE_MS. The query bounds the answer; nothing is stored for a
waiting request between two queries.
"""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from haclusterd.model.instants import Instant, after
from haclusterd.model.records import replace
from haclusterd.model.remembered import FollowAnswer, FollowQuery, Position
from haclusterd.model.state_tables import Transition, TransitionTable
from haclusterd.ports.clock import Clock, Timer
from haclusterd.ports.history import History

FOLLOWERS_MAX = 32
"""Maximum number of waiting requests."""
FOLLOWERS_OF_CALLER_MAX = 8
PAUSE_MS = 50
"""Pause after an event, so that a burst is answered together."""
COMPLETE_WAIT_MS = 5_000
"""How long peers are asked for missing parts, or a history ends before the position; then that is reported."""
LOOK_AGAIN_MS = 250
"""Pause between two queries meanwhile."""


class Follow(StrEnum):
    """The state of a waiting request."""

    WAITING = "waits for news, and looks again after a while"
    LOOKS_SOON = "there is news; the burst that it belongs to is waited for"
    ASKING = "the history is asked"
    ASKING_WITH_NEWS = "the history is asked, and there is news that it may not have seen"
    OVER = "answered, or gone"


class FollowEvent(StrEnum):
    """What changes that state."""

    NEWS = "something has happened"
    LOOK = "it is time to look"
    ANSWERED = "the history has answered"
    END = "it is answered, or gone"


FOLLOWS: Final = TransitionTable(
    "One that waits for events",
    "News that comes while the history is asked is looked for afterwards: none is missed.",
    (Follow.WAITING,),
    (
        Transition((Follow.WAITING, Follow.LOOKS_SOON), FollowEvent.NEWS, Follow.LOOKS_SOON),
        Transition((Follow.ASKING, Follow.ASKING_WITH_NEWS), FollowEvent.NEWS, Follow.ASKING_WITH_NEWS),
        Transition((Follow.WAITING, Follow.LOOKS_SOON), FollowEvent.LOOK, Follow.ASKING),
        Transition((Follow.ASKING,), FollowEvent.ANSWERED, Follow.WAITING),
        Transition((Follow.ASKING_WITH_NEWS,), FollowEvent.ANSWERED, Follow.LOOKS_SOON),
        # The history answers even if the request has ended meanwhile.
        Transition((Follow.OVER,), FollowEvent.ANSWERED, Follow.OVER),
        Transition(tuple(Follow), FollowEvent.END, Follow.OVER),
    ),
)


class EventFollowers:
    """All waiting requests of one daemon."""

    def __init__(self, clock: Clock, history: History, is_current: Callable[[], bool]) -> None:
        """`is_current`: whether this node is up to date with the cluster."""
        self.clock = clock
        self.history = history
        self.is_current = is_current
        self._waiting: dict[_Follower, str] = {}
        self._of_caller: Counter[str] = Counter()

    def recorded(self) -> None:
        """Note that something was recorded."""
        for follower in tuple(self._waiting):
            follower.recorded()

    def follow(
        self, query: FollowQuery, wait_ms: int, caller: str, done: Callable[[FollowAnswer], None]
    ) -> Callable[[], None]:
        """Answer with what follows a position, once there is something; return the function that ends the wait."""
        if len(self._waiting) >= FOLLOWERS_MAX or self._of_caller[caller] >= FOLLOWERS_OF_CALLER_MAX:
            problem = f"{FOLLOWERS_MAX} requests wait for events, or {FOLLOWERS_OF_CALLER_MAX} of {caller}"
            done(FollowAnswer((), query.after or Position(0), problem=problem, is_refused=True))
            return _nothing
        follower = _Follower(self, query, wait_ms, done)
        self._waiting[follower] = caller
        self._of_caller[caller] += 1
        follower.look()
        return lambda: self.leave(follower)

    def leave(self, follower: "_Follower") -> None:
        """Forget a request that was answered, or has ended."""
        follower.end()
        caller = self._waiting.pop(follower, None)
        if caller is not None:
            self._of_caller[caller] -= 1
            self._of_caller += Counter()


class _Follower:
    """One waiting request."""

    def __init__(
        self, owner: EventFollowers, query: FollowQuery, wait_ms: int, done: Callable[[FollowAnswer], None]
    ) -> None:
        now = owner.clock.now()
        self._owner = owner
        self._query = query
        self._done = done
        self._until = after(now, wait_ms)
        self._complete_until = after(now, COMPLETE_WAIT_MS)
        self._timer: Timer | None = None
        self._state = Follow.WAITING

    def _happened(self, event: FollowEvent) -> None:
        self._state = FOLLOWS.after(self._state, event)

    def recorded(self) -> None:
        """Query soon, or after the present query."""
        was = self._state
        self._happened(FollowEvent.NEWS)
        if was is Follow.WAITING:
            self._call_at(after(self._owner.clock.now(), PAUSE_MS))

    def look(self) -> None:
        """Query the history."""
        self._timer = None
        self._happened(FollowEvent.LOOK)
        self._owner.history.follow(self._query, self._found)

    def end(self) -> None:
        """End the wait."""
        self._happened(FollowEvent.END)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _found(self, answer: FollowAnswer) -> None:
        self._happened(FollowEvent.ANSWERED)
        if self._state is Follow.OVER:
            return
        now = self._owner.clock.now()
        is_held = answer.is_incomplete or (answer.is_behind and self._owner.is_current())
        may_wait = now < self._complete_until or self._query.passes_over or bool(answer.problem)
        if is_held and not may_wait:
            self._query = replace(self._query, passes_over=True)
            self.look()
            return
        is_news = bool(answer.rows or answer.missing or answer.is_refused)
        # "From now on" becomes a position: what is recorded before the next query must not be missed.
        self._query = replace(self._query, after=answer.next, since=None)
        last = self._complete_until if answer.is_incomplete else self._until
        if is_news or now >= last:
            self._owner.leave(self)
            self._done(answer)
        elif self._state is Follow.LOOKS_SOON:
            self._call_at(after(now, PAUSE_MS))
        else:
            again = after(now, LOOK_AGAIN_MS) if answer.is_incomplete or answer.is_behind else last
            self._call_at(min(again, last))

    def _call_at(self, when: Instant) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._owner.clock.call_at(when, self.look)


def _nothing() -> None:
    return None
