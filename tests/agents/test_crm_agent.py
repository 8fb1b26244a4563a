"""`crm agent`: what it writes passes its own trials, each trial notices an agent that breaks its rule, its examples and
the how-to can be followed. All trials run in one process of their own, which adopts what agents leave behind."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from haclusterd.cli.command_table import AGENT
from haclusterd.entry_points.free_ports import free_ports

CHECKOUT = Path(__file__).parents[2]
CRM = Path(sys.executable).parent / "crm"
DRIVER = """
import io, json, sys
from contextlib import redirect_stdout, redirect_stderr
from haclusterd.entry_points import crm
for words in json.load(sys.stdin):
    out, sys.argv = io.StringIO(), ["crm", *words]
    with redirect_stdout(out), redirect_stderr(out):
        try:
            status = crm.main()
        except SystemExit as ended:
            status = ended.code
    print(json.dumps([status, out.getvalue()]), flush=True)
"""
PARAMETER = (
    '<parameter name="{0}" {1}><longdesc lang="en">x</longdesc><shortdesc lang="en">x</shortdesc>'
    '<content type="string" {2}/></parameter>'
)
SOUND = """#!/bin/sh
base=$HA_RSCTMP/$OCF_RESOURCE_INSTANCE
runs() { [ -s "$base.pid" ] && kill -0 "$(cat "$base.pid")" 2>/dev/null; }
: "${OCF_RESKEY_program:=sleep}" "${OCF_RESKEY_words:=1000}"
case $1 in
meta-data) cat <<'END'
<resource-agent name="sound"><version>1.1</version><longdesc lang="en">x</longdesc><shortdesc lang="en">x</shortdesc>
<parameters>PARAMETERS</parameters><actions><action name="start" timeout="20s"/><action name="stop" timeout="20s"/>
<action name="monitor" timeout="20s" interval="10s"/><action name="promote" timeout="20s"/>
<action name="demote" timeout="20s"/><action name="notify" timeout="20s"/><action name="reload-agent" timeout="20s"/>
<action name="validate-all" timeout="20s"/><action name="meta-data" timeout="5s"/></actions></resource-agent>
END
;;
start)
    runs && exit 0
    [ -n "$OCF_RESKEY_must" ] || exit 6
    command -v "$OCF_RESKEY_program" >/dev/null || exit 5
    setsid $OCF_RESKEY_program $OCF_RESKEY_words >/dev/null 2>&1 & # start
    echo $! >"$base.pid"
    crm_master -l reboot -v 5 || exit 1 # score
    ;;
stop)
    rm -f "$base.role"
    runs || exit 0 # idle
    kill -9 "$(cat "$base.pid")" # kill
    while runs; do sleep 0.01; done
    rm -f "$base.pid"
    ;;
monitor)
    runs || exit 7 # dead
    [ ! -e "$base.role" ] || exit 8
    ;;
promote) : >"$base.role" ;;
demote) rm -f "$base.role" ;;
notify) : "$OCF_RESKEY_CRM_meta_notify_type" ;; # heard
reload-agent) : ;; # reload
validate-all) : "$OCF_RESKEY_words" ;; # valid
*) exit 3 ;;
esac
exit 0
""".replace(
    "PARAMETERS",
    PARAMETER.format("must", 'required="1"', "") + PARAMETER.format("program", "", 'default="sleep"')
    + PARAMETER.format("words", "", 'default="1000"'),
)
GIVEN = ["must=yes"]
QUICK = SOUND.replace("    crm_master -l reboot -v 5 || exit 1 # score\n", "")
"""For the trial whose bound holds for the start too: it starts no program that a busy machine takes long to load."""
SERVER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
time.sleep(1000)
"""
ON_A_NEW_ONE = {
    "python": ["leak", "promote", "score"],
    "sh": ["odd-instance", "promote", "notify"],
}
"""Which trials a new agent is put through here; all of them take long."""

