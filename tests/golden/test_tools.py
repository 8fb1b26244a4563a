"""What our tools print, beside what Pacemaker 2.1.5's own tools print of the same CIB.

The files have what Pacemaker's printed. Where its tools are installed (Debian: pacemaker-cli-utils), `RECORD=1` runs
them on the text that `cibadmin --query` answers here and writes the files again. What differs on purpose stands in
`alike`.
"""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from haclusterd.cli.offline import OfflineClient
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.cluster import NodeState, TicketState
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExitCode
from haclusterd.model.records import replace
from haclusterd.model.requests import Request
from tests.administered_clusters import NOW, Cluster, formed
from tests.golden.busy_cluster import busy
from tests.golden.pacemakers_answers import alike

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
crm_mon -1 -R
crm_mon -1 -R -r
crm_mon -1 -R -n -r
crm_mon -1 -L
crm_mon -1 --neg-locations=ban-w
crm_mon -1 --output-as=xml -n
crm_mon -1 --output-as=xml -n -r
crm_mon -1 --output-as=xml -D
crm_mon -1 --output-as=xml -Q
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
cibadmin -Q -o acls
cibadmin -Q -o alerts
cibadmin -Q -A "//nvpair|//op" -n
cibadmin -Q -A "//primitive[last()]" -n
cibadmin -Q -A "//primitive[1]|//group" -e
cibadmin -u
cibadmin -E
cibadmin -M -o resources -X '<primitive id="nothing"/>'
cibadmin -R -o resources -X '<primitive id="nothing"/>'
cibadmin -M -o constraints -X '<rsc_location id="nothing" rsc="web" node="n1" score="5"/>'
"""

MONITOR_CALLS = """
crm_mon -1 -Lban-p
crm_mon -1Lban-p
crm_mon -1 -Lr
crm_mon -1 -R -A -f -o -L
crm_mon -1 -m0
crm_mon -1 -m3
crm_mon -1 --fence-history=9
crm_mon -1 --output-to=-
crm_mon -1 -Afo --node=n1
crm_mon -1 -n -r --node=n1
crm_mon -1 -r --node=n9 -Afoc
crm_mon -1 -n -r --node=n9
crm_mon -1 --output-as=xml --node=n3
crm_mon -1 --output-as=xml --node=n9
crm_mon -1 --output-as=xml --node=n2 -n -r
crm_mon -1 -rfoL --resource=web
crm_mon -1 -nr --resource=web
crm_mon -1 -rfo --resource=pg
crm_mon -1 -rfo --resource=pg:0
crm_mon -1 -rfo --resource=g:0
crm_mon -1 -rfo --resource=a
crm_mon -1 -rfo --resource=nothing
crm_mon -1 -rb --resource=off
crm_mon -1 --node=n2 --resource=web
crm_mon -1 --output-as=xml --resource=web
crm_mon -1 --output-as=xml --resource=a
crm_mon -1 --output-as=xml --resource=nothing -n
crm_mon -1 --include=all
crm_mon -1 --include=options
crm_mon -1 --exclude=none
crm_mon -1 --exclude=all
crm_mon -1 --exclude=dc
crm_mon -1 --exclude=counts,times
crm_mon -1 --include=none,stack
crm_mon -1 -s
crm_mon -s --output-as=html
crm_mon -s --output-as=xml
cibadmin -Q -o resources -e
cibadmin -Q -A //primitive -n -e
cibadmin -Q -A "//nvpair[@name='cpu']|//operations" -n -e
cibadmin -Q -t 5 -s -l
crm_mon -1 --include=none,options
crm_mon -1 --include=none,maint-mode
crm_mon -1 --include=none,fencing
crm_mon -1 --include=none,bans:ban-w
crm_mon -1 -D --include=options
crm_mon -1 -I bans:ban-p
crm_mon -1 -I failcounts -U resources
crm_mon -1 --output-as=xml --exclude=summary
crm_mon -1 --output-as=xml --exclude=times,options
crm_mon -1 --output-as=xml --include=none,failcounts
crm_mon -1 --output-as=xml --include=none,bans:ban-w
crm_mon -1 --output-as=xml --include=none,summary
crm_resource -O
crm_resource -o -r web
crm_resource -M -r db -N n2
crm_resource -M -r gc
crm_resource -D -r off
crm_resource -D -r off -t group
crm_resource --bogus
crm_resource -r
crmadmin -N
crmadmin -N -B
crmadmin -N --output-as=xml
crmadmin --nodes=guest
cibadmin -Q -A "//primitive[position()=2]" -n
cibadmin -Q -A "//resources/*[position()<3]" -n
cibadmin -Q -A "//group[count(primitive)>1]" -n
cibadmin -Q -A "//primitive[count(operations/op)=1]" -e
cibadmin -Q -A "//lrm_rsc_op[@rc-code>0]" -e
cibadmin -Q -e
cibadmin -D -A "//rsc_location" -d
crm_attribute -t tickets -n gold -G
crm_resource -W -r gc
crm_resource -W -r ec
crm_resource -W -r pg:0
crm_resource -W -r pg:1
crm_resource -W -r pg:7
crm_resource -W -r a:1
crm_resource -W -r g:0
crm_resource -W -r off -Q
crm_resource -W -r pg:0 --output-as=xml
crm_resource -g command -r pg:0
crm_resource -e
crm_resource -p x -r web
crm_resource -B -r off
crm_attribute -N n3 -l reboot -G
crm_attribute -N n3 -l reboot -G -q
crm_attribute -N n3 -l reboot -G --output-as=xml
crm_attribute -N n3 -l reboot -P '^p|a' -G
crm_attribute -N n3 -l reboot -P fail-count -G -q
crm_attribute -P 'stonith.*' -G
crm_attribute -P x -N n3 -v 7
crm_simulate -L
crm_simulate -LQ
crm_simulate -L -A
crm_simulate -L -c
crm_simulate -L --output-as=xml
crm_verify
crm_verify --output-as=xml
cibadmin --empty
cibadmin -Q -A "//primitive/@id" -e
cibadmin -Q -A "//primitive[@id='web']/parent::*" -e
cibadmin -Q -A "//primitive[@id='a']/ancestor::clone" -e
cibadmin -Q -A "//primitive[@id='a']/ancestor-or-self::*" -e
cibadmin -Q -A "//group/child::primitive" -e
cibadmin -Q -A "//group/descendant::nvpair" -e
cibadmin -Q -A "//primitive[@id='address']/following-sibling::primitive" -e
cibadmin -Q -A "//primitive[@id='web']/preceding-sibling::*" -e
cibadmin -Q -A "//primitive[@id='web']/ancestor::clone" -e
cibadmin -Q -A "//nvpair[@name='cpu']/@value"
cibadmin -Q -A "//nvpair[@name='cpu']/@nothing"
cibadmin -Q -A "//primitive[self::primitive]" -e
cibadmin -Q -A "//*[name()='group']" -e
cibadmin -Q -A "//*[local-name()='group']" -e
cibadmin -Q -A "(//primitive)[1]" -e
cibadmin -Q -A "(//primitive)[last()]" -e
cibadmin -Q -A "(//primitive)[99]" -e
cibadmin -Q -A "(//primitive[@id='web'])[1]" -e
cibadmin -Q -A /cib
cibadmin -Q -A /cib/@epoch
cibadmin -5
cibadmin --md5-sum-versioned
cibadmin -5 -X '<a b="1"> <b c="&lt;&amp;"/> </a>'
cibadmin -6 -X '<a b="1"> <b c="&lt;&amp;"/> </a>'
cibadmin -5 -X '<cib crm_feature_set="3.16.1" epoch="1" update-user="x" cib-last-written="y"><configuration/></cib>'
cibadmin -6 -X '<cib crm_feature_set="3.16.1" epoch="1" update-user="x" cib-last-written="y"><configuration/></cib>'
crm_resource --digests -r web -N n1
crm_resource --digests -r web
crm_resource --digests -r db -N n2
crm_resource --digests -r web -N n1 --output-as=xml
crm_resource --digests -r site -N n1
crm_resource --digests -r pgc -N n1
crm_resource --digests -r pg -N n1 --output-as=xml
crm_resource --digests -r power -N n3
crm_resource --digests -r nothing -N n1
crm_resource --digests -N n1
cibadmin -M -A "//nothing" -X '<nvpair id="x"/>'
cibadmin -C -X '<rsc_location id="nothing" rsc="web" node="n1" score="5"/>'
"""


def one_lost() -> Cluster:
    """Return the same cluster when a node is lost."""
    cluster = busy()
    cluster.state("n2", NodeState.LOST)
    return cluster


def related() -> Cluster:
    """Return a cluster whose resources are related to each other, and kept from running in all ways."""
    cluster = formed()
    cluster.configure(RELATED)
    for name in ["a n1", "b n1", "p n1", "p n2", "q n2", "q2 n2", "u n3", "s n1"]:
        cluster.run(*name.split())
    cluster.record("p", "n1", "promote")
    tickets = {
        "gold": TicketState("gold", is_granted=True, last_granted=WallTime(NOW - 60_000)),
        "iron": TicketState("iron", is_standby=True, attributes={"owner": "x", "expires": "17"}),
    }
    version = replace(cluster.cib.version, author="root@n1", at=WallTime(NOW - 300_000))
    status = replace(cluster.cib.status, tickets=tickets)
    cluster.cib = replace(cluster.cib, version=version, status=status)
    return cluster


def planned() -> Cluster:
    """Return a cluster in which there is much to do, and nothing under way."""
    cluster = formed()
    cluster.configure(PLANNED)
    for name in ["power n3", "a n1", "b n1", "p n1", "p n2", "q n2", "q2 n2", "e n1", "e n3", "m n3", "s n1"]:
        cluster.run(*name.split())
    cluster.record("p", "n1", "promote")
    cluster.record("e", "n3", "monitor", ExitCode.ERROR, interval_ms=10_000)
    cluster.count_failure("e", "n3", "monitor", 10_000, 1)
    cluster.put(replace(cluster.node("n3"), attributes={"standby": "on"}))
    tickets = {"gold": TicketState("gold", is_granted=True, last_granted=WallTime(NOW - 60_000))}
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, tickets=tickets))
    return cluster


PLANNED = """
primitive power stonith:fence_local params pcmk_host_list="n1 n2 n3" nodes_dir=/nodes op monitor interval=60s
primitive a ocf:haclusterd:dummy op monitor interval=10s
primitive b ocf:haclusterd:dummy op monitor interval=10s
primitive m ocf:haclusterd:dummy op monitor interval=10s
primitive p ocf:haclusterd:stateful op monitor interval=10s role=Promoted op monitor interval=11s role=Unpromoted
clone pc p meta promotable=true notify=true
primitive q ocf:haclusterd:dummy op monitor interval=10s
primitive q2 ocf:haclusterd:dummy op monitor interval=10s
group g q q2
primitive e ocf:haclusterd:dummy op monitor interval=10s
clone ec e meta interleave=true
primitive s ocf:haclusterd:dummy op monitor interval=10s
primitive off ocf:haclusterd:dummy meta target-role=Stopped
primitive late ocf:haclusterd:dummy
primitive after-off ocf:haclusterd:dummy
colocation ab inf: a b
order b-then-a Mandatory: b a
order off-then Mandatory: off after-off
order m-then-s Mandatory: m s
location la late -inf: n2
rsc_ticket tk gold: s loss-policy=stop
"""
SUPPOSED = ("", "-d n1", "-d n2 -d n3", "-f n1", "-f n2", "-u n3", "-r gold", "-b gold", "-e gold", "-g gold")
INJECTED = ("a_monitor_10000@n1=7", "b_monitor_10000@n1=1", "p_monitor_10000@n2=8", "q_monitor_10000@n2=5",
            "a_start_0@n1=1", "late_monitor_0@n2=7", "a_monitor_0@n2=5")  # fmt: skip
FAILED = ("a_start_0@n2=1", "m_stop_0@n3=1", "a_stop_0@n1=5", "off_monitor_0@n3=0", "off_monitor_0@n3=1",
          "off_monitor_0@n3=7", "e_start_0@n2=1", "e_stop_0@n3=1", "nothing_start_0@n9=1")  # fmt: skip
PLANNED_CALLS = [
    *(f"crm_simulate -x FILE {words} {supposed}".strip() for supposed in SUPPOSED for words in ("-S", "-R")),
    *(f"crm_simulate -x FILE -R -i {each}" for each in INJECTED),
    *(f"crm_simulate -x FILE {words}" for words in (
        "", "-A -c", "-S -Q", "--output-as=xml", "-R --output-as=xml", "-S --output-as=xml",
        "-S -f n2 --output-as=xml", "-R -d n2 -u n3 -r gold --output-as=xml", "-S -t 2026-03-01", "-t 2026-03-01",
        "-R -w 1", "-w true", "-w 1 --output-as=xml", "-q 1 -w 0 -d n1 -R", "-R -I a -O b", "-A -O a", "-X",
        "-D a", "-Q -S -G a")),
    *(f"crm_simulate -x FILE {words} -F {each}" for each in FAILED for words in ("", "-S -d n1")),
    "crm_simulate -x FILE -F e_stop_0@n3=1 --output-as=xml", "crm_simulate -x FILE -F a_start_0@n2=1 -F m_start_0@n1=5",
]  # fmt: skip
PAGES = (
    "", "--html-title=a<b", "--html-stylesheet=/x.css", "-r", "-n", "-n -r", "-b", "-b -n", "-b -r", "-R", "-R -r",
    "-f", "-o", "-t", "-c", "-L", "-m3", "-D", "-Q", "--include=none", "--include=none,nodes", "--include=none,options",
    "--include=none,maint-mode", "--exclude=times", "--node=n1", "--node=n9", "--resource=web -r", "--resource=nothing",
)  # fmt: skip
PAGE_CALLS = [
    *(f"crm_mon --output-as=html {words}".strip() for words in PAGES),
    "crm_mon -1 -i x", "crm_mon -1 -i PT5S",
]  # fmt: skip


STATES = {"busy": busy, "one-lost": one_lost}
RELATED = """
primitive a ocf:haclusterd:dummy params state=x meta priority=5 op monitor interval=10s
primitive b ocf:haclusterd:dummy
primitive c ocf:haclusterd:dummy
primitive d ocf:haclusterd:dummy meta target-role=Stopped is-managed=false
primitive e ocf:haclusterd:dummy
rsc_template t ocf:haclusterd:dummy params state=t op monitor interval=10s timeout=30
primitive u @t params fake=1
primitive p ocf:haclusterd:stateful
clone pc p meta promotable=true
primitive q ocf:haclusterd:dummy
primitive q2 ocf:haclusterd:dummy meta is-managed=false
group g q q2
primitive r ocf:haclusterd:dummy
primitive r2 ocf:haclusterd:dummy
group h r r2 meta target-role=Stopped
primitive s ocf:haclusterd:stateful
clone sc s meta promotable=true target-role=Unpromoted
colocation ab inf: a b
colocation ac 5: a c
colocation bc 100: b c
colocation cpc -200: c pc:Promoted
colocation dg inf: d g
colocation set1 inf: e ( a d )
colocation ue 7: u e
colocation eu 7: e u
location la a 50: n1
location lb b -inf: n2
location lc c rule $id=lc-first 10: #uname eq n1 rule $id=lc-second -inf: #uname eq n3
location lg g 5: n1
location lpc pc role=Promoted 7: n2
location no1 c rule $id=no1-rule -inf: #uname ne n1
location no2 /^[ab]$/ -inf: n3
location no3 { b e } -5: n2
location no4 pc rule $id=no4-first role=Promoted -7: #uname eq n1 rule $id=no4-second -8: #uname eq n2
location no5 e rule $id=no5-rule -inf: date lt 2001-01-01
location no6 t -3: n1
tag some a pc
rsc_ticket tk gold: a loss-policy=stop
rsc_ticket tk2 iron: pc:Promoted loss-policy=demote
"""
RELATED_CALLS = [
    *(f"crm_resource {words} -r {name}" for name in ["a", "b", "c", "d", "e", "u", "pc", "p", "g", "q"]
      for words in ("-a", "-A", "-a -f", "-A --output-as=xml")),
    *(f"crm_resource -Y -r {name}{more}" for name in ("a", "d", "p", "pc", "g", "q", "q2", "r", "h", "s", "sc", "c")
      for more in ("", " --output-as=xml", " -N n1", " -N n1 --output-as=xml")),
    "crm_resource -Y", "crm_resource -Y --output-as=xml", "crm_resource -Y -N n2",
    "crm_resource -Y -N n2 --output-as=xml", "crm_resource -Y -N n9", "crm_resource",
    *(f"crm_resource {words}" for words in ("-a", "-g x", "-q", "-p x -v 1", "-B", "-U")),
    *(f"crm_resource {words} -r {name}{more}" for words in ("-q", "-w") for name in ("a", "g", "pc")
      for more in ("", " --output-as=xml")),
    "crm_resource -w -r u",
    *(f"crm_resource {words} --output-as=xml" for words in (
        "-L", "-l", "-o", "-O -r p", "-W -r a", "-W -r pc", "-W -r c", "-W -r nothing", "-g state -r a", "-g x -r a",
        "-g state -r u", "-g x", "-m -g priority -r a", "-a -r nothing")),
    *(f"crm_ticket {words}" for words in (
        "-l", "-L", "-w", "-q", "-c", "-l -t iron", "-L -t iron", "-w -t iron", "-q -t iron", "-c -t iron", "-l -t x",
        "-L -t x", "-w -t x", "-q -t x", "-c -t x", "-G owner -t iron", "-G expires -t iron -Q",
        "-G last-granted -t gold", "-G last-granted -t iron", "-G x -t iron", "-G x -t iron -d 9", "-G granted",
        "-G x -t x -d 9", "-s", "-g", "-C", "-g -t iron", "-r -t gold", "-C -t gold", "-C -t x", "")),
    "crm_attribute -t crm_config -n nothing -G --output-as=xml", "crm_mon -1 -r", "crm_mon -1 -n -r",
    *(f"crm_mon -1 {words}" for words in (
        "-L", "-Lno1", "-L --resource=pc", "-L --resource=p", "-L --resource=g", "-L --resource=some -r",
        "--output-as=xml --include=none,bans", "-L -R")),
]  # fmt: skip

OFFLINE_CALLS = """
iso8601 -d '2024-02-29 12:00:00Z'
iso8601 -d 2024-02-29T12:00:00Z -O
iso8601 -d 2024-02-29T12:00:00Z -W
iso8601 -d 2024-12-30 -W
iso8601 -d 2024-02-29T12:00:00Z -s
iso8601 -d 2024-02-29T12:00:00Z -S
iso8601 -d '2024-02-29 12:00:00 +02:00'
iso8601 -d 2024-060
iso8601 -d 2024-W09-4
iso8601 -d epoch
iso8601 -d '20240229 120000'
iso8601 -d 2024-02-29T24:00:00Z
iso8601 -d 2024-01-31T00:00:00Z -E '2024-01-31 00:00:00Z'
iso8601 -d 2024-01-31T00:00:00Z -E '2024-01-31'
iso8601 -d 2024-01-31 -D P1M
iso8601 -d 2024-02-29 -D P1D -E '2024-03-01 00:00:00Z'
iso8601 -p 2024-01-01/2024-02-01
iso8601 -p '2024-01-01 00:00:00Z/P1M' -O
iso8601 -p P1D/2020-01-01
iso8601 -p 2020-01-01
iso8601 -p nonsense
iso8601 -D P1Y2M3DT4H5M6S
iso8601 -D PT90M
iso8601 -D PT25H
iso8601 -D PT61S
iso8601 -D P1YT1S
iso8601 -D P1W2D
iso8601 -D PT0S
iso8601 -D nonsense
iso8601 -D P
iso8601 -d nonsense
iso8601 -d 1700000000
iso8601
crm_diff -o OLD -n OLD
crm_diff -o OLD -n NEW
crm_diff -o NEW -n OLD
crm_diff -u -o OLD -n NEW
crm_diff -o OLD -p PATCH
crm_diff -o OLD
crm_diff
"""
OLD = """<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0">
<configuration><crm_config/><nodes/><resources>
<primitive id="a" class="ocf"/><group id="g"><primitive id="b"/><primitive id="c" x="it's" y="2"/></group>
<primitive id="d"><operations/></primitive><primitive id="e"/></resources><constraints/></configuration><status/></cib>
"""
NEW = """<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" epoch="2" num_updates="0" admin_epoch="0">
<configuration><crm_config/><nodes/><resources>
<primitive id="e"/><group id="g"><primitive id="c" z="&lt;3" y="2"/></group><primitive id="f"><operations/></primitive>
<primitive id="a" class="lsb"><operations><op id="o"/></operations></primitive><primitive id="d"/></resources>
<tags/></configuration><status/></cib>
"""


def ours(cluster: Cluster, line: str, **texts: str) -> str:
    """Return what our tool answers."""
    tool, *words = shlex.split(line)
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    outcome = registry.run("tool.run", {"tool": tool, "words": words, "node": "n1", **texts}, context)
    assert isinstance(outcome.data, dict), outcome.reports
    return f"{outcome.data['out']}{outcome.data['err']}[{outcome.exit_status}]\n"


def theirs(cluster: Cluster, line: str, directory: Path) -> str:
    """Return what Pacemaker's tool answers on our text."""
    text = directory / "cib.xml"
    text.write_text(ours(cluster, "cibadmin -Q").removesuffix("[0]\n"))
    environment = {"PATH": os.environ["PATH"], "CIB_file": str(text), "TZ": "UTC"}
    done = subprocess.run(shlex.split(line), env=environment, capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}[{done.returncode}]\n"


