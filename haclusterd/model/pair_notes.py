"""What a text says of name-value pairs beside name and value, through a whole configuration.

Notes matter to nothing but the texts that are written: they are kept in files of Pacemaker, whose users refer to pairs
by their ids (Pacemaker Explained, "Reusing Rules, Options and Sets of Operations"). A running cluster keeps none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from haclusterd.model.configuration import AttributeSet, Configuration, PairNote
from haclusterd.model.records import fields, is_dataclass, replace


def blocks_of(value: object) -> Iterator[AttributeSet]:
    """Yield every block in a configuration, or in a part of one, in the order of the document."""
    if isinstance(value, AttributeSet):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from blocks_of(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from blocks_of(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from blocks_of(getattr(value, each.name))


def pair_with_id(configuration: Configuration, id_: str) -> tuple[str, str] | None:
    """Return the pair that has an id, given or made of its block's id and its name; None: none has it."""
    for block in blocks_of(configuration):
        noted = {note.name: note for note in block.notes}
        for name, value in block.pairs:
            note = noted.get(name)
            own = f"{block.id}-{name}" if note is None else "" if note.is_reference else note.id
            if own == id_:
                return name, value
    return None


def without_notes(configuration: Configuration) -> Configuration:
    """Return a configuration in which no pair has a note, nor a name no value; the same object if that is so."""
    if not any(block.notes or block.valueless for block in blocks_of(configuration)):
        return configuration
    bare: Configuration = _mapped(configuration, lambda block: replace(block, notes=(), valueless=()))
    return bare


def with_sound_notes(configuration: Configuration) -> Configuration:
    """Return a configuration in which an id is given once, and references say what the pair that has the id says.

    What changed one of the two ended that. The same object comes back if all is sound.
    """
    noted = [block for block in blocks_of(configuration) if block.notes]
    if not noted:
        return configuration
    defined = _defined(noted)

    def sound(block: AttributeSet) -> AttributeSet:
        kept = tuple(note for note in block.notes if _is_sound(configuration, defined, block, note))
        return block if kept == block.notes else replace(block, notes=kept)

    if all(sound(block) is block for block in noted):
        return configuration
    made: Configuration = _mapped(configuration, sound)
    return made


def _defined(noted: Iterable[AttributeSet]) -> Mapping[str, tuple[AttributeSet, str]]:
    """Return the first block that gives each id to a pair, and the value of that."""
    defined: dict[str, tuple[AttributeSet, str]] = {}
    for block in noted:
        for note in block.notes:
            value = block.get(note.name)
            if not note.is_reference and value is not None:
                defined.setdefault(note.id, (block, value))
    return defined


def _is_sound(
    configuration: Configuration, defined: Mapping[str, tuple[AttributeSet, str]], block: AttributeSet, note: PairNote
) -> bool:
    value = block.get(note.name)
    if value is None:
        return False
    if not note.is_reference:
        return defined[note.id][0] == block
    if note.id in defined:
        return defined[note.id][1] == value
    found = pair_with_id(configuration, note.id)
    return found is not None and found[1] == value


def _mapped(value: Any, change: Callable[[AttributeSet], AttributeSet]) -> Any:
    """Return a value with every block in it changed; what holds no changed block is the same object."""
    if isinstance(value, AttributeSet):
        return change(value)
    if isinstance(value, Mapping):
        made = {key: _mapped(each, change) for key, each in value.items()}
        return value if all(made[key] is each for key, each in value.items()) else made
    if isinstance(value, tuple):
        parts = tuple(_mapped(each, change) for each in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if is_dataclass(value) and not isinstance(value, type):
        old = {each.name: getattr(value, each.name) for each in fields(value)}
        new = {name: _mapped(each, change) for name, each in old.items()}
        changed = {name: each for name, each in new.items() if each is not old[name]}
        return replace(value, **changed) if changed else value
    return value
