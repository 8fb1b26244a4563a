"""What real clusters configured is held whole: written and read again it is the same, and follows the schema."""

import shutil
import subprocess
from pathlib import Path

import pytest

from haclusterd.formats.cib_xml.document import read_cib, write_configuration
from tests.conformance.public_cases import absence, cases

needs_cases = pytest.mark.skipif(bool(absence()), reason=absence() or "")
VERIFY = shutil.which("crm_verify")


@needs_cases
def test_every_public_configuration_is_held_whole() -> None:
    different = []
    for case in cases():
        held = read_cib(case.xml, case.name).cib.configuration
        again = read_cib(write_configuration(held), case.name).cib.configuration
        if again != held or list(again.resources) != list(held.resources):
            different.append(case.name)
    assert different == []


@needs_cases
@pytest.mark.skipif(VERIFY is None, reason="crm_verify is not installed")
def test_what_is_written_follows_pacemakers_schema(tmp_path: Path) -> None:
    assert VERIFY is not None
    faults = []
    for number, case in enumerate(cases()):
        if number % 8:
            continue
        path = tmp_path / f"{case.name}.xml"
        path.write_text(write_configuration(read_cib(case.xml, case.name).cib.configuration))
        done = subprocess.run([VERIFY, "-V", "-x", path], capture_output=True, text=True, timeout=60, check=False)
        faults += [f"{case.name}: {line}" for line in done.stderr.splitlines() if "validity error" in line]
    assert faults == []
