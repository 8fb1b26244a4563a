"""`crm migrate check`: what it says of a Pacemaker's CIB, and its exit status."""

import hashlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from haclusterd.adapters.agents.ocf import METADATA_TIMEOUT_MS
from haclusterd.entry_points import crm
from tests.written_cibs import MEMBER, NO_FENCING, cib, pair

AGENT = """#!/bin/sh
[ "$1" = meta-data ] || exit 3
echo '<?xml version="1.0"?><resource-agent name="Web" version="1"><version>1.1</version><parameters>
<parameter name="port" required="1"><content type="integer"/></parameter></parameters><actions>
<action name="monitor" timeout="20s" interval="10s"/></actions></resource-agent>'
"""
WEB = (
    '<primitive id="web" class="ocf" provider="acme" type="Web"><instance_attributes id="web-p">'
    '<nvpair id="web-port" name="port" value="80"/></instance_attributes><operations>'
    '<op id="web-m" name="monitor" interval="10s" timeout="20s"/></operations></primitive>'
)
PREFERS = '<rsc_location id="here" rsc="web" node="{node}" score="100"/>'


def status(*, is_failed: bool = False) -> str:
    """n1 and n2 are online; web runs on n1, or its start has failed there."""
    code = 1 if is_failed else 0
    digest = hashlib.md5(b' <parameters port="80"/>\n', usedforsecurity=False).hexdigest()
    record = (
        f'<lrm_rsc_op id="web_last_0" operation="start" interval="0" call-id="3" rc-code="{code}" op-status="0" '
        f'transition-key="4:1:0:u" op-digest="{digest}"/>'
    )
    lrm = (
        '<lrm id="1"><lrm_resources><lrm_resource id="web" class="ocf" provider="acme" type="Web">'
        f"{record}</lrm_resource></lrm_resources></lrm>"
    )
    return f'<node_state id="1" uname="n1" {MEMBER}>{lrm}</node_state><node_state id="2" uname="n2" {MEMBER}/>'


@pytest.fixture(name="machine")
def make_machine(tmp_path: Path) -> Path:
    """A directory of agents with one agent, and one of programs."""
    agent = tmp_path / "agents" / "acme" / "Web"
    agent.parent.mkdir(parents=True)
    agent.write_text(AGENT)
    agent.chmod(0o755)
    (tmp_path / "bin").mkdir()
    return tmp_path


def surroundings(machine: Path) -> dict[str, str]:
    return {"PATH": f"{machine / 'bin'}:/usr/bin:/bin", "OCF_RA_PATH": str(machine / "agents")}


def started(machine: Path, *words: str, text: str) -> "subprocess.CompletedProcess[str]":
    """Run `crm` as a process."""
    return subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.crm", *words], input=text, capture_output=True, text=True,
        env=os.environ | surroundings(machine), timeout=60, check=False, cwd=Path(__file__).parents[3],
    )  # fmt: skip


