"""By what a data directory knows the machine that it belongs to."""

import json

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.model.machine_marks import MachineMark
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.identity import (
    IDENTITY_NAME,
    adopt_machine,
    create_identity,
    mark_refused,
    mark_started,
    require_identity,
    require_machine,
)
from tests.simulation.store_world import CLUSTER, SimulatedDisk

N1 = NodeName("n1")
FIRMWARE, OTHERS_FIRMWARE = MachineMark("DMI product_uuid", "a"), MachineMark("DMI product_uuid", "b")
DISK = MachineMark("machine-id", "d")


def used_on(*marks: MachineMark) -> SimulatedDisk:
    files = SimulatedDisk()
    create_identity(files, CLUSTER, N1)
    mark_started(files, require_identity(files, CLUSTER, N1), marks)
    return files


@pytest.mark.parametrize(
    ("before", "found", "is_refused"),
    [
        ((FIRMWARE, DISK), (FIRMWARE, DISK), False),
        ((FIRMWARE, DISK), (FIRMWARE,), False),
        ((FIRMWARE, DISK), (OTHERS_FIRMWARE, DISK), True),
        ((FIRMWARE, DISK), (DISK,), True),
        ((FIRMWARE, DISK), (), True),
        ((DISK,), (FIRMWARE, DISK), False),
        ((DISK,), (FIRMWARE,), True),
        ((), (FIRMWARE,), False),
        ((), (), False),
    ],
    ids=[
        "the same machine", "a new machine-id", "a copy of the disk", "no firmware any more", "nothing any more",
        "firmware that is found later", "another disk", "written by an older version", "nothing known",
    ],
)  # fmt: skip
def test_who_may_use_a_directory(
    before: tuple[MachineMark, ...], found: tuple[MachineMark, ...], *, is_refused: bool
) -> None:
    files = used_on(*before)
    identity = require_identity(files, CLUSTER, N1)
    if is_refused:
        with pytest.raises(StoreRefusedError, match=f"belongs to the machine with {before[0]}.*crm cluster this-is n1"):
            require_machine(files, identity, found)
    else:
        require_machine(files, identity, found)


def test_a_refusal_names_what_was_found_of_the_same_kind() -> None:
    files = used_on(FIRMWARE)
    with pytest.raises(StoreRefusedError, match="and this one has DMI product_uuid b"):
        require_machine(files, require_identity(files, CLUSTER, N1), (DISK, OTHERS_FIRMWARE))
    with pytest.raises(StoreRefusedError, match="and this one has nothing that names it"):
        require_machine(files, require_identity(files, CLUSTER, N1), ())


def test_an_older_directory_is_given_its_machine_at_the_next_start_and_the_surest_mark_is_kept() -> None:
    files = used_on()
    assert "machine" not in json.loads(files.read(IDENTITY_NAME) or b"")
    mark_started(files, require_identity(files, CLUSTER, N1), (DISK,))
    assert require_identity(files, CLUSTER, N1).machine == DISK
    mark_started(files, require_identity(files, CLUSTER, N1), (FIRMWARE, DISK))
    assert require_identity(files, CLUSTER, N1).machine == FIRMWARE


def test_a_new_directory_belongs_to_the_machine_that_starts_it_first() -> None:
    files = SimulatedDisk()
    create_identity(files, CLUSTER, N1)
    identity = require_identity(files, CLUSTER, N1)
    require_machine(files, identity, (OTHERS_FIRMWARE,))
    mark_started(files, identity, (OTHERS_FIRMWARE,))
    with pytest.raises(StoreRefusedError):
        require_machine(files, require_identity(files, CLUSTER, N1), (FIRMWARE,))


def test_a_person_gives_a_directory_to_another_machine() -> None:
    files = used_on(FIRMWARE)
    adopt_machine(files, require_identity(files, CLUSTER, N1), (OTHERS_FIRMWARE, DISK))
    identity = require_identity(files, CLUSTER, N1)
    assert (identity.machine, identity.is_started) == (OTHERS_FIRMWARE, True)
    require_machine(files, identity, (OTHERS_FIRMWARE,))
    with pytest.raises(StoreRefusedError):
        require_machine(files, identity, (FIRMWARE,))


def test_data_that_is_refused_for_good_stays_so_on_another_machine() -> None:
    files = used_on(FIRMWARE)
    mark_refused(files, require_identity(files, CLUSTER, N1), "it is behind")
    with pytest.raises(StoreDamagedError, match="it is behind"):
        require_identity(files, CLUSTER, N1)
    assert json.loads(files.read(IDENTITY_NAME) or b"")["machine"] == {"kind": FIRMWARE.kind, "value": "a"}


@pytest.mark.parametrize("machine", ['"a"', "{}", "[1]"])
def test_a_machine_that_cannot_be_read_is_damage(machine: str) -> None:
    files = used_on(FIRMWARE)
    document = json.loads(files.read(IDENTITY_NAME) or b"")
    text = json.dumps({**document, "machine": json.loads(machine)})
    files.replace(IDENTITY_NAME, text.encode())
    with pytest.raises(StoreDamagedError, match="unreadable"):
        require_identity(files, CLUSTER, N1)