KILL = 'runs && kill -9 "$(cat "$base.pid")"; while runs; do sleep 0.01; done'
BROKEN: dict[str, tuple[str, str, str, list[str]]] = {
    # trial: what is replaced, by what, what is said of it, further parameters
    "meta-data": ("meta-data) cat", 'meta-data) [ -n "$OCF_RESOURCE_TYPE" ] || exit 1; cat', "environment", []),
    "unknown-action": ("*) exit 3", "*) exit 0", "not 3 (unimplemented)", []),
    "validate": ("validate-all) :", "validate-all) exit 5 :", "5 (not installed)", []),
    "stop-first": ("runs || exit 0 # idle", "runs || exit 7", "of what never ran", []),
    "clean-probe": ("runs || exit 7 # dead", "runs || exit 1", "of what never ran", []),
    "start": ("runs || exit 7 # dead", "exit 7", "7 (not running), not 0 (ok)", []),
    "start-twice": ("    runs && exit 0\n", f"    {KILL}\n", "another process", []),
    "stop-twice": ('    rm -f "$base.pid"\n', '    echo 1 >"$base.pid"\n', "after stop", []),
    "leak": ('"$(cat "$base.pid")" # kill', '"$(cat "$base.pid")"; setsid sleep 1001 &', "still runs", []),
    "killed": ("runs || exit 7 # dead", '[ -e "$base.pid" ] || exit 7', "all its processes were killed", []),
    "main-killed": ("runs || exit 0 # idle", "runs || exit 1", "was killed", []),
    "hung": ("kill -9", "kill -15", "timed out", ["--timeout", "400ms"]),
    "interrupted": ("    setsid", "    setsid sleep 1002 & sleep 0.3; setsid", "still runs", []),
    "port-taken": ("# start", "# it is not asked whether it listens", "is taken: 0 (ok)", []),
    "required": ("|| exit 6", "|| exit 2", "2 (arguments)", []),
    "missing-program": ("|| exit 5", "|| exit 6", "6 (not configured)", []),
    "odd-values": ('validate-all) : "$OCF_RESKEY_words"', 'validate-all) eval ": $OCF_RESKEY_words"', "command", []),
    "odd-instance": ("runs || exit 7 # dead", 'case $base in *:*) exit 1 ;; esac; runs || exit 7', "odd-name", []),
    "reload": ("reload-agent) :", f"reload-agent) {KILL}", "monitor", []),
    "promote": ('stop)\n    rm -f "$base.role"', 'stop)', "8 (promoted), not 0 (ok)", []),
    "score": ("crm_master -l reboot -v 5", "true", "nothing would be promoted", []),
    "notify": ("notify) :", 'notify) [ "$OCF_RESKEY_CRM_meta_notify_operation" != demote ] || exit 1 :', "demote", []),
}
"""For each trial an agent that breaks its rule, and what is said of it."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("agents")
    server = directory / "server.py"
    server.write_text(SERVER)
    return directory


def carried_out(directory: Path, calls: list[list[str]]) -> list[tuple[int, str]]:
    """Carry out calls of crm one after the other, in one process; return exit statuses and output."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], input=json.dumps(calls), cwd=directory, capture_output=True, text=True,
        timeout=110, check=False, env={**os.environ, "HA_RSCTMP": str(directory / "state")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


HELPED = {
    'runs() { [ -s "$base.pid" ] && kill -0 "$(cat "$base.pid")" 2>/dev/null; }': 'runs() { [ -e "$base.pid" ]; }',
    "    runs && exit 0\n": "",
    "setsid $OCF_RESKEY_program $OCF_RESKEY_words": "setsid sleep 0.5",
    '    kill -9 "$(cat "$base.pid")" # kill\n    while runs; do sleep 0.01; done\n': "",
}
"""What makes of it an agent whose resource is a file, and whose start leaves a process that ends by itself."""


def write(directory: Path, name: str, text: str) -> str:
    (directory / name).write_text(text)
    (directory / name).chmod(0o755)
    return f"./{name}"


@pytest.fixture(scope="module")
def trials(place: Path) -> dict[str, tuple[int, str]]:
    """What each trial says of an agent that breaks its rule."""
    port = free_ports("127.0.0.1", 1)[0]
    listens = ["program=python3", f"words=-S -E {place}/server.py {port}"]
    calls = []
    for name, (old, new, _, options) in BROKEN.items():
        assert SOUND.count(old) == 1, name
        path = write(place, f"broken-{name}", (QUICK if name == "hung" else SOUND).replace(old, new))
        given = [*GIVEN, *(listens if name == "port-taken" else [])]
        calls.append(["agent", "test", path, *given, "--only", name, *options])
    return dict(zip(BROKEN, carried_out(place, calls), strict=True))


@pytest.mark.parametrize("name", BROKEN)
def test_a_trial_notices_an_agent_that_breaks_its_rule(name: str, trials: dict[str, tuple[int, str]]) -> None:
    status, printed = trials[name]
    assert f"failed   {name}" in printed
    assert BROKEN[name][2] in " ".join(printed.split())
    assert (status, printed.splitlines()[-1].split()[2:5]) == (1, ["passed=0", "failed=1", "skipped=0"])


def test_an_agent_that_breaks_no_rule_passes(place: Path) -> None:
    only = [f"--only={each}" for each in BROKEN if each != "port-taken"]
    [(status, printed)] = carried_out(place, [
        ["agent", "test", write(place, "sound", SOUND), *GIVEN, *only, "--junit", "sound.xml"],
    ])  # fmt: skip
    assert status == 0, printed
    assert f"passed={len(BROKEN) - 1} failed=0 skipped=0" in printed
    suite = ET.parse(place / "sound.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == (str(len(BROKEN) - 1), "0")
    assert {case.get("name") for case in suite} == {*BROKEN} - {"port-taken"}


def test_what_only_helps_a_start_is_not_taken_for_the_service(tmp_path: Path) -> None:
    """As the processes with which IPaddr2 announces its address."""
    text = SOUND
    for old, new in HELPED.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    only = [f"--only={each}" for each in ("start-twice", "killed", "hung")]
    [(status, printed)] = carried_out(tmp_path, [["agent", "test", write(tmp_path, "helped", text), *GIVEN, *only]])
    assert status == 0, printed
    assert " failed=0 " in printed


def test_parameters_that_rule_promotion_out_are_named(tmp_path: Path) -> None:
    text = SOUND.replace("promote) :", "promote) echo 'ocf-exit-reason:nodes is missing' >&2; exit 6 :")
    text = text.replace("crm_master -l reboot -v 5", "true")
    only = [f"--only={each}" for each in ("promote", "score")]
    [(status, printed)] = carried_out(tmp_path, [["agent", "test", write(tmp_path, "alone", text), *GIVEN, *only]])
    assert (status, printed.splitlines()[-1].split()[2:5]) == (0, ["passed=0", "failed=0", "skipped=2"])
    assert "not promotable, give those that it needs: nodes is missing" in " ".join(printed.split())


@pytest.mark.parametrize("language", ["python", "sh"])
def test_what_is_written_to_begin_with_is_whole(language: str, tmp_path: Path) -> None:
    name = f"new-{language}"
    only = ON_A_NEW_ONE[language]
    made, refused, linted, tried, ran, info = carried_out(tmp_path, [
        ["agent", "new", name, "--language", language, "--promotable"],
        ["agent", "new", name],
        ["agent", "lint", "--strict", f"./{name}"],
        ["agent", "test", f"./{name}", *(f"--only={each}" for each in only)],
        ["agent", "run", f"./{name}", "monitor"],
        ["agent", "info", f"./{name}"],
    ])  # fmt: skip
    assert made[0] == 0
    assert refused[0] != 0
    assert "exists already" in refused[1]
    assert linted[0] == 0, linted[1]
    assert f"passed={len(only)} failed=0 skipped=0" in tried[1], tried[1]
    assert ran[0] == 7
    assert "monitor: 7 (not running)" in ran[1]
    assert "command (string, [sleep])" in info[1]


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("#!/bin/sh\n", 0o644, "it is not executable: chmod 755 {path}"),
        ("#!/no/such/shell\n", 0o755, "its interpreter /no/such/shell is not on this machine"),
        ("#!/bin/sh\r\nexit 0\r\n", 0o755, "its lines end as on Windows, so the kernel finds no "),
        ("", 0o755, "its first line names no interpreter, as #!/bin/sh does"),
        ("#!/bin/sh\n", 0o755, "meta-data: it printed nothing"),
        ("#!/bin/sh\necho Usage\n", 0o755, "meta-data: it printed no XML, but 'Usage'"),
        (
            "#!/bin/sh\necho '<resource-agent'\necho '<x name=y>'\n", 0o755,
            "meta-data: not XML: not well-formed (invalid token), at '<x name=y>'",
        ),
    ],
)  # fmt: skip
def test_why_an_agent_cannot_be_asked_is_said_with_what_to_do(tmp_path: Path, text: str, mode: int, said: str) -> None:
    agent = tmp_path / "agent"
    agent.write_bytes(text.encode())
    agent.chmod(mode)
    calls = [["agent", "info", str(agent)], ["agent", "test", str(agent)], ["agent", "lint", str(agent)]]
    if not said.startswith("meta-data"):
        calls.append(["agent", "run", str(agent), "start"])
    for words, (status, printed) in zip(calls, carried_out(tmp_path, calls), strict=True):
        assert status != 0
        assert said.format(path=agent) in printed, f"{shlex.join(words)}: {printed}"


