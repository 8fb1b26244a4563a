"""Constraints, tags and fencing topology as crm text; what the readers read back as equal objects."""

from collections.abc import Sequence
from itertools import groupby

from haclusterd.formats.crm.mistakes import is_kind_or_score
from haclusterd.formats.crm.rule_writer import score_word, write_rules
from haclusterd.formats.crm.rules import LIFETIME
from haclusterd.formats.crm.sets import SET_ATTRIBUTES
from haclusterd.formats.crm.tokens import quote, quote_value, quoted
from haclusterd.formats.crm.topology import ATTRIBUTE, PATTERN
from haclusterd.formats.generated_ids import LEVEL_ID, are_natural, set_base
from haclusterd.formats.stated import written_first_action, written_kind
from haclusterd.model import scores
from haclusterd.model.configuration import (
    Colocation,
    Constraint,
    FencingLevel,
    Location,
    Ordering,
    ResourceSet,
    Tag,
    TicketConstraint,
)
from haclusterd.model.rules import Rule

NEXT = " \\\n\t"

_BRACKETS: dict[tuple[bool | None, bool | None], str] = {(False, None): "()", (False, False): "[]"}


def write_constraint(constraint: Constraint) -> str:
    """Write one constraint."""
    match constraint:
        case Location():
            return _location(constraint)
        case Colocation():
            return _colocation(constraint)
        case Ordering():
            return _order(constraint)
        case TicketConstraint():
            return _ticket(constraint)


def write_tag(tag: Tag) -> str:
    """Write a tag."""
    return f"tag {tag.id}: {' '.join(map(quote, tag.references))}"


def _location(constraint: Location) -> str:
    subject: str = constraint.resource
    if constraint.pattern:
        subject = quote(f"/{constraint.pattern}/")
    elif constraint.sets:
        subject = " ".join(_sets(constraint.id, constraint.sets, of_actions=False, simple=0, is_plain_allowed=False))
    text = f"location {constraint.id} {subject}"
    if constraint.role is not None:
        text += f" role={constraint.role}"
    if constraint.discovery is not None:
        text += f" resource-discovery={constraint.discovery}"
    if constraint.rules:
        rules = write_rules(constraint.id, constraint.rules)
        separator = NEXT if len(rules) > 1 else " "
        return text + "".join(f"{separator}{rule}" for rule in rules)
    return f"{text} {score_word(constraint.score)}: {constraint.node}"


def _colocation(constraint: Colocation) -> str:
    members = [
        _qualified(constraint.dependent, constraint.dependent_role),
        _qualified(constraint.primary, constraint.primary_role),
    ]
    if constraint.sets:
        members = _sets(constraint.id, constraint.sets, of_actions=False, simple=2)
    text = f"colocation {constraint.id} {score_word(constraint.score)}: {' '.join(members)}"
    if constraint.node_attribute is not None:
        text += f" node-attribute={quote_value(constraint.node_attribute)}"
    if constraint.influence is not None:
        text += f" influence={str(constraint.influence).lower()}"
    return text + _lifetime(constraint.id, constraint.lifetime)


def _order(constraint: Ordering) -> str:
    first = _qualified(constraint.first, written_first_action(constraint))
    members = [first, _qualified(constraint.then, constraint.then_action)]
    if constraint.sets:
        members = _sets(constraint.id, constraint.sets, of_actions=True, simple=2)
    kind = written_kind(constraint)
    text = " ".join(("order", constraint.id, *([f"{kind}:"] if kind else []), *members))
    text += "" if constraint.is_symmetrical else " symmetrical=false"
    text += "" if constraint.require_all else " require-all=false"
    return text + _lifetime(constraint.id, constraint.lifetime)


def _lifetime(constraint: str, rules: Sequence[Rule]) -> str:
    return "".join(f" {each}" for each in write_rules(constraint, rules, word=LIFETIME))


def _ticket(constraint: TicketConstraint) -> str:
    members = [_qualified(constraint.resource, constraint.role)]
    if constraint.sets:
        members = _sets(constraint.id, constraint.sets, of_actions=False, simple=1)
    text = f"rsc_ticket {constraint.id} {quote(constraint.ticket + ':')} {' '.join(members)}"
    return text if constraint.loss_policy is None else f"{text} loss-policy={constraint.loss_policy}"


def _qualified(resource: str, qualifier: str | None) -> str:
    if qualifier is None:
        return quoted(resource) if resource.lower() == LIFETIME or is_kind_or_score(resource) else resource
    return f"{resource}:{qualifier}"


def _sets(
    constraint: str, sets: Sequence[ResourceSet], *, of_actions: bool, simple: int, is_plain_allowed: bool = True
) -> list[str]:
    """Write sets in the shortest brackets that say what they are; braces say it in words."""
    with_ids = not are_natural([each.id for each in sets], [set_base(constraint, n) for n in range(len(sets))])
    can_be_plain = is_plain_allowed and not with_ids
    if can_be_plain and all(map(_is_plain, sets)):
        can_be_plain = sum(len(each.members) for each in sets) > simple
    written: list[str] = []
    previous: ResourceSet | None = None
    for each in sets:
        qualifier = each.action if of_actions else each.role
        members = " ".join(_qualified(member, qualifier) for member in each.members)
        has_other = any(value is not None for value in (each.role if of_actions else each.action, each.score,
                                                        each.kind, each.ordering))  # fmt: skip
        flags = (each.is_sequential, each.require_all)
        is_joined = previous is not None and (previous.action if of_actions else previous.role) == qualifier
        if can_be_plain and _is_plain(each) and not has_other and not is_joined:
            written.append(members)
            previous = each
            continue
        previous = None
        brackets = _BRACKETS.get(flags)
        if brackets is None or with_ids or has_other or not is_plain_allowed:
            written.append(f"{{ {members}{_set_attributes(each, of_actions=of_actions, with_id=with_ids)} }}")
        else:
            written.append(f"{brackets[0]} {members} {brackets[1]}")
    return written


def _is_plain(each: ResourceSet) -> bool:
    return each.is_sequential is None and each.require_all is None


def _set_attributes(each: ResourceSet, *, of_actions: bool, with_id: bool) -> str:
    values = {
        "sequential": None if each.is_sequential is None else str(each.is_sequential).lower(),
        "require-all": None if each.require_all is None else str(each.require_all).lower(),
        "score": None if each.score is None else scores.render(each.score),
        "kind": each.kind,
        "ordering": each.ordering,
        "role": each.role if of_actions else None,
        "action": None if of_actions else each.action,
        "$id": each.id if with_id else None,
    }
    given = ((name, values[name]) for name in SET_ATTRIBUTES)
    return "".join(f" {name}={quote_value(value)}" for name, value in given if value is not None)


def write_topology(levels: Sequence[FencingLevel]) -> str:
    """Write all fencing levels as one statement."""
    with_ids = not are_natural([level.id for level in levels], [LEVEL_ID] * len(levels))
    text = "fencing_topology"
    for target, found in groupby(levels, key=_target):
        text += NEXT + target
        natural = 1
        for level in found:
            devices = ",".join(level.devices)
            text += f" $id={level.id}" if with_ids else ""
            text += f" {devices}" if level.index == natural else f" {level.index}:{devices}"
            natural = level.index + 1
    return text


def _target(level: FencingLevel) -> str:
    if level.target_pattern:
        return quote(PATTERN + level.target_pattern)
    if level.target_attribute:
        return quote(f"{ATTRIBUTE}{level.target_attribute}={level.target_value}")
    return quote(f"{level.target}:")
