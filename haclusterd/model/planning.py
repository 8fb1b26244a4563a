"""A plan that was asked for, and its answer: they are apart in time, because planning takes long in large clusters."""

from haclusterd.model.graph import Plan
from haclusterd.model.records import dataclass


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """What became of a question for a plan."""

    number: int
    """Which question it answers."""
    plan: Plan | None
    """None: there is none, and `problem` says why."""
    problem: str = ""
