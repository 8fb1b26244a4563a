"""The peer: real corosync and Pacemaker, from Debian's packages, on the machines of a site of the lab.

It gets the same agents, the same fence device and the same intervals as ours, and is asked as an administrator asks:
through its command line tools.
"""

import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from haclusterd.model.records import dataclass, field
from tests.lab.machine import Machine
from tests.lab.namespaces import ENVIRONMENT, LabError
from tests.lab.site import Site
from tests.lab.switch import SERVICE_ADDRESS, address
from tests.lab.witnesses import SERVICE_PORT

PROGRAMS = {
    "corosync": "corosync", "pacemakerd": "pacemaker", "crm_mon": "pacemaker-cli-utils",
    "crm_resource": "pacemaker-cli-utils",
}  # fmt: skip
PRIVATE = ("/etc/corosync", "/var/lib/corosync", "/var/lib/pacemaker", "/var/log")
CRMSH = Path("/usr/sbin/crm")
SBIN = Path(__file__).parents[1] / "lab" / "sbin"
SETTLED_ASKINGS = 2

COROSYNC = """totem {{
    version: 2
    cluster_name: bench
    transport: knet
    crypto_cipher: aes256
    crypto_hash: sha256
{timing}}}
logging {{
    to_stderr: no
    to_syslog: no
    to_logfile: yes
    logfile: /var/log/corosync.log
    timestamp: hires
}}
quorum {{
    provider: corosync_votequorum
}}
nodelist {{
{nodes}}}
"""

NODE = """    node {{
        name: {name}
        nodeid: {number}
        ring0_addr: {first}
        ring1_addr: {second}
    }}
"""

PROPERTIES = """<crm_config><cluster_property_set id="cib-bootstrap-options">
<nvpair id="p-fencing" name="stonith-enabled" value="true"/>
<nvpair id="p-quorum" name="no-quorum-policy" value="stop"/>
</cluster_property_set></crm_config>"""

DEFAULTS = """<rsc_defaults><meta_attributes id="d"><nvpair id="d-stickiness" name="resource-stickiness" value="100"/>
</meta_attributes></rsc_defaults>"""

RESOURCES = """<resources>
<primitive id="power" class="stonith" type="fence_lab">
  <instance_attributes id="power-a">
    <nvpair id="power-a-socket" name="socket" value="{socket}"/>
    <nvpair id="power-a-hosts" name="pcmk_host_list" value="{hosts}"/>
    <nvpair id="power-a-check" name="pcmk_host_check" value="static-list"/>
  </instance_attributes>
  <operations><op id="power-monitor" name="monitor" interval="60s" timeout="10s"/></operations>
</primitive>
<group id="site">
  <primitive id="vip" class="ocf" provider="heartbeat" type="IPaddr2">
    <instance_attributes id="vip-a">
      <nvpair id="vip-a-ip" name="ip" value="{service}"/>
      <nvpair id="vip-a-mask" name="cidr_netmask" value="24"/>
      <nvpair id="vip-a-nic" name="nic" value="eth0"/>
    </instance_attributes>
    <operations>
      <op id="vip-monitor" name="monitor" interval="{monitors}" timeout="20s"/>
      <op id="vip-start" name="start" interval="0" timeout="20s"/>
      <op id="vip-stop" name="stop" interval="0" timeout="20s"/>
    </operations>
  </primitive>
  <primitive id="web" class="ocf" provider="lab" type="web">
    <instance_attributes id="web-a">
      <nvpair id="web-a-port" name="port" value="{port}"/>
      <nvpair id="web-a-witness" name="witness" value="{witness}"/>
    </instance_attributes>
    <operations>
      <op id="web-monitor" name="monitor" interval="{monitors}" timeout="20s"/>
      <op id="web-start" name="start" interval="0" timeout="20s"/>
      <op id="web-stop" name="stop" interval="0" timeout="20s"/>
    </operations>
  </primitive>
</group>
</resources>"""


def obstacle() -> str:
    """Say what is missing for the peer; empty: nothing."""
    missing = sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})
    return f"missing: {', '.join(missing)} (Debian: apt-get install {' '.join(missing)})" if missing else ""


@dataclass(slots=True)
class Picture:
    """What crm_mon says. `started`: resource -> node, without those in transition."""

    dc: str = ""
    online: set[str] = field(default_factory=set)
    started: dict[str, str] = field(default_factory=dict)