def _compared(cluster: Cluster, lines: list[str], path: Path, directory: Path) -> None:
    if os.environ.get("RECORD"):
        path.write_text("".join(f"$ {line}\n{alike(theirs(cluster, line, directory))}\n" for line in lines))
    assert "".join(f"$ {line}\n{alike(ours(cluster, line))}\n" for line in lines) == path.read_text()


def test_what_relates_resources_and_keeps_them_from_running(tmp_path: Path) -> None:
    _compared(related(), RELATED_CALLS, FILES / "related.txt", tmp_path)


def dated() -> Cluster:
    """Return a cluster with rules on dates."""
    cluster = formed()
    cluster.configure(DATED)
    return cluster


DATED = """
primitive a ocf:haclusterd:dummy meta $id=m1 rule $id=past date lt 2020-01-01 priority=1
location l1 a rule $id=future 1: date gt 2040-01-01
location l2 a rule $id=range 1: date in start=2020-01-01 end=2040-01-01
location l3 a rule $id=hours 1: date spec hours=0-23
location l4 a rule $id=year 1: date spec years=2020
location l5 a rule $id=two 1: date lt 2040-01-01 and date gt 2020-01-01
location l6 a rule $id=named 1: #uname eq n1
location l7 a rule $id=ended 1: date in start=2020-01-01 end=2021-01-01
location l8 a rule $id=mixed 1: date lt 2040-01-01 and #uname eq n1
location l9 a rule $id=years 1: date spec years=2020-2060
location l10 a rule $id=may 1: date spec years=2020 months=5
"""
WHOLE = (
    '<cib validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0"><configuration><crm_config/><nodes/>'
    '<resources/><constraints><rsc_location id="l" rsc="a"><rule id="x" score="1">'
    '<date_expression id="e" operation="gt" start="2020-01-01"/></rule></rsc_location>'
    '</constraints></configuration><status/></cib>'
)
DATES = ("2019-05-05", "2020-01-01", "2020-03-01", "2020-05-01T12:00:00Z", "2020-08-01", "2041-01-01", "nonsense")
DATED_CALLS = [
    *(f"crm_rule -c -r {name}{more}"
      for name in ("past", "future", "range", "hours", "year", "two", "named", "ended", "mixed", "years", "may", "x")
      for more in ("", " --output-as=xml", *(f" -d {date}" for date in DATES))),
    *(f"crm_rule {words}" for words in (
        "", "-c", "-r past", "-c --output-as=xml", "-c -r past -r range", "-c -r range -r past --output-as=xml",
        "-c -r range -r nothing", "-c -r nothing -r range")),
    *(f"crm_rule -c -r {name} -X '{WHOLE}'{more}" for name in ("x", "range") for more in ("", " -d 2019-05-05")),
]  # fmt: skip


