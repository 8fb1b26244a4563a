"""What a relation between two actions means, beside that one comes before the other.

Source: Pacemaker Development, "Scheduler". `order_effects` says what each of them does to the two actions.
"""

ORDERED = 1 << 0
"""Sequence only."""
FIRST_IMPLIES_THEN = 1 << 1
"""A required first (that does not migrate) makes the other required."""
THEN_IMPLIES_FIRST = 1 << 2
"""A required second brings the first into the graph, if that is required too; a first of a second that cannot migrate
cannot migrate either."""
UNRUNNABLE_FIRST_BLOCKS = 1 << 3
INTERMEDIATE_STOP = 1 << 4
"""A resource's stop before its start: a required start that follows makes the stop required."""
ASYMMETRIC = 1 << 5
"""A mandatory ordering of a user that is not undone in reverse."""
IF_REQUIRED_ON_SAME_NODE = 1 << 6
"""Two resources that must be apart: only when the first really leaves the node that the second comes to."""
THEN_IMPLIES_FIRST_GRAPHED = 1 << 7
FIRST_IMPLIES_THEN_GRAPHED = 1 << 8
SERIALIZE = 1 << 9
AFTER_FENCING = 1 << 10
"""A stop that fencing does: never without it."""
PROMOTED_THEN_IMPLIES_FIRST = 1 << 11
"""As THEN_IMPLIES_FIRST, only if the second's resource is promoted now."""
UNMIGRATABLE_THEN_BLOCKS = 1 << 12
"""The first can be done only while the second can migrate."""
FIRST_ELSE_THEN = 1 << 13
"""If the first cannot be done, the second cannot migrate and is done for real."""
FIRST_IMPLIES_SAME_NODE_THEN = 1 << 14
MIN_RUNNABLE = 1 << 15
"""The first, if it can be done, counts towards how many the second needs."""
IF_ON_SAME_NODE = 1 << 16
IF_ON_SAME_NODE_OR_TARGET = 1 << 17
"""Of load: what comes to a node waits for what leaves it."""
IF_FIRST_UNMIGRATABLE = 1 << 18
THEN_CANCELS_FIRST = 1 << 19
NESTED_REMOTE_PROBE = 1 << 20
GUEST_ALLOWED = 1 << 21
"""Also between a guest node's launcher and what runs on the guest."""
