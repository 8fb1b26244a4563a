"""`crm agent lint`: every rule has an agent that breaks it, and an agent that is well made breaks none."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from haclusterd.adapters.agent_checks.finding import Finding
from haclusterd.adapters.agent_checks.lint import lint
from haclusterd.adapters.agent_checks.metadata_rules import metadata_findings
from haclusterd.adapters.agent_checks.one_action import Program
from haclusterd.adapters.agent_checks.text_rules import text_findings
from haclusterd.adapters.agents.surroundings import AgentDirectories, Surroundings
from haclusterd.model.ids import AgentReference

WELL_MADE = """<resource-agent name="web" version="1.0"><version>1.1</version><longdesc lang="en">Serves.</longdesc>
<shortdesc lang="en">A server</shortdesc><parameters>
<parameter name="port" required="0" unique="1" reloadable="1"><longdesc lang="en">Where.</longdesc>
<shortdesc lang="en">Port</shortdesc><content type="integer" default="80"/></parameter>
<parameter name="password" private="1"><longdesc lang="en">Its password.</longdesc>
<shortdesc lang="en">Password</shortdesc><content type="string"/></parameter>
<parameter name="mode"><longdesc lang="en">How.</longdesc><shortdesc lang="en">Mode</shortdesc>
<content type="select" default="fast"><option value="fast"/><option value="safe"/></content></parameter>
</parameters><actions><action name="start" timeout="20s"/><action name="stop" timeout="20s"/>
<action name="monitor" timeout="10s" interval="10s" depth="0"/><action name="reload-agent" timeout="20s"/>
<action name="validate-all" timeout="20s"/><action name="meta-data" timeout="5s"/></actions></resource-agent>"""

PROGRAM = """#!/bin/sh
# [[ is only spoken of here, as is pgrep -f
meta_data() {
    cat <<END
function if [[ $OCF_RESKEY_port == 80 ]]
END
}
case "$1" in
start) serve --port "$OCF_RESKEY_port" --password "$OCF_RESKEY_password" --mode "$OCF_RESKEY_mode" ;;
stop | monitor | reload-agent | validate-all) exit 0 ;;
meta-data) meta_data ;;
*) exit 3 ;;
esac
"""
PARAMETERS = ["port", "password", "mode"]
ACTIONS = ["start", "stop", "monitor", "reload-agent", "validate-all", "meta-data"]


def codes(findings: list[Finding]) -> set[str]:
    return {each.code for each in findings}


def of_metadata(old: str = "", new: str = "") -> set[str]:
    assert not old or WELL_MADE.count(old) == 1
    return codes(list(metadata_findings(ET.fromstring(WELL_MADE.replace(old, new) if old else WELL_MADE), "web")))


def of_text(tmp_path: Path, text: str) -> list[Finding]:
    path = tmp_path / "web"
    path.write_text(text)
    return list(text_findings(path, text, PARAMETERS, ACTIONS))


def test_nothing_is_wrong_with_what_is_well_made(tmp_path: Path) -> None:
    assert of_metadata() == set()
    assert of_text(tmp_path, PROGRAM) == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('<resource-agent name="web"', '<resource-agent name="wob"', "name"),
        ("<version>1.1</version>", "<version/>", "no-version"),
        ('<longdesc lang="en">Serves.</longdesc>', "", "no-description"),
        ('<shortdesc lang="en">Port</shortdesc>', "", "no-description"),
        ('name="mode"', 'name="port"', "twice"),
        ('name="mode"', 'name="my mode"', "parameter-name"),
        ('unique="1"', 'unique="often"', "schema"),
        (' private="1"', "", "not-private"),
        ('type="integer"', 'type="number"', "schema"),
        ('default="80"', 'default="http"', "default"),
        ('default="fast"', 'default="slow"', "default"),
        ('required="0"', 'required="1"', "required-with-default"),
        ('<option value="fast"/><option value="safe"/>', "", "schema"),
        ('<action name="stop" timeout="20s"/>', "", "no-action"),
        ('<action name="validate-all" timeout="20s"/>', "", "no-action"),
        ('<action name="start" timeout="20s"/>', '<action name="start"/>', "no-timeout"),
        ('<action name="start" timeout="20s"/>', '<action name="start" timeout="soon"/>', "no-timeout"),
        (' interval="10s"', "", "no-interval"),
        ('<action name="reload-agent" timeout="20s"/>', "", "reload"),
        (' reloadable="1"', "", "reload"),
        ('<action name="reload-agent" timeout="20s"/>', '<action name="dance" timeout="1s"/>', "unknown-action"),
        ('<action name="reload-agent" timeout="20s"/>', '<action name="promote" timeout="1s"/>', "no-role"),
        ('<action name="reload-agent" timeout="20s"/>', '<action name="migrate_to" timeout="1s"/>', "no-action"),
    ],
)
def test_meta_data(old: str, new: str, code: str) -> None:
    assert code in of_metadata(old, new)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('[[ -n "$1" ]] && exit 0', "bashism"),
        ('[ "$1" == start ] && exit 0', "bashism"),
        ("function stop_it { true; }", "bashism"),
        ("list=(a b)", "bashism"),
        ('echo "${1//a/b}"', "bashism"),
        ("serve &>/dev/null", "bashism"),
        ("source /etc/default/web", "bashism"),
        ("((count++))", "bashism"),
        ("IFS=$'\\n'", "bashism"),
        ("exit 255", "exit-code"),
        ("return 77", "exit-code"),
        ('[ -x /usr/sbin/serve ] || exit 6', "not-configured"),
        ('pgrep -f "serve $OCF_RESKEY_port"', "by-name"),
        ("ps ax | grep serve", "by-name"),
        ("/usr/sbin/crm_attribute --delete", "tool-path"),
        ("echo 1 >/tmp/serve.pid", "temporary"),
        ('serve "$OCF_RESKEY_colour"', "undeclared"),
        ("if true; then", "syntax"),
    ],
)
def test_the_program(tmp_path: Path, line: str, code: str) -> None:
    found = [each for each in of_text(tmp_path, PROGRAM.replace("case", f"{line}\ncase", 1)) if each.code == code]
    assert found
    assert code == "syntax" or found[0].line == 8


def test_what_is_declared_and_not_used(tmp_path: Path) -> None:
    text = PROGRAM.replace(' --mode "$OCF_RESKEY_mode"', "").replace("| reload-agent", "")
    assert codes(of_text(tmp_path, text)) == {"unused", "not-handled"}


def test_a_bash_agent_may_use_bash(tmp_path: Path) -> None:
    text = PROGRAM.replace("#!/bin/sh", "#!/bin/bash").replace("case", '[[ -n "$1" ]] || exit 3\ncase', 1)
    assert of_text(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("echo no interpreter\n", "no-interpreter"),
        ("#!/bin/sh\r\nexit 0\r\n", "line-ends"),
        ("#!/usr/bin/env python3\nif True\n", "syntax"),
    ],
)
def test_the_file(tmp_path: Path, text: str, code: str) -> None:
    assert code in codes(of_text(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "mode", "code"),
    [
        ("#!/bin/sh\nexit 3\n", 0o644, "not-executable"),
        ("#!/no/such/shell\n", 0o755, "not-executable"),
        ("#!/bin/sh\nexit 1\n", 0o755, "meta-data"),
        ("#!/bin/sh\n[ $1 = meta-data ] && echo '<a>'; exit 0\n", 0o755, "meta-data"),
        ("#!/bin/sh\nexit 0\n", 0o755, "unknown-action"),
        ("#!/bin/sh\ncheck_binary no-such-program-here\nexit 3\n", 0o755, "missing-program"),
        ("#!/bin/sh\ncorosync-cmapctl\nexit 3\n", 0o755, "missing-tool"),
    ],
)
def test_what_an_agent_answers(tmp_path: Path, text: str, mode: int, code: str) -> None:
    path = tmp_path / "web"
    path.write_text(text)
    path.chmod(mode)
    (tmp_path / "shims").mkdir()
    surroundings = Surroundings("n1", AgentDirectories(shims=tmp_path / "shims"), tmp_path)
    assert code in codes(lint(Program(AgentReference("ocf", "acme", "web"), path, surroundings, "web")))
