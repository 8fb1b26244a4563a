"""The owner of a data directory.

A voter that lost its disk but kept its name would vote and acknowledge a second time for what it promised before
(0002-store.md, S11: amnesia). So set-up writes an identity file once, the first start marks it as started, and from
then on a missing journal is a reason to refuse. A directory without an identity was wiped or never set up: it is
refused too, and the node returns under a new name.

The identity also records which machine it is on. On another machine it is taken for a copy until an administrator says
that it is not (docs/design/safety.md §5, "A copied disk"): nothing else distinguishes a copy from a restarted node.

It must never create an identity by itself.
"""

import json
from collections.abc import Sequence

from haclusterd.model.ids import NodeName
from haclusterd.model.machine_marks import MachineMark
from haclusterd.model.records import dataclass, replace
from haclusterd.ports.files import Files
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError

IDENTITY_NAME = "identity"
FORMAT = 1

REJOIN = (
    "Do not start this node under its old name with an empty directory: what it promised the others is forgotten. "
    "Remove it, on another node: crm cluster remove NAME. Then make a new node of this machine: move /etc/haclusterd "
    "and /var/lib/haclusterd away, and: crm cluster join, with a new token and another name."
)
"""The remedy for a member that has lost what it must remember (docs/design/0002-store.md)."""

ANOTHER_MACHINE = (
    "{path} belongs to the machine with {known}, and this one has {found}. If this is a copy of that machine's disk, "
    "do not start it under its name: where that machine runs, or is started again, services run twice and destroy "
    "data. To make a node of its own of this machine: move /etc/haclusterd and /var/lib/haclusterd away, and: "
    "crm cluster join, with a new token and another name. If this is {node} itself, in other hardware or in the place "
    "of a machine that is off for good: crm cluster this-is {node}"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity in a data directory."""

    cluster: str
    node: NodeName
    is_started: bool
    """Whether the store was ever opened here: from then on its journal must exist."""
    refused: str = ""
    """Why this data must not be used any more; empty: it may be."""
    machine: MachineMark | None = None
    """The mark of the machine on which it was last opened; None: no mark could be read, or an older version of the
    program has written it."""


def create_identity(files: Files, cluster: str, node: NodeName) -> None:
    """Write the identity of a new member at set-up; raises StoreRefusedError when the directory has one already."""
    if files.read(IDENTITY_NAME) is not None:
        path = files.describe(IDENTITY_NAME)
        raise StoreRefusedError(f"{path} exists: this data directory belongs to a node already")
    _write(files, Identity(cluster, node, is_started=False))


def require_identity(files: Files, cluster: str, node: NodeName) -> Identity:
    """Return the identity; raises StoreRefusedError: missing or another's; StoreDamagedError: unreadable."""
    data = files.read(IDENTITY_NAME)
    path = files.describe(IDENTITY_NAME)
    if data is None:
        raise StoreRefusedError(
            f"{path} is missing: the data directory was never set up, or it was emptied. "
            f"A new member begins with: haclusterd --initialize. If it was a member before: {REJOIN}"
        )
    identity = _read(data, path)
    if identity.cluster != cluster:
        problem = f"{path} is of cluster {identity.cluster}, this node is configured for cluster {cluster}"
        raise StoreRefusedError(problem)
    if identity.node != node:
        raise StoreRefusedError(f"{path} is of node {identity.node}, this node is configured as {node}")
    if identity.refused:
        raise StoreDamagedError(f"{path}: this node ended for good: {identity.refused}. {REJOIN}")
    return identity


def require_machine(files: Files, identity: Identity, found: Sequence[MachineMark]) -> None:
    """Raise StoreRefusedError when the directory was used on another machine.

    `found` are all marks of this machine: hardware may show more or fewer than when the directory was last opened.
    """
    if identity.machine is None or identity.machine in found:
        return
    same_kind = [str(each) for each in found if each.kind == identity.machine.kind]
    shown = same_kind or [str(each) for each in found] or ["nothing that names it"]
    raise StoreRefusedError(
        ANOTHER_MACHINE.format(
            path=files.describe(IDENTITY_NAME), known=identity.machine, found=shown[0], node=identity.node
        )
    )


def adopt_machine(files: Files, identity: Identity, found: Sequence[MachineMark]) -> None:
    """Record durably that the directory belongs to this machine, as an administrator has said; raises OSError."""
    _write(files, replace(identity, machine=found[0] if found else None))


def mark_refused(files: Files, identity: Identity, why: str) -> None:
    """Record durably why this data must not be used any more; raises OSError."""
    _write(files, replace(identity, refused=why))


def mark_started(files: Files, identity: Identity, found: Sequence[MachineMark] = ()) -> None:
    """Record durably that a journal exists from now on, and the most reliable mark of this machine."""
    started = replace(identity, is_started=True, machine=found[0] if found else identity.machine)
    if started != identity:
        _write(files, started)


def _write(files: Files, identity: Identity) -> None:
    document = {
        "format": FORMAT,
        "cluster": identity.cluster,
        "node": identity.node,
        "state": "started" if identity.is_started else "new",
    }
    if identity.refused:
        document["refused"] = identity.refused
    if identity.machine is not None:
        document["machine"] = {"kind": identity.machine.kind, "value": identity.machine.value}
    files.replace(IDENTITY_NAME, (json.dumps(document) + "\n").encode())


def _read(data: bytes, path: str) -> Identity:
    try:
        document = json.loads(data)
        if document["format"] != FORMAT or document["state"] not in ("new", "started"):
            raise ValueError("unknown format or state")
        machine = document.get("machine")
        return Identity(
            cluster=str(document["cluster"]),
            node=NodeName(str(document["node"])),
            is_started=document["state"] == "started",
            refused=str(document.get("refused", "")),
            machine=MachineMark(str(machine["kind"]), str(machine["value"])) if machine is not None else None,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamagedError(f"{path}: unreadable ({error}). {REJOIN}") from None
