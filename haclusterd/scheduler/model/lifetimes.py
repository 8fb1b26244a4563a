"""What `resource move` and `resource ban` leave: locations by their ids, for ever or until a moment.

One with an end is as crm_resource writes it: a rule that asks for the node's name and for a date before the end
(Pacemaker Explained, "Rules"). It says nothing any more from its end on; the DC then takes it away.
"""

from datetime import UTC, datetime

from haclusterd.model.configuration import Configuration, Location
from haclusterd.model.ids import ConstraintId, NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.rules import AttributeExpression, DateExpression, Rule
from haclusterd.scheduler.model.dates import parse_date

PREFER, BAN = "cli-prefer-", "cli-ban-"
_UNAME = "#uname"


def moves(configuration: Configuration) -> tuple[Location, ...]:
    """Return the constraints that `move` and `ban` made."""
    constraints = configuration.constraints.values()
    return tuple(each for each in constraints if isinstance(each, Location) and each.id.startswith((PREFER, BAN)))


def lasting(location: Location, end: WallTime) -> Location:
    """Return a location for one node as it is with an end, which is kept in whole seconds."""
    until = datetime.fromtimestamp(end // 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    rule = Rule(
        f"{location.id}-rule",
        (
            AttributeExpression(_UNAME, "eq", location.node, type="string"),
            DateExpression("lt", end=until),
        ),
        score=location.score,
    )
    return Location(location.id, location.resource, rules=(rule,), role=location.role)


def node_of(location: Location) -> NodeName:
    """Return the node that a location of `move` or `ban` is about; empty: it is of another form."""
    if location.node:
        return location.node
    conditions = location.rules[0].conditions if len(location.rules) == 1 else ()
    named = (each for each in conditions if isinstance(each, AttributeExpression) and each.attribute == _UNAME)
    return NodeName(next((each.value or "" for each in named if each.operation == "eq"), ""))


def score_of(location: Location) -> int:
    """Return how much such a location is worth."""
    return location.rules[0].score or 0 if len(location.rules) == 1 else location.score


def end_of(location: Location) -> WallTime | None:
    """Return from when on a location says nothing; None: there is no such moment."""
    if len(location.rules) != 1 or location.rules[0].is_any:
        return None
    dates = [each for each in location.rules[0].conditions if isinstance(each, DateExpression)]
    ends = [parse_date(each.end) for each in dates if each.operation == "lt" and each.end is not None]
    known = [each for each in ends if each is not None]
    return WallTime(min(known) * 1000) if known else None


def ends(configuration: Configuration) -> dict[ConstraintId, WallTime]:
    """Return when what `move` and `ban` made ends, where it does."""
    found = {each.id: end_of(each) for each in moves(configuration)}
    return {key: end for key, end in found.items() if end is not None}
