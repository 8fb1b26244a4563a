"""The walls between the rooms hold (docs/ARCHITECTURE.md), and a breach is caught."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "haclusterd"


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", program, "--no-cache"]
    return subprocess.run(command, check=False, cwd=directory, capture_output=True, text=True, timeout=100)


def test_the_walls_hold() -> None:
    done = lint_imports(CHECKOUT)
    assert done.returncode == 0, done.stdout + done.stderr


BREACHES = [
    ("scheduler", "import time", "No I/O, no clock, no chance below runtime"),
    ("machines", "import asyncio", "No I/O, no clock, no chance below runtime"),
    ("cib", "from random import choice", "No I/O, no clock, no chance below runtime"),
    ("raft", "import logging", "No I/O, no clock, no chance below runtime"),
    ("raft", "import pysyncobj", "the Raft library has one importer"),
    ("raft", "from haclusterd.adapters.raft import thread", "Storeys"),
    ("raft", "from haclusterd.cib import codec", "Raft does not know what its entries mean"),
    ("runtime", "from haclusterd.raft import journal", "The log is reached through the port of the store"),
    ("wire", "import socket", "No I/O, no clock, no chance below runtime"),
    ("wire", "from haclusterd.cib import commands", "Storeys"),
    ("runtime", "import pysyncobj", "the Raft library has one importer"),
    ("adapters", "import pysyncobj", "the Raft library has one importer"),
    ("model", "from haclusterd.cib import codec", "Storeys"),
    ("machines", "from haclusterd.adapters import event_log", "Storeys"),
    ("adapters", "from haclusterd.machines.executing import executor", "Adapters know the ports, not the brains"),
    ("commands", "from haclusterd.ports import store", "Verbs decide, they do not reach out"),
    ("cli", "from haclusterd.machines.executing import executor", "The shell speaks commands, not machines"),
    ("runtime", "import cryptography", "Certificates are made in one place"),
    ("agents", "from haclusterd.model import ids", "The agent SDK stands alone"),
    ("adapters/machine", "from haclusterd.adapters.raft import thread", "Rooms of the adapters"),
    ("scheduler/model", "from haclusterd.scheduler.assign import assign", "Rooms of the scheduler"),
    ("formats/cib_xml", "from haclusterd.formats.policy import reader", "Rooms of the formats"),
    ("commands/verify", "from haclusterd.commands.node import node", "Rooms of the verbs"),
    ("machines/executing", "from haclusterd.machines.transitions import transition", "Rooms of the machines"),
    ("runtime/members", "from haclusterd.runtime.requests import dialogue", "Rooms of the runtime"),
    ("simulator/hosts", "from haclusterd.simulator.checks import checkers", "Rooms of the simulator"),
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said, by wall, of a copy of the package in which every breach was made."""
    copy = tmp_path_factory.mktemp("breached")
    shutil.copytree(PACKAGE, copy / "haclusterd", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", copy)
    for number, (room, line, _) in enumerate(BREACHES):
        (copy / "haclusterd" / room / f"breach_{number}.py").write_text(f'"""A breach."""\n\n{line}\n')
    done = lint_imports(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    parts = re.split(r"^(.+)\n-{4,}$", done.stdout.partition("Broken contracts")[2], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("number", range(len(BREACHES)), ids=[f"{room}: {line}" for room, line, _ in BREACHES])
def test_a_breach_is_caught(reports: dict[str, str], number: int) -> None:
    room, _, wall = BREACHES[number]
    (report,) = [text for heading, text in reports.items() if heading.startswith(wall)]
    assert f"haclusterd.{room.replace('/', '.')}.breach_{number} " in report


def test_every_room_is_on_a_storey() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    text = (CHECKOUT / "docs" / "ARCHITECTURE.md").read_text()
    assert not [room for room in sorted(rooms) if f"`{room}/`" not in text]


FILES_MAX = 30
"""Of a package without rooms; `model/` has one file for each noun."""


def test_a_large_package_has_rooms_that_say_what_belongs_there() -> None:
    packages = [path.parent for path in PACKAGE.rglob("__init__.py")]
    sizes = {str(each.relative_to(PACKAGE)): len(list(each.glob("*.py"))) for each in packages}
    assert [name for name, size in sizes.items() if size > FILES_MAX and name != "model"] == []
    assert [str(each) for each in packages if not (each / "__init__.py").read_text().startswith('"""')] == []


def test_what_the_architecture_names_is_there() -> None:
    text = (CHECKOUT / "docs" / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text))
    rooms = [PACKAGE, PACKAGE / "scheduler"]
    assert len(named) > 40
    assert [name for name in sorted(named) if not any((room / name).exists() for room in rooms)] == []