class PacemakerSite(Site):
    """`token_ms` None: corosync's own defaults for this number of nodes; otherwise consensus is 1.2 tokens."""

    def __init__(self, directory: Path, size: int, *, monitors: str, token_ms: int | None = None) -> None:
        super().__init__(directory, size)
        self.monitors = monitors
        self._token_ms = token_ms
        self._picture = Picture()

    def prepare(self) -> None:
        timing = ""
        if self._token_ms is not None:
            consensus_ms = self._token_ms * 12 // 10
            timing = f"    token: {self._token_ms}\n    token_coefficient: 0\n    consensus: {consensus_ms}\n"
        nodes = "".join(
            NODE.format(name=each.name, number=each.index, first=address(each.index, 0), second=address(each.index, 1))
            for each in self.machines.values()
        )
        text = COROSYNC.format(timing=timing, nodes=nodes)
        for machine in self.machines.values():
            self._equip(machine, text)

    def _equip(self, machine: Machine, text: str) -> None:
        machine.switch_on()
        top = Path(f"/proc/{machine.init}/root{machine.state}")
        places = {name: machine.state / name.strip("/").replace("/", "-") for name in PRIVATE}
        for place in places.values():
            (top / place.name).mkdir()
        (top / "etc-corosync" / "corosync.conf").write_text(text)
        (top / "etc-corosync" / "authkey").write_bytes(b"k" * 256)
        own = [top / "var-log" / "pacemaker", *(top / "var-lib-pacemaker" / each
               for each in ("blackbox", "cib", "cores", "pengine"))]  # fmt: skip
        (top / "var-log" / "crmsh").mkdir()
        for directory in own:
            directory.mkdir()
            shutil.chown(directory, "hacluster", "haclient")
        machine.switch_off()
        machine.mounts += [(str(place), name, "", "") for name, place in places.items()]
        machine.mounts.append(("overlay", "/usr/sbin", "overlay", f"lowerdir={SBIN}:/usr/sbin"))
        machine.services = [
            self._service(machine, "corosync", "exec /usr/sbin/corosync -f"),
            self._service(
                machine,
                "pacemaker",
                "until corosync-cpgtool >/dev/null 2>&1; do sleep 0.02; done; exec /usr/sbin/pacemakerd -f",
            ),
        ]

    @staticmethod
    def _service(machine: Machine, name: str, line: str) -> dict[str, object]:
        environment = {
            **ENVIRONMENT, "PCMK_logfile": "/var/log/pacemaker/pacemaker.log", "PCMK_logfacility": "none",
        }  # fmt: skip
        return {
            "name": name, "arguments": ["/bin/sh", "-c", line], "environment": environment,
            "log": str(machine.logs / f"{name}.log"),
        }  # fmt: skip

    def configure(self) -> None:
        resources = RESOURCES.format(
            socket=self.directory / "power", hosts=" ".join(self.machines), service=SERVICE_ADDRESS,
            monitors=self.monitors, port=SERVICE_PORT, witness=self.beats.path,
        )  # fmt: skip
        for section, text in (("crm_config", PROPERTIES), ("rsc_defaults", DEFAULTS), ("resources", resources)):
            self.run("cibadmin", "--modify", "--allow-create", "-o", section, "--xml-pipe", stdin=text)

    # -- asking -----------------------------------------------------------------------------------------------------

    def run(self, *command: str, stdin: str = "", node: str = "") -> str:
        """Run a tool on a node, or on any that can be reached."""
        machine = self.machines[node] if node else self._able()
        assert machine.namespaces is not None
        return machine.namespaces.run(*command, stdin=stdin)

    def _able(self) -> Machine:
        for machine in self.machines.values():
            if machine.is_on and not machine.is_stopped and machine.name in (self._picture.online or self.machines):
                return machine
        return next(machine for machine in self.machines.values() if machine.is_on and not machine.is_stopped)

    def look(self) -> Picture:
        """Ask crm_mon; an empty picture when it has no answer."""
        try:
            root = ET.fromstring(self.run("crm_mon", "--output-as=xml"))
        except (ET.ParseError, LabError, subprocess.TimeoutExpired, StopIteration):
            self._picture = Picture()
            return self._picture
        dc = root.find("summary/current_dc")
        found = Picture(dc=(dc.get("name") or "") if dc is not None and dc.get("present") == "true" else "")
        for node in root.findall("nodes/node"):
            if _is_online(node.attrib):
                found.online.add(str(node.get("name")))
        for resource in root.iter("resource"):
            places = [str(node.get("name")) for node in resource.findall("node")]
            if places and resource.get("role") == "Started" and resource.get("pending") is None:
                found.started[str(resource.get("id"))] = places[0]
        self._picture = found
        return found

    def dc(self) -> str:
        return self.look().dc

    def has_formed(self) -> bool:
        found = self.look()
        return bool(found.dc) and found.online == set(self.machines)

    def is_whole(self) -> bool:
        return (
            all(machine.is_on for machine in self.machines.values())
            and self.client.is_served()
            and all(self._is_settled() for _ in range(SETTLED_ASKINGS))
        )

    def _is_settled(self) -> bool:
        found = self.look()
        if not found.dc or found.online != set(self.machines) or not {"vip", "web", "power"} <= found.started.keys():
            return False
        try:
            return "S_IDLE" in self.run("sh", "-c", f"crmadmin -S {found.dc} 2>&1")
        except (LabError, subprocess.TimeoutExpired):
            return False


def _is_online(node: Mapping[str, str]) -> bool:
    return node.get("online") == "true" and not any(node.get(each) == "true" for each in ("pending", "unclean"))
