"""A change that was prepared over an older version of the configuration, put over the newest one.

What somebody else has changed meanwhile stays, as long as both have not changed the same: an object, a name in a block
of properties or defaults, the fencing levels. Where they have, nothing is changed, and each such thing is named.
"""

from haclusterd.cib.edits import (
    MAPPINGS,
    Arrange,
    Delete,
    Edit,
    PutFencingLevels,
    PutSets,
    apply_edits,
    difference,
    object_of,
)
from haclusterd.commands.context import Context
from haclusterd.model.configuration import AttributeSet, Configuration
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report

Blocks = tuple[AttributeSet, ...]


def merged(
    context: Context, version: int, base: Configuration, mine: Configuration
) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Return the newest configuration with the difference from `base`, which was `version`, to `mine`.

    Not to be used when there are reports.
    """
    theirs, author = context.cib.configuration, context.cib.version.author or "somebody"
    edits: list[Edit] = []
    both: list[str] = []
    for edit in difference(base, mine):
        match edit:
            case PutSets(section, sets):
                blocks, twice = _blocks(getattr(base, section), sets, getattr(theirs, section))
                both += twice
                edits.append(PutSets(section, blocks))
            case Arrange(kind, _):
                if list(getattr(base, MAPPINGS[kind])) == list(getattr(theirs, MAPPINGS[kind])):
                    edits.append(edit)
            case PutFencingLevels(levels):
                if theirs.fencing_levels not in (base.fencing_levels, levels):
                    both.append("the fencing topology")
                edits.append(edit)
            case _:
                kind, key = _of(edit)
                before, now = (getattr(each, kind).get(key) for each in (base, theirs))
                if now not in (before, getattr(mine, kind).get(key)):
                    both.append(key)
                edits.append(edit)
    reports = [report(Code.CHANGED_BY_BOTH, what=each, author=author, version=version) for each in both]
    if reports:
        reports.insert(0, report(Code.CONFLICT, author=author, version=context.cib.version.epoch))
    return apply_edits(theirs, edits), tuple(reports)


def _of(edit: Edit) -> tuple[str, str]:
    """Return in which mapping the object of an edit stands, and by which key."""
    if isinstance(edit, Delete):
        return MAPPINGS[edit.kind], edit.id
    assert not isinstance(edit, PutSets | PutFencingLevels | Arrange), edit
    kind, name, _ = object_of(edit)
    return MAPPINGS[kind], name


def _blocks(base: Blocks, mine: Blocks, theirs: Blocks) -> tuple[Blocks, list[str]]:
    """Return blocks with both changes, and the names that both have changed, each to something else."""
    before, now = ({block.id: block for block in each} for each in (base, theirs))
    changed = {block.id: block for block in mine}
    both: list[str] = []
    made: dict[str, AttributeSet] = {}
    for id_ in dict.fromkeys((*now, *changed)):
        old, own, other = before.get(id_), changed.get(id_), now.get(id_)
        if own in (old, other):
            found = other
        elif other == old:
            found = own
        elif old is None or own is None or other is None or not _is_alike(old, own, other):
            both.append(id_)
            found = other
        else:
            found = _pairs(old, own, other, both)
        if found is not None:
            made[id_] = found
    return tuple(made.values()), both


def _is_alike(*blocks: AttributeSet) -> bool:
    """Tell whether blocks differ in nothing but their pairs."""
    return len({replace(block, pairs=()) for block in blocks}) == 1


def _pairs(old: AttributeSet, own: AttributeSet, other: AttributeSet, both: list[str]) -> AttributeSet:
    before, mine, theirs = (dict(block.pairs) for block in (old, own, other))
    made = dict(theirs)
    for name in dict.fromkeys((*before, *mine)):
        if mine.get(name) == before.get(name):
            continue
        if theirs.get(name) not in (before.get(name), mine.get(name)):
            both.append(name)
        if name in mine:
            made[name] = mine[name]
        else:
            made.pop(name, None)
    return replace(other, pairs=tuple(made.items()))
