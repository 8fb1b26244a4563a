"""What our tools print of CIBs that hold what only Pacemaker's clusters have, beside what Pacemaker 2.1.5's print.

The files have what Pacemaker's printed; `RECORD=1` asks its tools again where they are installed (Debian:
pacemaker-cli-utils).
"""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.without_cluster import ask_without_cluster
from haclusterd.commands.tools import tools
from haclusterd.model.requests import Options, Request
from tests.administered_clusters import NOW
from tests.golden.pacemakers_answers import alike
from tests.pacemaker_plans import LOST, member, ran, remote
from tests.unpacked_cibs import block, meta, primitive
from tests.written_cibs import cib, pair

(VERB,) = tools.VERBS
FILES = Path(__file__).parent / "tools"
HEAD = 'have-quorum="1" dc-uuid="1" validate-with="pacemaker-3.9" crm_feature_set="3.16.1" epoch="1" num_updates="0" \
admin_epoch="0"'
PODMAN = 'class="ocf" provider="heartbeat" type="podman"'
CONNECTION = 'class="ocf" provider="pacemaker" type="remote"'
STATEFUL = 'class="ocf" provider="pacemaker" type="Stateful"'
SHOWN, PLANNED = ("", "--output-as=xml"), ("-S", "-S --output-as=xml")
MONITORED = (
    "-1r", "-1rn", "-1rR", "-1rb", "--output-as=xml --include=none,nodes,resources",
    "-1 --resource=u", "-1 --resource=b", "-1n --node=n10",
)  # fmt: skip


def _clone(name: str, inside: str, **options: str) -> str:
    return f'<clone id="{name}">{meta(name, **options)}{inside}</clone>'


def _bundle(name: str, replicas: int, inside: str = "", network: str = 'control-port="3121"') -> str:
    return f'<bundle id="{name}"><podman image="i" replicas="{replicas}"/><network {network}/>{inside}</bundle>'


def _monitored(name: str, on_fail: str) -> str:
    return f'<operations><op id="{name}-m" name="monitor" interval="10s" on-fail="{on_fail}"/></operations>'


