"""`apply` for changes of the configuration that are larger than one log entry.

Invariant: staged parts take a bounded share of the CIB, and have no effect before all of them are there. Old parts
whose change never came are dropped when another part is staged.
"""

from collections.abc import Mapping
from typing import Final

from haclusterd.cib.apply_configuration import change_configuration
from haclusterd.cib.changes import RefusalCode
from haclusterd.cib.commands import ActivateStaged, ChangeConfiguration, StageChange
from haclusterd.cib.staging import digest_of
from haclusterd.cib.verdict import Entry, Verdict, accept, refuse
from haclusterd.model.cluster import Cib, StagedPart
from haclusterd.model.records import replace
from haclusterd.wire.schemas import CodecError

STAGED_CHARACTERS_MAX: Final = 8 * 1024 * 1024
"""Maximum size of all parts together."""
STAGED_AGE_MS_MAX: Final = 60_000


def stage_change(cib: Cib, command: StageChange, entry: Entry) -> Verdict:
    """Store a part; the preceding parts must be there."""
    kept = {key: part for key, part in cib.staged.items() if abs(entry.at - part.at) <= STAGED_AGE_MS_MAX}
    if command.number and _key(command.transaction, command.number - 1) not in kept:
        return refuse(cib, RefusalCode.STAGED_INCOMPLETE, f"part {command.number - 1} of the change is not there")
    if sum(len(part.data) for part in kept.values()) + len(command.data) > STAGED_CHARACTERS_MAX:
        return refuse(cib, RefusalCode.STAGED_INCOMPLETE, "too much is staged at the same time")
    kept[_key(command.transaction, command.number)] = StagedPart(entry.at, command.data)
    return accept(replace(cib, staged=kept))


def activate_staged(cib: Cib, command: ActivateStaged, entry: Entry) -> Verdict:
    """Make the staged change, if it is complete, undamaged, and fits the present version."""
    parts = staged_parts(cib, command)
    if len(parts) != command.parts:
        text = f"{len(parts)} of {command.parts} parts of the change are there; the others came too late or never"
        return refuse(cib, RefusalCode.STAGED_INCOMPLETE, text)
    if digest_of(parts) != command.digest:
        return refuse(cib, RefusalCode.UNREADABLE, "the staged change is not what was proposed")
    try:
        edits = entry.put_together(parts)
    except CodecError as error:
        return refuse(cib, RefusalCode.UNREADABLE, str(error))
    whole = ChangeConfiguration(command.expected_epoch, edits, command.author, command.reason)
    verdict = change_configuration(cib, whole, entry)
    if verdict.refusal is not None:
        return verdict
    return replace(verdict, cib=replace(verdict.cib, staged=_without(cib.staged, command.transaction)))


def staged_parts(cib: Cib, command: ActivateStaged) -> list[str]:
    """Return the parts of a change that are there, in order."""
    found = [cib.staged.get(_key(command.transaction, number)) for number in range(min(command.parts, len(cib.staged)))]
    return [part.data for part in found if part is not None]


def _key(transaction: str, number: int) -> str:
    return f"{transaction}/{number}"


def _without(staged: Mapping[str, StagedPart], transaction: str) -> dict[str, StagedPart]:
    return {key: part for key, part in staged.items() if key.rpartition("/")[0] != transaction}