def check(machine: Path, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    """Run `crm` in this process, which costs a tenth of a new one; what `-` would be is in a file."""
    file = machine / "saved.xml"
    file.write_text(text)
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as changed:
        for name, value in surroundings(machine).items():
            changed.setenv(name, value)
        changed.setattr(sys, "stdout", out)
        changed.setattr(sys, "stderr", err)
        changed.setattr(sys, "argv", ["crm", *(str(file) if word == "-" else word for word in words)])
        status = crm.main()
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def document(machine: Path, text: str) -> tuple[int, dict[str, object]]:
    found = check(machine, "-o", "json", "migrate", "check", "-", text=text)
    return found.returncode, json.loads(found.stdout)


def test_what_loads_and_stays_where_it_is_may_come_in(machine: Path) -> None:
    text = cib(properties=NO_FENCING, resources=WEB, constraints=PREFERS.format(node="n1"), status=status())
    found = started(machine, "migrate", "check", "-", text=text)
    assert (found.returncode, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert lines[0] == "-: 2 nodes, 1 resource, 1 constraint"
    assert "  * nothing stops, and nothing moves" in "\n".join(lines)
    assert lines[2].split() == ["cannot", "be", "loaded", "0"], "first comes what there is, in numbers"
    assert lines[-3].startswith("YES: it may come in as it is. But first know: fencing is disabled")
    assert lines[-1].endswith("docs/howto/come-from-pacemaker.md")


def test_what_the_first_plan_would_interrupt_is_named(machine: Path) -> None:
    text = cib(properties=NO_FENCING, resources=WEB, constraints=PREFERS.format(node="n2"), status=status())
    code, found = document(machine, text)
    assert (code, found["may_come_in"]) == (10, False)
    assert found["objections"] == [
        "the first plan interrupts 1 resource or node, as Pacemaker would at that moment: check again when the cluster "
        "is at rest"
    ]
    assert found["plan"]["interrupted"] == ["move web on n1: moves from n1 to n2: n2 is preferred"]


def test_everything_that_is_amiss_is_said_at_once(machine: Path) -> None:
    other = '<primitive id="db" class="ocf" provider="acme" type="Database"/>'
    unit = '<primitive id="unit" class="systemd" type="nobody-has-this"/>'
    nameless = WEB.replace('id="web', 'id="bare').replace('name="port"', 'name="prot"')
    text = cib(properties=pair("stonith-enabled", "true"), resources=WEB + other + unit + nameless, status=status())
    code, found = document(machine, text)
    assert code == 10
    assert [each["agent"] for each in found["missing_agents"]] == ["ocf:acme:Database", "systemd:nobody-has-this"]
    refused = " | ".join(each["message"] for each in found["refused"])
    assert "bare: agent ocf:acme:Web requires parameter port" in refused
    assert {each["message"] for each in found["unfenced"]} >= {"NO FAILOVER for n1: no fencing device"}


def test_a_rule_on_the_ids_of_nodes_is_judged_by_these_ids(machine: Path) -> None:
    def judged(number: int) -> object:
        rule = (
            '<rsc_location id="l" rsc="web"><rule id="r" score="-INFINITY"><expression id="e" attribute="#id" '
            f'operation="ne" value="{number}"/></rule></rsc_location>'
        )
        text = cib(properties=NO_FENCING, resources=WEB, constraints=rule, status=status())
        return document(machine, text)[1]["plan"]["interrupted"]

    assert judged(1) == []
    assert judged(2), "web runs on the node of id 1, and may not"


def test_fencing_is_not_judged_where_something_cannot_be_loaded(machine: Path) -> None:
    text = cib(properties=NO_FENCING, resources=WEB + '<bundle id="b"><podman image="i"/></bundle>')
    shown = check(machine, "migrate", "check", "-", text=text)
    assert shown.returncode == 10
    assert "every node is covered" not in shown.stdout


@pytest.mark.parametrize("body", ["exec cat /dev/zero", "sleep 100 &", "kill -9 $$", "echo '<x>'"])
def test_an_agent_that_misbehaves_is_installed_and_nothing_is_known_of_it(machine: Path, body: str) -> None:
    agent = machine / "agents" / "acme" / "Web"
    agent.write_text(f"#!/bin/sh\n{body}\n")
    begun_at = time.monotonic()
    _, found = document(machine, cib(properties=NO_FENCING, resources=WEB))
    assert found["missing_agents"] == []
    assert time.monotonic() - begun_at < METADATA_TIMEOUT_MS / 1000, "none of them is waited for until it is ended"


def test_a_file_that_cannot_be_executed_is_no_agent(machine: Path) -> None:
    (machine / "agents" / "acme" / "Web").chmod(0o644)
    code, found = document(machine, cib(properties=NO_FENCING, resources=WEB))
    assert (code, [each["agent"] for each in found["missing_agents"]]) == (10, ["ocf:acme:Web"])


def test_what_pacemaker_would_interrupt_too_is_distinguished_from_what_it_would_not(machine: Path) -> None:
    text = cib(properties=NO_FENCING, resources=WEB, constraints=PREFERS.format(node="n2"), status=status())
    shown = " ".join(check(machine, "migrate", "check", "-", text=text).stdout.split())
    assert "n2 is preferred (so does Pacemaker)" in shown
    assert "as Pacemaker would at that moment: check again when the cluster is at rest" in shown


def test_access_control_comes_in_as_it_is(machine: Path) -> None:
    role = '<acl_role id="a"><acl_permission id="p" kind="read" xpath="/cib"/></acl_role>'
    lists = f'<acls>{role}<acl_target id="hacluster"><role id="a"/></acl_target></acls>'
    text = cib(properties=NO_FENCING + pair("enable-acl", "true"), resources=WEB, more=lists, status=status())
    code, found = document(machine, text)
    assert (code, found["refused"], found["changed"]) == (0, [], [])


def test_a_file_without_a_status_compares_nothing(machine: Path) -> None:
    code, found = document(machine, cib(properties=NO_FENCING, resources=WEB))
    assert (code, found["plan"]["is_known"]) == (0, False)
    shown = check(machine, "migrate", "check", "-", text=cib(properties=NO_FENCING, resources=WEB)).stdout
    assert "does not say what runs where" in shown


def test_the_running_pacemaker_is_asked_by_its_own_tool(machine: Path) -> None:
    tool = machine / "bin" / "cibadmin"
    tool.write_text(
        f"#!/bin/sh\n[ \"$*\" = --query ] && cat <<'END'\n{cib(properties=NO_FENCING, resources=WEB)}\nEND\n"
    )
    tool.chmod(0o755)
    found = check(machine, "migrate", "check", "--live")
    assert (found.returncode, found.stdout.splitlines()[0]) == (
        0, "the running Pacemaker: 2 nodes, 1 resource, 0 constraints",
    )  # fmt: skip
    tool.write_text(
        "#!/bin/sh\necho 'Could not connect to the CIB: Transport endpoint is not connected' >&2\nexit 102\n"
    )
    refused = check(machine, "migrate", "check", "--live")
    assert (refused.returncode, refused.stdout) == (66, "")
    assert "Transport endpoint is not connected" in refused.stderr
    assert "cibadmin --query > cib.xml" in refused.stderr


@pytest.mark.parametrize(
    ("words", "text", "status_", "message"),
    [
        (("nowhere.xml",), "", 66, "cannot read nowhere.xml: No such file or directory"),
        (("-",), "<html/>", 65, "<html> is not a <cib>"),
        (("-",), "<cib", 65, "saved.xml:1:1: this is no well-formed XML"),
        ((), "", 2, "name a file, or --live"),
        (("-", "--live"), "", 2, "name a file or --live, not both"),
    ],
)
def test_what_is_no_cib(machine: Path, words: tuple[str, ...], text: str, status_: int, message: str) -> None:
    found = check(machine, "migrate", "check", *words, text=text)
    assert (found.returncode, found.stdout) == (status_, ""), found.stderr
    assert message in found.stderr
