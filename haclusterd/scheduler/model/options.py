"""What the caller of the scheduler decides: everything that is not in the CIB."""

from haclusterd.model.records import dataclass
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """How a plan is made."""

    has_quorum: bool = True
    """A DC has it; a plan for a CIB file may assume that it is gone."""
    is_pacemaker_compatible: bool = False
    """The CIB is one of Pacemaker's: decide as Pacemaker would, also where this cluster decides otherwise."""
    may_fence_without_quorum: bool = False
    """Pacemaker's `no-quorum-panic`: this partition may fence the others though it has no quorum."""
    is_explaining: bool = False
    """Keep for each score what it is the sum of (`Placement.scores`); it costs time."""

    rules: SafetyRules = ALL_RULES
    """Switched off one by one only by the simulator."""


DEFAULT_OPTIONS = ScheduleOptions()
