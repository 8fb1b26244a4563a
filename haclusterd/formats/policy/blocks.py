"""Blocks of name-value pairs in policy YAML: one mapping, or a list of blocks with ids, scores and rules."""

from haclusterd.formats.generated_ids import allocate
from haclusterd.formats.policy.fields import Fields, Findings, as_map, as_text, read_id
from haclusterd.formats.policy.rules import read_rules
from haclusterd.formats.policy.yaml_tree import List, Map, Scalar, Tree
from haclusterd.model import scores
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.rules import Rule
from haclusterd.model.words import ATTRIBUTE_NAME
from haclusterd.reports.codes import Code


def read_blocks(findings: Findings, tree: Tree | None, where: str, base: str, *path: str) -> tuple[AttributeSet, ...]:
    """Read blocks of attributes: one mapping of names to values, or a list of `{id, score, rule, values}`.

    `base` is the id to generate; the places of the values are noted under `path`.
    """
    if tree is None or (isinstance(tree, Scalar) and tree.text is None):
        return ()
    if not isinstance(tree, List):
        return (AttributeSet(base, _pairs(findings, tree, where, path)),)
    blocks: list[tuple[str | None, AttributeSet]] = []
    rules: list[Tree | None] = []
    for item in tree.items:
        fields = Fields(findings, where, item, ("id", "score", "rule", "values"))
        pairs = _pairs(findings, fields.tree("values") or Map(item.place), where, path)
        given = fields.value("id", read_id)
        if given is not None and given in [other for other, _ in blocks]:
            findings.note(Code.DUPLICATE_ID, item.place, id=given)
        blocks.append((given, AttributeSet("", pairs, fields.value("score", scores.parse) or 0)))
        rules.append(fields.tree("rule"))
    ids = allocate([(given, base) for given, _ in blocks])
    return tuple(
        AttributeSet(id_, block.pairs, block.score, _rule(findings, rule, where, id_))
        for id_, (_, block), rule in zip(ids, blocks, rules, strict=True)
    )


def _rule(findings: Findings, tree: Tree | None, where: str, block: str) -> Rule | None:
    return None if tree is None else read_rules(findings, [tree], where, block)[0]


def _pairs(findings: Findings, tree: Tree, where: str, path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    values = as_map(findings, tree, where)
    pairs: list[tuple[str, str]] = []
    for name, value in values.entries.items():
        place = values.key_places[name]
        if not ATTRIBUTE_NAME.match(name):
            findings.note(Code.BAD_VALUE, place, name="attribute name", problem=f"{name!r} cannot be a name")
        findings.places[(*path, name)] = place
        text = as_text(findings, value, f"{where}: {name}")
        pairs.append((name, text or ""))
    return tuple(pairs)
