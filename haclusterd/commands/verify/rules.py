"""Rules that can never be true, or that say something where it does not count (Pacemaker Explained, "Rules")."""


from haclusterd.commands.attribute_sets import every_block
from haclusterd.commands.verify.judgement import Judgement
from haclusterd.formats.rule_words import COMPARISONS, DATE_OPERATIONS, PRESENCE
from haclusterd.model.configuration import Colocation, Location, Ordering
from haclusterd.model.patterns import compile_pattern
from haclusterd.model.rules import (
    AttributeExpression,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
    conditions_of,
    looks_at_dates_only,
)
from haclusterd.reports.codes import Code, Severity
from haclusterd.scheduler.model.dates import parse_date

_Path = tuple[str, ...]

DATES_ONLY = "write dates alone, as in: lifetime date lt 2030-01-31"


def check_rules(judgement: Judgement) -> None:
    """Judge the rules of constraints and blocks, and the patterns of locations."""
    configuration = judgement.configuration
    for constraint in configuration.constraints.values():
        if isinstance(constraint, Location):
            _check_location(judgement, constraint)
        elif isinstance(constraint, Colocation | Ordering):
            _check_lifetime(judgement, constraint)
    for blocks, where, path in every_block(configuration):
        for block in blocks:
            if block.rule is not None:
                _check_rule(judgement, block.rule, where, path)


def _check_location(judgement: Judgement, location: Location) -> None:
    where, path = f"constraint {location.id}", ("constraint", location.id)
    if location.pattern:
        try:
            compile_pattern(location.pattern.removeprefix("!"))
        except ValueError as error:
            problem = f"not a regular expression: {error}"
            judgement.note(Code.BAD_VALUE, (*path, "resource"), name=f"{where}: pattern", problem=problem)
    for rule in location.rules:
        if rule.score is None and rule.score_attribute is None:
            remedy = "write how much it counts, as in rule 100: ..."
            judgement.note(Code.RULE_WITHOUT_EFFECT, path, remedy=remedy, where=where, problem="it has no score")
        _check_rule(judgement, rule, where, path)
        for condition in conditions_of(rule):
            if isinstance(condition, ResourceExpression | OperationExpression):
                problem = "a location looks at nodes and times only"
                judgement.note(Code.RULE_WITHOUT_EFFECT, path, where=where, problem=problem)


def _check_lifetime(judgement: Judgement, constraint: Colocation | Ordering) -> None:
    where, path = f"constraint {constraint.id}: lifetime", ("constraint", constraint.id)
    for rule in constraint.lifetime:
        _check_rule(judgement, rule, where, path)
        if not looks_at_dates_only(rule):
            problem = "it looks at dates only; another condition is false"
            judgement.note(Code.RULE_WITHOUT_EFFECT, path, remedy=DATES_ONLY, where=where, problem=problem)


def _check_rule(judgement: Judgement, rule: Rule, where: str, path: _Path) -> None:
    for condition in conditions_of(rule):
        problem, doubt, remedy = None, None, None
        if isinstance(condition, DateExpression):
            problem = _objection_to_date(condition)
        elif isinstance(condition, AttributeExpression):
            problem, doubt = _objection_to_comparison(condition), _doubt_about_comparison(condition)
            if _is_of_no_node(judgement, condition):
                doubt = f"#id is compared with {condition.value!r}, which is the id of no node"
                remedy = "write #uname and the node's name"
        if problem is not None:
            judgement.note(Code.BAD_VALUE, path, name=f"{where}: rule", problem=problem)
        elif doubt is not None:
            name = f"{where}: rule"
            judgement.note(Code.BAD_VALUE, path, severity=Severity.WARNING, remedy=remedy, name=name, problem=doubt)


def _objection_to_date(condition: DateExpression) -> str | None:
    if condition.operation not in DATE_OPERATIONS:
        return f"{condition.operation!r} is not one of: {', '.join(DATE_OPERATIONS)}"
    for name, text in (("start", condition.start), ("end", condition.end)):
        if text is not None and parse_date(text) is None:
            return f"{name}={text!r} is not a date (write it like 2030-01-31 or 2030-01-31T12:00:00Z)"
    needed = {
        "lt": condition.end,
        "gt": condition.start,
        "date_spec": condition.spec,
        "in_range": condition.start or condition.end,
    }[condition.operation]
    if not needed:
        return f"a date condition {condition.operation} without a date"
    start, end = parse_date(condition.start or ""), parse_date(condition.end or "")
    if condition.operation == "in_range" and start is not None and end is not None and end < start:
        return f"the end {condition.end} is before the start {condition.start}"
    return None


def _objection_to_comparison(condition: AttributeExpression) -> str | None:
    if condition.operation not in (*COMPARISONS, *PRESENCE):
        return f"{condition.operation!r} is not one of: {', '.join((*COMPARISONS, *PRESENCE))}"
    return None


def _is_of_no_node(judgement: Judgement, condition: AttributeExpression) -> bool:
    """Tell whether a comparison of `#id` is with what identifies no node that is known."""
    entries = judgement.configuration.nodes
    known = {name: entries.get(name) for name in (*judgement.members, *entries)}
    if condition.attribute != "#id" or condition.operation not in ("eq", "ne") or not known:
        return False
    ids = {entry.id if entry and entry.id else name for name, entry in known.items()}
    return condition.value_source in (None, "literal") and condition.value not in ids


def _doubt_about_comparison(condition: AttributeExpression) -> str | None:
    """What is not of the type that it should be compared as is compared as text (Pacemaker Explained, "Rules")."""
    is_literal = condition.value_source in (None, "literal")
    if condition.type in ("integer", "number") and is_literal and condition.value is not None:
        read = int if condition.type == "integer" else float
        try:
            read(condition.value)
        except ValueError:
            return (
                f"{condition.attribute} is compared with {condition.value!r}, which is no {condition.type}: "
                "they are compared as text, as in Pacemaker"
            )
    return None
