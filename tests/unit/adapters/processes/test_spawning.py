"""A program starts beside this process with what it was given, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from haclusterd.adapters.processes.spawning import spawn

WITHOUT_STANDARD_DESCRIPTORS = """
import os
from haclusterd.adapters.processes.spawning import spawn
errors = os.dup(2)
for descriptor in (0, 1, 2):
    os.close(descriptor)
output = os.open({output!r}, os.O_WRONLY | os.O_CREAT)
readable, writable = os.pipe()
os.write(writable, b"through a pipe")
os.close(writable)
pid = spawn(["/bin/cat"], {{}}, stdin=readable, stdout=output, stderr=errors)
os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_descriptors_of_a_process_that_began_without_standard_ones_do_not_collide(tmp_path: Path) -> None:
    """They are 0, 1 and 2 then, in another order."""
    output = tmp_path / "output"
    script = WITHOUT_STANDARD_DESCRIPTORS.format(output=str(output))
    subprocess.run([sys.executable, "-c", script], check=True)
    assert output.read_text() == "through a pipe"


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["/bin/true", "a\0b"], {}),
        (["/bin/true"], {"A": "x\0y"}),
        (["/bin/true"], {"A=B": "x"}),
        (["/bin/true"], {"": "x"}),
    ],
)
def test_what_no_exec_can_carry_is_refused(arguments: list[str], environment: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"null byte|variable name"):
        spawn(arguments, environment, stdin=None, stdout=1, stderr=2)


def test_what_cannot_be_executed_is_reported_by_errno_and_path(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.write_text("")
    with pytest.raises(PermissionError, match="notes"):
        spawn([str(notes)], {}, stdin=None, stdout=1, stderr=2)


