"""What agents of a machine say of themselves, to a program that runs no daemon."""

from pathlib import Path

import pytest

from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.agents.surroundings import AgentDirectories
from haclusterd.adapters.agents.survey import survey
from haclusterd.adapters.agents.unit_files import UnitFiles
from haclusterd.model.ids import AgentReference

SHIMS = Path(__file__).parents[4] / "shims"
AGENT = """#!/bin/sh
if [ "$1" = meta-data ]; then
    echo '<resource-agent name="x"><parameters><parameter name="port" required="1"/></parameters></resource-agent>'
    exit 0
fi
{body}
"""


@pytest.mark.parametrize(
    ("body", "expected"), [("corosync-cmapctl", ("corosync-cmapctl",)), ("attrd_updater -n a -U 1", ())]
)
def test_an_agent_that_calls_what_is_not_here_is_known(body: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    program = tmp_path / "example" / "x"
    program.parent.mkdir()
    program.write_text(AGENT.format(body=body))
    program.chmod(0o755)
    directories = AgentDirectories(shipped=tmp_path / "none", search=(tmp_path,), shims=SHIMS)
    found = survey([AgentReference.parse("ocf:example:x")], directories, FenceDirectories(()), UnitFiles(()))
    facts = found["ocf:example:x"]
    assert (facts.missing_tools, facts.parameters["port"].is_required) == (expected, True)
