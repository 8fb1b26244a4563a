"""Fencing levels: devices that are there, targets that are there (Pacemaker Explained, "Fencing Topologies")."""


from haclusterd.commands.verify.judgement import Judgement
from haclusterd.formats.crm.topology import MAX_INDEX
from haclusterd.model.configuration import FencingLevel, Primitive
from haclusterd.model.patterns import compile_pattern
from haclusterd.reports.codes import Code

_Path = tuple[str, ...]


def check_topology(judgement: Judgement) -> None:
    """Judge all fencing levels."""
    seen: set[tuple[str, str, str, str, int]] = set()
    for number, level in enumerate(judgement.configuration.fencing_levels):
        path = ("fencing_level", str(number))
        where = f"fencing level {level.index} of {_name(level)}"
        key = (level.target, level.target_pattern, level.target_attribute, level.target_value, level.index)
        if key in seen:
            judgement.note(Code.DUPLICATE_NAME, path, name=where)
        seen.add(key)
        if not 1 <= level.index <= MAX_INDEX:
            problem = f"{level.index} is not from 1 to {MAX_INDEX}"
            judgement.note(Code.BAD_VALUE, path, name=f"{where}: index", problem=problem)
        _check_target(judgement, level, where, path)
        _check_devices(judgement, level, where, path)


def _name(level: FencingLevel) -> str:
    if level.target_attribute:
        return f"{level.target_attribute}={level.target_value}"
    return level.target or level.target_pattern


def _check_target(judgement: Judgement, level: FencingLevel, where: str, path: _Path) -> None:
    known = {*judgement.members, *judgement.configuration.nodes}
    if level.target and known and level.target not in known:
        guess = judgement.nearest(level.target, known)
        remedy = f"did you mean {guess}?" if guess else None
        judgement.note(Code.UNKNOWN_NODE, path, remedy=remedy, where=where, node=level.target)
    if level.target_pattern:
        try:
            compile_pattern(level.target_pattern)
        except ValueError as error:
            judgement.note(Code.BAD_VALUE, path, name=where, problem=f"not a regular expression: {error}")


def _check_devices(judgement: Judgement, level: FencingLevel, where: str, path: _Path) -> None:
    resources = judgement.configuration.resources
    if not level.devices:
        judgement.note(Code.MISSING_KEY, path, where=where, key="devices")
    for device in level.devices:
        found = resources.get(device)
        if found is None:
            guess = judgement.nearest(device, resources)
            remedy = f"did you mean {guess}?" if guess else None
            judgement.note(Code.UNKNOWN_RESOURCE, path, remedy=remedy, where=where, id=device)
        elif not isinstance(found, Primitive) or found.agent.standard != "stonith":
            judgement.note(Code.NOT_A_FENCE_DEVICE, path, where=where, id=device)
