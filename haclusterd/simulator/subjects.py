"""The emphasis of a seed, by its number alone: pairs of a fault and the activity that it meets, and one subject.

Drawn evenly from everything, some pairs of a fault and an activity come once in many hours. So each seed prefers some
pairs and one subject, in turn: a campaign covers nearly all of them within an hour, and several times in days.
"""

from enum import Enum

from haclusterd.model.records import dataclass
from haclusterd.simulator.checks.activities import Activity
from haclusterd.simulator.faults.moments import GENTLE, PAIRS, Pair


class Subject(Enum):
    """What there is more of in a seed than in others."""

    NOTHING = "nothing"
    LINKS = "links"
    """Several networks, one of which fails."""
    POLICIES = "policies"
    """What is done when an operation fails, and how often nodes are fenced for it."""
    TICKETS = "tickets"
    TIMEOUTS = "timeouts"
    """Another node-timeout comes into force; lifetimes end, and rules on dates become true and false."""
    SHAPES = "shapes"
    """Primitives become clones, members of groups, promotable, and so on, while they are active."""


USUAL = (
    Subject.LINKS, Subject.POLICIES, Subject.SHAPES, Subject.NOTHING, Subject.TICKETS, Subject.LINKS, Subject.TIMEOUTS,
    Subject.NOTHING,
)  # fmt: skip
OF_THE_HEARD = (Subject.NOTHING, Subject.LINKS, Subject.POLICIES, Subject.SHAPES)
PAIRS_OF_A_SEED = 3
STRIDE = 19
"""Step from the pairs of one seed to those of the next of its kind: a short campaign covers a bit of everything. It
divides no number of pairs, so that all are reached."""


@dataclass(frozen=True, slots=True)
class Emphasis:
    """What one seed has more of than others."""

    subject: Subject
    pairs: tuple[Pair, ...] = ()

    def meets(self, *activities: Activity) -> bool:
        """Tell whether it is about one of these activities."""
        return any(activity in activities for _, activity in self.pairs)


NO_EMPHASIS = Emphasis(Subject.NOTHING)


def emphasis_of(number: int, *, has_switch: bool, is_heard: bool, has_members: bool) -> Emphasis:
    """Return the emphasis of the `number`-th seed of a kind.

    `is_heard`: every living node is to be heard. What cannot happen in a kind of seed is left out: without a switch
    nobody is let in by one, and where no members come and go none change.
    """
    pairs = [
        (interruption, activity)
        for interruption, activity in PAIRS
        if (not is_heard or interruption in GENTLE)
        and (has_switch or activity is not Activity.UNFENCE)
        and (has_members or activity is not Activity.MEMBERS)
    ]
    subjects = OF_THE_HEARD if is_heard else USUAL
    turn = number + number // len(pairs)
    places = range(number * PAIRS_OF_A_SEED, (number + 1) * PAIRS_OF_A_SEED)
    return Emphasis(subjects[turn % len(subjects)], tuple(pairs[place * STRIDE % len(pairs)] for place in places))
