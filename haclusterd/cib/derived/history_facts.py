"""The facts by which the history remembers an applied entry: one for each change, with its author and reason.

The facts of an entry become one link of the history's chain, equal on every node; so nothing here may depend on
anything but the entry and its changes.
"""

import json
from collections.abc import Iterator
from typing import Final

from haclusterd.cib import commands
from haclusterd.cib.changes import NO_FACTS, Change, ChangeKind
from haclusterd.model.cluster import HistoryMark
from haclusterd.model.history_chain import Fact, chained

Detail = dict[str, str]
"""Keys of a row's data beside its text: `author`, `reason`, `heard` (how long ago each voter heard a lost node),
`version` (of the configuration), `incident`, and the names of `changes.Facts`."""
_encoder: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def facts_of(envelope: commands.Envelope | None, changes: tuple[Change, ...]) -> tuple[Fact, ...]:
    """Return a fact for each change, in their order."""
    if not changes:
        return ()
    if changes[0].kind is ChangeKind.REFUSED and changes[0].node is None:
        envelope = None  # Some node cannot read it, so its time must be unknown to all.
    at = envelope.at if envelope is not None else 0
    command = envelope.command if envelope is not None else None
    return tuple(
        (at, str(change.kind), change.node, change.resource, _written(detail))
        for change, detail in zip(changes, _details(command, changes), strict=True)
    )


def marked(mark: HistoryMark, index: int, facts: tuple[Fact, ...]) -> HistoryMark:
    """Return the history's mark after an entry."""
    return HistoryMark(chained(mark.digest, index, facts), mark.forgotten, mark.forgotten_digest)


def _written(detail: Detail) -> str:
    return _encoder.encode(detail) if detail else ""


def _details(command: commands.Command | None, changes: tuple[Change, ...]) -> Iterator[Detail]:
    """Yield the detail of each change; for a refused command, whose content may be anything, only the refusal."""
    if any(change.kind is ChangeKind.REFUSED for change in changes):
        yield from ({} for _ in changes)
        return
    shared = {} if command is None else _wanted(command)
    for change in changes:
        own = dict(change.facts.said()) if change.facts is not NO_FACTS else {}
        yield {**shared, **own, "incident": change.incident} if change.incident else {**shared, **own}


def _wanted(command: commands.Command) -> Detail:
    """Return the author and reason of a command, if it has them."""
    match command:
        case commands.ChangeConfiguration() | commands.ActivateStaged():
            version = str(command.expected_epoch + 1)
            return _known(author=command.author, reason=command.reason, version=version)
        case (
            commands.ChangeMembers()
            | commands.Retire()
            | commands.RequestCertificate()
            | commands.ForgetFencings()
            | commands.RequestFence()
            | commands.SetTicket()
            | commands.AddApiToken()
            | commands.RevokeApiToken()
            | commands.RestartResource()
            | commands.RequestLeader()
            | commands.CleanUp()
            | commands.SetTransientAttribute()
            | commands.RequestAlertTest()
            | commands.SteerDevice()
            | commands.BeginRecovery()
            | commands.EndDeviceStorm()
            | commands.PutSecret()
            | commands.DeleteSecret()
            | commands.RotateSecrets()
            | commands.NoteSecretShown()
        ):
            return _known(author=command.author, reason=command.reason)
        case commands.Lost():
            heard = " ".join(f"{node}:{age}ms" for node, age in sorted(command.ages_ms.items()))
            return _known(reason=command.reason, heard=heard)
        case commands.IssueFence():
            return _known(reason=command.order.reason)
        case commands.VoidOrders() | commands.Forget():
            return _known(reason=command.reason)
        case _:
            return {}


def _known(**words: str) -> Detail:
    return {name: word for name, word in words.items() if word}