def test_rules_are_in_effect_expired_or_to_come(tmp_path: Path) -> None:
    _compared(dated(), DATED_CALLS, FILES / "dated.txt", tmp_path)


@pytest.mark.parametrize("name", STATES)
def test_the_tools_print_what_pacemakers_print(name: str, tmp_path: Path) -> None:
    _compared(STATES[name](), CALLS.strip().splitlines(), FILES / f"{name}.txt", tmp_path)


def test_what_is_chosen_of_the_state(tmp_path: Path) -> None:
    _compared(busy(), MONITOR_CALLS.strip().splitlines(), FILES / "chosen.txt", tmp_path)


@pytest.mark.parametrize("name", STATES)
def test_the_state_as_a_web_page(name: str, tmp_path: Path) -> None:
    _compared(STATES[name](), PAGE_CALLS, FILES / f"{name}-pages.txt", tmp_path)


def test_what_is_planned_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cluster, path = planned(), FILES / "planned.txt"
    text = ours(cluster, "cibadmin -Q").removesuffix("[0]\n")
    if os.environ.get("RECORD"):
        recorded = ""
        for line in PLANNED_CALLS:
            Path("FILE").write_text(text)  # -X changes it.
            recorded += f"$ {line}\n{alike(theirs(cluster, line, tmp_path))}\n"
        path.write_text(recorded)
    cluster.live = None
    answers = (f"$ {line}\n{alike(ours(cluster, line, text=text))}\n" for line in PLANNED_CALLS)
    assert "".join(answers) == path.read_text()


