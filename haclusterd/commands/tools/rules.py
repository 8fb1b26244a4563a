"""crm_rule: whether a rule of the configuration is in effect, now or at another time.

Options and output are those of crm_rule(8) of Pacemaker 2.1.5, which judges rules with one date expression; one with a
`date_spec` must say years. A rule is known by the id that `cibadmin --query` shows. The answer is the scheduler's:
a time without an offset is UTC.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools.call import (
    NO_SUCH_OBJECT,
    USAGE,
    Given,
    Tool,
    ToolCall,
    ToolUsageError,
    output,
    printed,
)
from haclusterd.commands.tools.documents import parsed
from haclusterd.commands.tools.result import OUTPUT, document, wants_xml
from haclusterd.formats.cib_xml.elements import element
from haclusterd.formats.cib_xml.writer import write_configuration
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.rules import DateExpression, Rule
from haclusterd.scheduler.model.dates import EffectiveTime, calendar_fields, parse_date
from haclusterd.scheduler.model.rules import RuleContext, evaluate
from haclusterd.verbs.answers.cluster import ToolOutput

UNIMPLEMENTED, BAD_DATA, EXPIRED, NOT_YET = 3, 65, 110, 111
_WORDS = {EXPIRED: "is expired", NOT_YET: "has not yet taken effect"}
_RANGE = re.compile(r"(\d*)(-?)(\d*)")
_FIELDS = ("years", "weekyears", "months", "weeks", "yeardays", "monthdays", "weekdays", "hours", "minutes", "seconds")
"""Of a `date_spec`, the longest first: the first that is not met says whether its time is over or to come."""


class _UnclearError(Exception):
    """Why a rule is not judged."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def rules(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_rule: check whether rules are in effect."""
    is_xml = wants_xml(given)
    wanted = [value for name, value in given.pairs if name == "rule"]
    if "check" not in given or not wanted:
        problem = "--check requires use of --rule=" if "check" in given else "No mode operation given"
        if is_xml:
            return printed(document(call, (), USAGE, f"{call.tool}: {problem}"), status=USAGE)
        raise ToolUsageError(problem)
    moment = parse_date(given.text("date")) if "date" in given else context.now // 1000
    if moment is None:
        return printed(err=f"{call.tool}: Invalid date specified: '{given.text('date')}'\n", status=BAD_DATA)
    if given.text("text") == "-":
        raise ToolUsageError("--xml-text=-: give the text itself: --xml-text=\"$(cat)\"")
    root = parsed(given.text("text") or write_configuration(context.cib.configuration))
    found: dict[str, list[DateExpression]] = {}
    for rule in root.iter("rule"):
        found.setdefault(rule.get("id", ""), list(_dates(rule)))
    status = 0
    out: list[str] = []
    err: list[str] = []
    lines: list[str] = []
    for name in wanted:
        status, words = _judged(name, found, moment)
        (out if status in (0, *_WORDS) else err).append(words)
        lines += element("rule-check", {"rule-id": name, "rc": str(status)})
    if is_xml:
        return printed(document(call, lines, status, "\n".join(err)), status=status)
    printed_out, printed_err = ("".join(f"{line}\n" for line in shown) for shown in (out, err))
    return replace(printed(status=status), answer=output(printed_out, printed_err))


def _dates(rule: ET.Element) -> Iterator[DateExpression]:
    for each in rule.findall("date_expression"):
        parts = {tag: tuple((key, value) for key, value in part.attrib.items() if key != "id")
                 for tag in ("duration", "date_spec") if (part := each.find(tag)) is not None}  # fmt: skip
        yield DateExpression(
            each.get("operation", "in_range"), each.get("start"), each.get("end"), parts.get("duration", ()),
            parts.get("date_spec", ()),
        )  # fmt: skip


def _judged(name: str, found: dict[str, list[DateExpression]], moment: int) -> tuple[int, str]:
    """Return the exit status for one rule, and the line about it."""
    try:
        date = _only_date(name, found)
    except _UnclearError as error:
        return error.status, f"Could not determine whether rule {name} is in effect: {error}"
    if evaluate(Rule(conditions=(date,)), RuleContext(EffectiveTime(WallTime(moment * 1000)))):
        return 0, f"Rule {name} {'satisfies conditions' if date.spec else 'is still in effect'}"
    status = NOT_YET if _is_to_come(date, moment) else EXPIRED
    return status, f"Rule {name} {_WORDS[status]}"


def _only_date(name: str, found: dict[str, list[DateExpression]]) -> DateExpression:
    """Return the date expression that decides. Raises _UnclearError."""
    if name not in found:
        raise _UnclearError(NO_SUCH_OBJECT, "Rule not found")
    dates = found[name]
    if len(dates) != 1:
        count = "does not have a" if not dates else "has more than one"
        raise _UnclearError(UNIMPLEMENTED, f"Rule {count} date expression")
    spec = dict(dates[0].spec)
    if dates[0].operation == "date_spec" and ("years" not in spec or "moon" in spec):
        problem = "Rule must either not use date_spec, or use date_spec with years= but not moon="
        raise _UnclearError(UNIMPLEMENTED, problem)
    return dates[0]


def _is_to_come(date: DateExpression, moment: int) -> bool:
    """Tell whether the time of a date that does not hold comes later."""
    if date.operation != "date_spec":
        start = None if date.start is None or date.operation == "lt" else parse_date(date.start)
        return start is not None and moment <= start
    fields, spec = calendar_fields(moment), dict(date.spec)
    for field in _FIELDS:
        bounds = _RANGE.fullmatch(spec.get(field, ""))
        if bounds is None or field not in fields:
            continue
        low, high = bounds[1], bounds[3] if bounds[2] else bounds[1]
        if low and fields[field] < int(low):
            return True
        if high and fields[field] > int(high):
            return False
    return False


TOOLS = {
    "crm_rule": Tool(rules, {
        "check": "c check", "date": "d: date:", "rule": "r: rule:", "text": "X: xml-text:", **OUTPUT,
    }),
}
