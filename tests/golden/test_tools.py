"""What our tools print, beside what Pacemaker 2.1.5's own tools print of the same CIB.

The files have what Pacemaker's printed. Where its tools are installed (Debian: pacemaker-cli-utils), `RECORD=1` runs
them on the text that `cibadmin --query` answers here and writes the files again. What differs on purpose stands in
`_alike`.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.cluster import NodeState
from tests.administered_clusters import NOW, Cluster
from tests.golden.busy_cluster import busy

FILES = Path(__file__).parent / "tools"
CALLS = """
crm_mon -1 --output-as=xml
crm_mon -1
crm_mon -1 -r
crm_mon -1rnAf
crm_mon -1 -o
crm_mon -1 -t
crm_mon -1 -L -c
crm_mon -1 -D
crm_mon -1 -Q
crm_mon -1 -b
crm_mon -1 -b -r
crm_mon -1 -b -n -r
crm_mon -1X
crm_mon -1 --include=none,nodes
crm_mon -1 --exclude=summary,nodes -r
crm_resource -l
crm_resource -L
crm_resource -W -r web
crm_resource -W -r pgc
crm_resource -W -r off
crm_resource -W -r nothing
crm_resource -q -r db
crm_resource -Q -r db -z -g cpu
crm_resource -r web -g command
crm_resource -r web -g nothing
crm_resource -r off -m --get-parameter target-role
crm_resource --list-operations -N n1 -r web
crm_failcount -r web -N n1 -G
crm_failcount -r web -N n1 -n monitor -I 10s -G -q
crm_failcount -r db -N n1 -G
crm_attribute -N n3 -l reboot -n pingd -G
crm_attribute -N n3 -l reboot -n pingd -G -q
crm_attribute -N n3 -l reboot -n nothing -G
crm_attribute -N n3 -l reboot -n nothing -G -q -d 7
crm_attribute -N n9 -l reboot -n pingd -G
crm_attribute -t crm_config -n nothing -G
crm_attribute --output-as=xml -N n3 -l reboot -n pingd -G
crm_standby -N n1 -G
crm_ticket -l
crm_ticket -t gold -G granted
crm_ticket -t nothing -l
crm_ticket -t gold -r
cibadmin -Q
cibadmin -Q -o crm_config
cibadmin -Q -o nodes
cibadmin -Q -n
cibadmin -Q --xpath "//node_state[@crmd='online']//nvpair[@name='pingd']"
cibadmin -Q --xpath "//primitive[@id='web' and @class='ocf']"
cibadmin -Q --xpath "//nvpair[@name='pcmk_host_list']" -e
cibadmin -Q -A /cib/configuration/nodes/node
"""


def one_lost() -> Cluster:
    """Return the same cluster when a node is lost."""
    cluster = busy()
    cluster.state("n2", NodeState.LOST)
    return cluster


STATES = {"busy": busy, "one-lost": one_lost}


def ours(cluster: Cluster, line: str) -> str:
    """Return what our tool answers."""
    tool, *words = shlex.split(line)
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    outcome = registry.run("tool.run", {"tool": tool, "words": words, "node": "n1"}, context)
    assert isinstance(outcome.data, dict), outcome.reports
    return f"{outcome.data['out']}{outcome.data['err']}[{outcome.exit_status}]\n"


def theirs(cluster: Cluster, line: str, directory: Path) -> str:
    """Return what Pacemaker's tool answers on our text."""
    text = directory / "cib.xml"
    text.write_text(ours(cluster, "cibadmin -Q").removesuffix("[0]\n"))
    environment = {"PATH": os.environ["PATH"], "CIB_file": str(text), "TZ": "UTC"}
    done = subprocess.run(shlex.split(line), env=environment, capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}[{done.returncode}]\n"


def _alike(text: str) -> str:
    """Replace what differs on purpose: who runs the cluster, and the time of the question."""
    for pattern, instead in (
        (r'<stack type="[^"]*"', '<stack type="..."'), (r"Stack: \S+", "Stack: ..."),
        (r'(current_dc present="true" version=)"[^"]*"', r'\1"..."'), (r"\(version [^)]*\)", "(version ...)"),
        (r'<last_update time="[^"]*"', '<last_update time="..."'), (r"Last updated: .*", "Last updated: ..."),
        # It escapes twice.
        (r'exitreason="[^"]*"', 'exitreason="..."'),
        # What its library prints when it asks no cluster but a file.
        (r"Call (cib_query )?failed( \(-6\))?:", "Call failed:"),
    ):  # fmt: skip
        text = re.sub(pattern, instead, text)
    return text


@pytest.mark.parametrize("name", STATES)
def test_the_tools_print_what_pacemakers_print(name: str, tmp_path: Path) -> None:
    cluster, path = STATES[name](), FILES / f"{name}.txt"
    lines = CALLS.strip().splitlines()
    if os.environ.get("RECORD"):
        path.write_text("".join(f"$ {line}\n{_alike(theirs(cluster, line, tmp_path))}\n" for line in lines))
    assert "".join(f"$ {line}\n{_alike(ours(cluster, line))}\n" for line in lines) == path.read_text()