CAPACITIES = """
property stonith-enabled=false
node n1 utilization cpu=8
node n2 utilization cpu=1 memory=100
primitive a ocf:haclusterd:dummy utilization cpu=2
primitive b ocf:haclusterd:dummy utilization cpu=3 memory=1
location la a inf: n1
location lb b inf: n2
"""
CAPACITY_CALLS = [f"crm_simulate -x FILE -U {words}".strip() for words in (
    "", "-Q", "-S -c -A", "--text-fancy", "--output-as=xml", "-s --text-fancy", "-Q -s", "-s", "-R -s -A -c",
    "-s --output-as=xml")]  # fmt: skip


def test_capacities_and_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cluster, path = formed(), FILES / "capacities.txt"
    cluster.configure(CAPACITIES)
    text = ours(cluster, "cibadmin -Q").removesuffix("[0]\n")
    Path("FILE").write_text(text)
    if os.environ.get("RECORD"):
        path.write_text("".join(f"$ {line}\n{alike(theirs(cluster, line, tmp_path))}\n" for line in CAPACITY_CALLS))
    cluster.live = None
    answers = (f"$ {line}\n{alike(ours(cluster, line, text=text))}\n" for line in CAPACITY_CALLS)
    assert _sorted("".join(answers)) == _sorted(path.read_text())