NODES = '<node id="1" uname="n1"/><node id="2" uname="n2"/><node id="10" uname="n10"/>'
FOREIGN = cib(
    root=HEAD, properties=pair("stonith-enabled", "false"), nodes=NODES,
    resources=primitive("a")
    + primitive("urgent", meta("urgent", priority="5"))
    + primitive("r1", agent="ocf:pacemaker:remote")
    + primitive("r2", meta("r2", **{"target-role": "Stopped"}), agent="ocf:pacemaker:remote")
    + primitive("vm", meta("vm", **{"remote-node": "g1"}))
    + primitive("vm2", meta("vm2", **{"remote-node": "g2", "target-role": "Stopped"}))
    + _clone("c", primitive("d"), **{"clone-max": "2"})
    + _clone("gone", primitive("e"), **{"target-role": "Stopped"})
    + _clone("off", primitive("f", meta("f", **{"target-role": "Stopped"})))
    + _clone("u", primitive("i"), **{"clone-max": "4", "clone-node-max": "2", "globally-unique": "true"})
    + _clone("pu", primitive("p", agent="ocf:pacemaker:Stateful"), **{"globally-unique": "true", "promotable": "true"})
    + _clone("gu", f'<group id="g">{primitive("m1")}{primitive("m2")}</group>', **{"globally-unique": "true"})
    + f'<group id="h">{meta("h", **{"target-role": "Stopped"})}{primitive("h1")}</group>'
    + _bundle("b", 2, primitive("s", agent="ocf:pacemaker:Stateful"))
    + _bundle("w", 1, network='ip-range-start="10.0.0.9"')
    + "".join(primitive(f"begun{number}") for number in range(1, 4)),
    status=member(
        1,
        ran("a", "start"), ran("r1", "start", agent=CONNECTION), ran("d", "start"), ran("i:0", "start"),
        ran("i:1", "start"), ran("p:0", "monitor=8", agent=STATEFUL), ran("m1:0", "start"),
        ran("b-podman-0", "start", agent=PODMAN), ran("b-0", "start", agent=CONNECTION),
        ran("begun1", "start=193"), ran("begun2", "start", "stop=193"), ran("begun3", "start", "monitor/10000=193"),
        ran("removed", "start"),
    )
    + member(2, ran("vm", "start"), ran("d", "start"), ran("i:2", "start", "monitor/10000=1"),
             ran("p:1", "start", agent=STATEFUL), ran("w-podman-0", "start", agent=PODMAN))
    + member(10, ran("g1", "start", agent=CONNECTION))
    + remote("r1", ran("urgent", "start")) + remote("g1") + remote("b-0", ran("s", "start", agent=STATEFUL)),
)  # fmt: skip
TROUBLED = cib(
    root=HEAD, properties=pair("stonith-enabled", "true"), nodes=NODES,
    resources=primitive("fence", agent="stonith:fence_dummy")
    + primitive("a") + primitive("b", meta("b", **{"multiple-active": "block"}))
    + primitive("blocked", _monitored("blocked", "block"))
    + primitive("ignored", _monitored("ignored", "ignore"))
    + primitive("r1", agent="ocf:pacemaker:remote") + _clone("c", primitive("d")),
    status=member(1, ran("a", "start", "monitor/10000=1"), ran("b", "start"),
                  ran("blocked", "start", "monitor/10000=1"), ran("ignored", "start", "monitor/10000=1"),
                  ran("d", "start", "stop=1"))
    + member(2, ran("b", "start"), ran("d", "start"))
    + member(10, ran("d", "start"), ran("r1", "start", agent=CONNECTION), state=LOST)
    + remote("r1"),
)  # fmt: skip
INSIDE = cib(
    root=HEAD, properties=pair("stonith-enabled", "true") + pair("placement-strategy", "utilization"), nodes=NODES,
    resources=primitive("fence", agent="stonith:fence_dummy")
    + primitive("vm", meta("vm", **{"remote-node": "g1"}) + block("utilization", "vm-u", cpu="1"))
    + primitive("heavy", block("utilization", "heavy-u", cpu="1"))
    + _clone("c", primitive("d"))
    + _clone("old", primitive("n"), **{"clone-max": "2"})
    + _bundle("b", 2, primitive("s", agent="ocf:pacemaker:Stateful"))
    + _bundle("w", 2, network='ip-range-start="10.0.0.9"'),
    status=member(
        1, ran("fence", "start", agent='class="stonith" type="fence_dummy"'), ran("d", "start"),
        ran("n:0", "start"), ran("vm", "start", "monitor/10000=1"), ran("g1", "start", agent=CONNECTION),
        **{"fail-count-vm#monitor_10000": "1"},
    )
    + member(2, ran("b-podman-0", "start", agent=PODMAN), ran("b-0", "start", agent=CONNECTION), ran("d", "monitor=7"))
    + member(10, ran("w-podman-0", "start", "monitor/60000=1", agent=PODMAN), ran("heavy", "start"), state=LOST)
    + remote("g1", ran("d", "start")) + remote("b-0", ran("s", "start", agent=STATEFUL)),
)  # fmt: skip
HELD = cib(
    root=HEAD, properties=pair("stonith-enabled", "false") + pair("symmetric-cluster", "false"), nodes=NODES,
    resources=primitive("a")
    + _clone("off", primitive("d"), **{"target-role": "Stopped", "notify": "true"})
    + _clone("unknown", primitive("e"))
    + f'<bundle id="b">{meta("b", **{"target-role": "Stopped"})}<podman image="i" replicas="2"/></bundle>'
    + primitive("first", meta("first", **{"target-role": "Stopped"})) + primitive("second"),
    constraints='<rsc_order id="o1" first="off" then="a"/><rsc_order id="o2" first="first" then="second"/>'
    + "".join(f'<rsc_location id="l-{name}" rsc="{name}" node="n1" score="5"/>'
              for name in ("a", "off", "first", "second")),
    status=member(1, ran("d", "monitor=7"), ran("a", "start")) + member(2, ran("d", "start"), ran("second", "start"))
    + member(10),
)  # fmt: skip
KEPT = FOREIGN.replace("stonith-enabled", "maintenance-mode").replace('value="false"', 'value="true"', 1)
STATES = {"foreign": FOREIGN, "kept": KEPT, "troubled": TROUBLED, "inside": INSIDE, "held": HELD}


def ours(file: Path, line: str) -> str:
    """Return what our tool answers of a file."""
    tool, *words = shlex.split(line)
    request = Request("", "tool.run", {"tool": tool, "words": words, "text": file.read_text()})
    client = OfflineClient(str(file), "root@n1", lambda: NOW)
    if tool == "crm_simulate":
        answer = ask_without_cluster(VERB, request.arguments, Options())
    else:
        answer = client.call(request, lambda _: None)
    assert isinstance(answer.data, dict), (line, answer.reports)
    return f"{answer.data['out']}{answer.data['err']}[{answer.exit}]\n"


def theirs(file: Path, line: str) -> str:
    """Return what Pacemaker's tool answers of the same file."""
    environment = {"PATH": os.environ["PATH"], "CIB_file": str(file), "TZ": "UTC"}
    done = subprocess.run(shlex.split(line), env=environment, capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}[{done.returncode}]\n"


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_shown_as_pacemakers_tools_show_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, path = Path("FILE"), FILES / f"{name}.txt"
    file.write_text(STATES[name].replace('exec-time="1"', 'exec-time="1" queue-time="0"'))
    simulated = (*SHOWN, *(PLANNED if name in ("troubled", "inside", "held") else ()))
    lines = [f"crm_simulate -x FILE {words}".strip() for words in simulated]
    lines += [f"crm_mon {words}" for words in MONITORED]
    if os.environ.get("RECORD"):
        path.write_text("".join(f"$ {line}\n{alike(theirs(file, line))}\n" for line in lines))
    assert "".join(f"$ {line}\n{alike(ours(file, line))}\n" for line in lines) == path.read_text()