def test_a_parameter_that_is_misspelled_is_warned_of(tmp_path: Path) -> None:
    agent = write(tmp_path, "sound", SOUND)
    for status, printed in carried_out(tmp_path, [
        ["agent", "run", agent, "validate-all", "must=yes", "wrods=5"],
        ["agent", "env", agent, "start", "must=yes", "wrods=5"],
        ["agent", "test", agent, "must=yes", "wrods=5", "--only=validate"],
    ]):  # fmt: skip
        assert status == 0
        assert "WARNING: PARAMETERS: agent ocf:local:sound has no parameter wrods (did you mean words?)" in printed


def test_long_output_keeps_its_end_where_the_reason_is(tmp_path: Path) -> None:
    lines = "yes 0123456789 | head -c 5000000 >&2"
    agent = write(tmp_path, "loud", f"#!/bin/sh\n{lines}\necho 'ocf-exit-reason:the disk is gone' >&2\nexit 1\n")
    [(status, printed)] = carried_out(tmp_path, [["agent", "run", agent, "start", "--timeout", "20s"]])
    assert (status, "reason: the disk is gone" in printed) == (1, True)
    assert f"[{5_000_000 + len('ocf-exit-reason:the disk is gone.') - (1 << 20)} bytes left out]" in printed


def test_the_next_steps_of_a_promotable_agent_name_the_clone(tmp_path: Path) -> None:
    plain, promotable = carried_out(tmp_path, [["agent", "new", "plain"], ["agent", "new", "one", "--promotable"]])
    assert "crm configure ms" not in plain[1]
    assert "crm configure ms NAME-clone NAME" in promotable[1]