def _sorted(text: str) -> list[str]:
    """What was decided first is not said: each call's lines are compared, not their order."""
    return [line for call in text.split("$ ") for line in sorted(call.splitlines())]


def test_a_file_is_asked_and_changed_as_the_cluster_is(tmp_path: Path) -> None:
    """What Pacemaker's tools print of the cluster's own text, ours print of it as a file."""
    cluster, file = busy(), tmp_path / "cib.xml"
    text = ours(cluster, "cibadmin -Q").removesuffix("[0]\n")

    def answer(line: str) -> str:
        file.write_text(text)
        tool, *words = shlex.split(line)
        request = Request("", "tool.run", {"tool": tool, "words": words})
        data = OfflineClient(str(file), "root@n1", lambda: NOW).call(request, lambda _: None)
        assert isinstance(data.data, dict), (line, data.reports)
        return f"{data.data['out']}{data.data['err']}[{data.exit}]\n"

    asked = [line for line in (*CALLS.splitlines(), *MONITOR_CALLS.splitlines()) if line.startswith("crm_mon")]
    asked += [line for line in CALLS.splitlines() if line.startswith(("crm_resource", "cibadmin -Q", "crm_ticket"))]
    recorded = (FILES / "busy.txt").read_text() + (FILES / "chosen.txt").read_text()
    wrong = [line for line in asked if f"$ {line}\n{alike(answer(line))}\n" not in recorded]
    assert (len(asked), wrong) == (len(set(asked)), [])


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("crm_attribute -t crm_config -n cluster-delay -v 30s", 'name="cluster-delay" value="30s"'),
        ("crm_resource -r db -B -N n1", '<rsc_location id="cli-ban-db-on-n1" rsc="db" role="Started" node="n1"'),
        ("crm_ticket -t gold -s", '<ticket_state id="gold" granted="true" standby="true"'),
        ("cibadmin -C -o constraints -X '<rsc_location id=\"l9\" rsc=\"web\" node=\"n1\" score=\"5\"/>'", '"l9"'),
    ],
)
def test_a_change_of_a_file_is_in_the_file(line: str, part: str, tmp_path: Path) -> None:
    file = tmp_path / "cib.xml"
    text = ours(busy(), "cibadmin -Q").removesuffix("[0]\n")
    file.write_text(text)
    tool, *words = shlex.split(line)
    request = Request("", "tool.run", {"tool": tool, "words": words})
    assert OfflineClient(str(file), "root@n1", lambda: NOW).call(request, lambda _: None).exit == 0
    assert part in file.read_text()
    assert part not in text


def test_dates_and_differences_need_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines, path = OFFLINE_CALLS.strip().splitlines(), FILES / "offline.txt"
    patch = ours(formed(), "crm_diff -o OLD -n NEW", text=OLD, other=NEW).removesuffix("[1]\n")
    files = {"OLD": OLD, "NEW": NEW, "PATCH": patch}
    for name, text in files.items():
        Path(name).write_text(text)
    if os.environ.get("RECORD"):
        path.write_text("".join(f"$ {line}\n{theirs(formed(), line, tmp_path)}\n" for line in lines))
    answers = []
    for line in lines:
        given = [files[word] for word in line.split() if word in files]
        answers.append(ours(formed(), line, **dict(zip(("text", "other"), given, strict=False))))
    assert "".join(f"$ {line}\n{answer}\n" for line, answer in zip(lines, answers, strict=True)) == path.read_text()
