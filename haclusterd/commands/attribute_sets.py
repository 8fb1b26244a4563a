"""One name in blocks of name-value pairs: set it, or take it out."""

from dataclasses import replace

from haclusterd.formats.generated_ids import block_base
from haclusterd.model.configuration import AttributeSet, effective


def with_value(
    sets: tuple[AttributeSet, ...], *, owner: str, section: str, name: str, value: str
) -> tuple[AttributeSet, ...]:
    """Return the blocks with `name` meaning `value`: where it stands, else in the first block, else in a new one.

    `owner` and `section` (params, meta, attributes) give a new block its id.
    """
    if effective(sets).get(name) == value:
        return sets
    if not sets:
        return (AttributeSet(block_base(owner, section), ((name, value),)),)
    holds = [block.get(name) is not None for block in sets]
    if not any(holds):
        return (_put(sets[0], name, value), *sets[1:])
    return tuple(_put(block, name, value) if has else block for block, has in zip(sets, holds, strict=True))


def without(sets: tuple[AttributeSet, ...], name: str) -> tuple[AttributeSet, ...]:
    """Return the blocks without `name`; a block that becomes empty goes."""
    kept = (replace(block, pairs=tuple(pair for pair in block.pairs if pair[0] != name)) for block in sets)
    return tuple(block for block, before in zip(kept, sets, strict=True) if block.pairs or not before.pairs)


def _put(block: AttributeSet, name: str, value: str) -> AttributeSet:
    if block.get(name) is None:
        return replace(block, pairs=(*block.pairs, (name, value)))
    return replace(block, pairs=tuple((key, value if key == name else old) for key, old in block.pairs))
