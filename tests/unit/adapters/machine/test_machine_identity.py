"""What names a machine, read from a directory that stands for the system's root."""

from pathlib import Path

import pytest

from haclusterd.adapters.machine.machine_identity import machine_marks

DMI = "sys/class/dmi/id/product_uuid"
MACHINE_ID = "etc/machine-id"
UUID = "4c4c4544-0042-3510-8052-b4c04f4b3133"
ID = "3d1219c7c4c5404aaa1f6d2a48adfda4"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ()),
        ({DMI: UUID.upper() + "\n", MACHINE_ID: ID + "\n"}, (f"DMI product_uuid {UUID}", f"machine-id {ID}")),
        ({DMI: "00000000-0000-0000-0000-000000000000\n", MACHINE_ID: ID}, (f"machine-id {ID}",)),
        ({DMI: "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF\n"}, ()),
        ({DMI: "\n"}, ()),
        ({"sys/hypervisor/uuid": UUID}, (f"Xen uuid {UUID}",)),
        ({"proc/device-tree/vm,uuid": UUID + "\0", MACHINE_ID: ID},
         (f"device tree vm,uuid {UUID}", f"machine-id {ID}")),
        ({"proc/device-tree/serial-number": "10000000a3b1c2d3\0"}, ("device tree serial-number 10000000a3b1c2d3",)),
        ({MACHINE_ID: "uninitialized\n"}, ()),
        ({MACHINE_ID: ""}, ()),
        ({MACHINE_ID: ID, "run/machine-id": ID}, ()),
    ],
    ids=[
        "nothing", "firmware before the disk", "firmware without a UUID", "firmware with an unset UUID", "empty", "xen",
        "power", "arm", "first boot", "empty machine-id", "an id for this boot alone",
    ],
)  # fmt: skip
def test_what_names_the_machine(tmp_path: Path, files: dict[str, str], expected: tuple[str, ...]) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert tuple(map(str, machine_marks(None, tmp_path))) == expected


def test_a_configured_file_stands_first_and_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / MACHINE_ID).write_text(ID)
    own = tmp_path / "own"
    own.write_text("Pod-1\n")
    assert [str(each) for each in machine_marks(own, tmp_path)] == ["machine-id-file Pod-1", f"machine-id {ID}"]


def test_a_configured_file_that_names_nothing_is_an_error(tmp_path: Path) -> None:
    own = tmp_path / "own"
    with pytest.raises(FileNotFoundError, match="own"):
        machine_marks(own, tmp_path)
    own.write_text("\n")
    with pytest.raises(OSError, match=r"machine-id-file names no machine: it is empty.*own"):
        machine_marks(own, tmp_path)
