"""Real daemons: Pacemaker's sample agent, unmodified, sees what happens; the DC is killed in between.

Nothing is lost, nothing comes twice without its mark, and an agent that hangs delays nobody else.
"""

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes

SAMPLE = Path("/usr/share/pacemaker/alerts/alert_file.sh.sample")
OWN = '#!/bin/sh\necho "$CRM_alert_node_sequence $CRM_alert_repeated $CRM_alert_kind" >>"$CRM_alert_recipient"\n'


def installed(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def rows(log: Path) -> list[tuple[int, bool, str]]:
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [(int(number), repeated == "true", kind) for number, repeated, kind in lines]


def lines_of(log: Path) -> str:
    return log.read_text() if log.exists() else ""


def kill_dc(running: Scenario) -> None:
    dc = running.dc()
    running.brain(dc).send_signal(signal.SIGKILL)
    running.restart_brain(dc)
    running.until("all nodes online", lambda: running.online() == set(running.cluster.names))
    running.settle()


@pytest.mark.skipif(not SAMPLE.is_file(), reason="Pacemaker's sample agents are not installed")
def test_a_failure_a_move_a_fencing_and_an_attribute(running: Scenario, tmp_path: Path) -> None:
    sample = tmp_path / "alert_file.sh"
    shutil.copy(SAMPLE, sample)
    sample.chmod(0o755)
    own = installed(tmp_path / "own", OWN)
    stuck = installed(tmp_path / "stuck", "#!/bin/sh\nexec sleep 1000\n")
    seen, numbers = tmp_path / "seen", tmp_path / "numbers"
    running.configure(
        f"alert hangs {stuck} meta timeout=20s to nobody",
        f"alert sample {sample} select nodes fencing resources attributes {{ level }} to {seen}",
        f"alert numbers {own} select nodes fencing resources attributes to {numbers}",
    )

    def sees(text: str) -> None:
        running.until(f"the alert {text!r}", lambda: text in lines_of(seen))

    (tested,) = running.must("alert.test", name="numbers")["tests"]
    assert (tested["is_done"], tested["exit_code"], tested["problem"]) == (True, 0, "")
    holder = running.holder()
    assert holder is not None
    running.must("node.attribute", node=holder, action="set", name="level", value="7", lifetime="reboot")
    sees(f"Attribute 'level' on node '{holder}' was updated to '7'")
    (pid,) = running.service_pids(holder)


    os.kill(pid, signal.SIGKILL)
    sees(f"Resource operation 'monitor (1000)' for 'svc' on '{holder}': not running")
    kill_dc(running)
    running.until("the service to run", lambda: running.holder() is not None)
    source = running.holder()
    target = next(name for name in running.cluster.names if name != source)
    running.must("resource.move", resource="svc", node=target)
    sees(f"Resource operation 'start' for 'svc' on '{target}': ok")
    kill_dc(running)
    victim = next(name for name in running.cluster.names if name != running.dc())
    running.cluster.power_off(victim)
    sees(f"Node '{victim}' is now 'lost'")
    sees(f"of {victim} by ")
    kill_survivor = running.dc()
    assert kill_survivor != victim
    running.must("node.attribute", node=kill_survivor, action="set", name="level", value="8", lifetime="reboot")
    sees(f"Attribute 'level' on node '{kill_survivor}' was updated to '8'")
    found = rows(numbers)
    first = list(dict.fromkeys(number for number, _, _ in found))
    assert first == list(range(first[0], first[0] + len(first)))
    unmarked = [number for number, repeated, _ in found if not repeated]
    assert len(unmarked) == len(set(unmarked))
    assert {kind for _, _, kind in found} == {"node", "fencing", "resource", "attribute"}