def test_an_action_that_does_not_end(tmp_path: Path, write_script: Callable[[str, str], Path]) -> None:
    agent = write_script("slow", "#!/bin/sh\necho begun\necho 'ocf-exit-reason:not yet' >&2\nsleep 60\n")
    agent_that_is_killed = write_script("gone", "#!/bin/sh\nkill -9 $$\n")
    slow, gone = carried_out(tmp_path, [
        ["agent", "run", str(agent), "start", "--timeout", "200ms"],
        ["agent", "run", str(agent_that_is_killed), "start", "--timeout", "5s"],
    ])  # fmt: skip
    assert slow[0] == 124
    assert "start: timed out" in slow[1]
    assert "begun" in slow[1]
    assert gone[0] == 1
    assert "ended by SIGKILL" in gone[1]


def test_the_examples_are_carried_out(tmp_path: Path) -> None:
    calls: list[list[str]] = [["agent", "new", "my-database", "--promotable", "--language", "sh"]]
    for command in AGENT.commands:
        for example in command.examples:
            words = shlex.split(example)[1:]
            if command.name == "new":
                words[2] = f"example-{len(calls)}"
            calls.append(words)
        if command.name == "new":
            calls.append(["agent", "new", "my-service", "--language", "sh"])
    for words, (status, printed) in zip(calls, carried_out(tmp_path, calls), strict=True):
        assert status == 0, f"{shlex.join(words)}: {printed}"


def test_the_how_to_can_be_followed(tmp_path: Path) -> None:
    text = (CHECKOUT / "docs" / "howto" / "add-resource-agent.md").read_text()
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    assert "crm agent new" in script
    assert "crm agent test" in script
    environment = {
        **os.environ, "PATH": f"{CRM.parent}:{os.environ['PATH']}", "HA_RSCTMP": str(tmp_path / "state"),
    }  # fmt: skip
    done = subprocess.run(
        ["sh", "-e"], input=script, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "trials.xml").exists()
