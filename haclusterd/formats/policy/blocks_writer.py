"""Blocks of name-value pairs, operations and rules as policy YAML."""

from collections.abc import Sequence

from haclusterd.formats.generated_ids import (
    NO_INTERVAL,
    are_natural,
    block_base,
    interval_text,
    natural_operations,
    rule_base,
)
from haclusterd.formats.policy.dumper import Inline, Tree, escaped, flag, given, text
from haclusterd.formats.stated import written_start_delay, written_timeout
from haclusterd.model import scores
from haclusterd.model.configuration import AttributeSet, Operation
from haclusterd.model.rules import (
    AttributeExpression,
    Condition,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)


def write_blocks(sets: Sequence[AttributeSet], base: str) -> Tree:
    """Write the blocks of one kind: the only one, if it says nothing else, as a plain mapping."""
    if len(sets) == 1 and sets[0].id == base and sets[0].score == 0 and sets[0].rule is None:
        return _pairs(sets[0])
    with_ids = not are_natural([block.id for block in sets], [base] * len(sets))
    blocks: list[Tree] = []
    for block in sets:
        written: dict[str, Tree] = {"id": block.id} if with_ids else {}
        if block.score:
            written["score"] = scores.render(block.score)
        if block.rule is not None:
            written["rule"] = write_rules(block.id, [block.rule])[0]
        written["values"] = _pairs(block)
        blocks.append(written)
    return blocks


def _pairs(block: AttributeSet) -> dict[str, Tree]:
    return {name: escaped(value) for name, value in block.pairs}


def add_blocks(tree: dict[str, Tree], owner: str, **sections: tuple[str, Sequence[AttributeSet]]) -> None:
    """Put sections of blocks into an object; of each, the key and (section, blocks) are given."""
    for key, (section, sets) in sections.items():
        if sets:
            tree[key] = write_blocks(sets, block_base(owner, section))


def write_operations(resource: str, operations: Sequence[Operation]) -> Tree:
    """Write the operations of a resource or template."""
    with_ids = not natural_operations(resource, operations)
    return [{operation.name: _operation(operation, with_id=with_ids)} for operation in operations]


def _operation(operation: Operation, *, with_id: bool) -> Tree:
    interval = interval_text(operation)
    values: dict[str, Tree] = {
        "id": operation.id if with_id else None,
        "interval": None if interval == NO_INTERVAL else interval,
        "timeout": written_timeout(operation),
        "role": operation.role,
        "on-fail": text(operation.on_fail),
        "start-delay": written_start_delay(operation),
        "enabled": None if operation.is_enabled else "false",
        "requires": text(operation.requires),
        "interval-origin": text(operation.interval_origin),
        "record-pending": flag(operation.record_pending),
    }
    tree = Inline(given(values))
    add_blocks(tree, operation.id, parameters=("params", operation.parameters), meta=("meta", operation.meta))
    has_rules = any(block.rule is not None for block in operation.parameters + operation.meta)
    return dict(tree) if has_rules else tree


def write_rules(owner: str, rules: Sequence[Rule]) -> list[Tree]:
    """Write the rules of one owner."""
    with_ids = not are_natural([rule.id for rule in rules], [rule_base(owner)] * len(rules))
    return [_rule(rule, with_id=with_ids) for rule in rules]


def _rule(rule: Rule, *, with_id: bool) -> Tree:
    nested = [each for each in rule.conditions if isinstance(each, Rule)]
    with_ids = not are_natural([each.id for each in nested], [rule_base(rule.id)] * len(nested))
    conditions = [_condition(each, with_id=with_ids) for each in rule.conditions]
    return given(
        {
            "id": rule.id if with_id else None,
            "score": None if rule.score is None else scores.render(rule.score),
            "score-attribute": rule.score_attribute,
            "role": rule.role,
            "any" if rule.is_any else "all": conditions,
        }
    )


def _condition(condition: Condition, *, with_id: bool) -> Tree:
    match condition:
        case Rule():
            return {"rule": _rule(condition, with_id=with_id)}
        case AttributeExpression(attribute, operation, value, source, type_):
            return Inline(given({"attribute": attribute, "is": operation, "value": text(value), "source": source,
                                 "type": type_}))  # fmt: skip
        case DateExpression(operation, start, end, duration, spec):
            return Inline(given({"date": operation, "start": text(start), "end": text(end),
                                 "duration": Inline(duration) if duration else None,
                                 "spec": Inline(spec) if spec else None}))  # fmt: skip
        case ResourceExpression(standard, provider, type_):
            known = given({"class": text(standard), "provider": text(provider), "type": text(type_)})
            return Inline({"agent": Inline(known)})
        case OperationExpression(name, interval):
            return Inline(given({"operation": text(name), "interval": text(interval)}))
