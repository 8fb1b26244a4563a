"""Tools of Pacemaker in an agent's program: called, only spoken of, here and not here."""

from pathlib import Path

import pytest

from haclusterd.adapters.agents.tools import missing_tools

SHIMS = Path(__file__).parents[4] / "shims"
METADATA = """meta_data() { cat <<END
<?xml version="1.0"?><resource-agent name="x"><longdesc>see corosync-cfgtool</longdesc></resource-agent>
END
}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("corosync-cmapctl | grep -q x", ("corosync-cmapctl",)),
        ('CMAP="${HA_SBIN_DIR}/corosync-cmapctl"', ("corosync-cmapctl",)),
        ("  # as corosync-cmapctl shows it\n", ()),
        (METADATA, ()),
        (METADATA + "corosync-cfgtool -s; corosync-quorumtool", ("corosync-cfgtool", "corosync-quorumtool")),
        ("print_corosync-cmapctl", ()),
        ("crm_mon_no_validation -1 $XMLOPT; cibadmin -Q; crm_resource -W -r a; stonith_admin -L", ()),
        ("crm_attribute -l reboot; crm_master -v 5; crm_node -n; attrd_updater -U 1", ()),
    ],
)
def test_tools_that_an_agent_calls(text: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text(f"#!/bin/sh\n{text}\n")
    assert missing_tools(program, SHIMS) == expected


def test_a_tool_that_is_here_is_not_missing(tmp_path: Path) -> None:
    program, shims = tmp_path / "agent", tmp_path / "shims"
    shims.mkdir()
    program.write_text("crm_mon -1X; cibadmin -Q")
    (shims / "crm_mon").touch()
    assert missing_tools(program, shims) == ("cibadmin",)


def test_what_cannot_be_read_names_nothing(tmp_path: Path) -> None:
    assert missing_tools(tmp_path / "none", SHIMS) == ()


@pytest.mark.parametrize("name", sorted(each.name for each in (SHIMS.parent / "resource_agents").iterdir()))
def test_our_own_agents_need_nothing_else(name: str) -> None:
    assert missing_tools(SHIMS.parent / "resource_agents" / name, SHIMS) == ()
