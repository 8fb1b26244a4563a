"""Stand-ins for what fence agents talk to: a BMC for each node, a Redfish service; both cut a node's power for real.

The power supply behind each is the cluster's own switch (`fence_local`), called as a program: all processes of the node
end. The BMC is OpenIPMI's `ipmi_sim`. The Redfish service speaks as much of DMTF DSP0266 as an agent uses: the service
root, its systems, `ComputerSystem.Reset`, with basic authentication over TLS.
"""

import base64
import json
import shutil
import ssl
import stat
import subprocess
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from haclusterd.adapters.machine.installation import resource_agents_directory
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.entry_points.local_cluster import LocalCluster

USER, PASSWORD = "admin", "s3cret-device"
WAIT_S_MAX = 10.0

LAN = """name "{node}"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{chassis}"
  user 1 true "" "test" user 10 none md2 md5 straight
  user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
EMULATOR = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""
CHASSIS = """#!/bin/sh
# What ipmi_sim asks of the chassis: get power, set power 0|1.
switch() {{ printf 'action=%s\\nplug={node}\\nnodes_dir={nodes}\\n' "$1" | {switch}; }}
case "$1 $2 $3" in
    "get power "*) test -e {nodes}/{node}.off && echo power:0 || echo power:1 ;;
    "set power 0") switch off ;;
    "set power 1") switch on ;;
esac
"""


def switch(cluster: LocalCluster, node: str, action: str) -> None:
    """Cut a node's power, or give it back."""
    request = f"action={action}\nplug={node}\nnodes_dir={cluster.nodes_directory}\n"
    subprocess.run([power_switch()], input=request.encode(), capture_output=True, check=True)


def is_off(cluster: LocalCluster, node: str) -> bool:
    """Tell whether a node's power was cut and not given back; a node that died by itself still has it."""
    return (cluster.nodes_directory / f"{node}.off").exists()


def power_switch() -> Path:
    return resource_agents_directory() / "fence_local"


class Bmcs:
    """A baseboard management controller for each node, each on its own UDP port."""

    def __init__(self, directory: Path, cluster: LocalCluster) -> None:
        self.ports: dict[str, int] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        for node in cluster.names:
            self._start(directory / node, cluster, node)

    def _start(self, place: Path, cluster: LocalCluster, node: str) -> None:
        (place / "state").mkdir(parents=True)
        [port] = free_ports("127.0.0.1", 1)
        self.ports[node] = port
        chassis = place / "chassis"
        chassis.write_text(CHASSIS.format(node=node, nodes=cluster.nodes_directory, switch=power_switch()))
        chassis.chmod(chassis.stat().st_mode | stat.S_IXUSR)
        lan = LAN.format(node=node, port=port, chassis=chassis, user=USER, password=PASSWORD)
        (place / "lan.conf").write_text(lan)
        (place / "sim.emu").write_text(EMULATOR)
        program = shutil.which("ipmi_sim")
        assert program is not None
        arguments = [program, "-c", "lan.conf", "-f", "sim.emu", "-s", "state", "-n"]
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(arguments, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._processes.append(process)

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


class RedfishService:
    """One service that manages all nodes, as /redfish/v1/Systems/NODE."""

    def __init__(self, directory: Path, cluster: LocalCluster) -> None:
        directory.mkdir()
        self.requests: list[tuple[str, str]] = []
        """(path, reset type) of each reset."""
        handler = type("Handler", (_Redfish,), {"cluster": cluster, "requests": self.requests})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*_certificate(directory))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _certificate(directory: Path) -> tuple[str, str]:
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=bmc",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return str(certificate), str(key)


class _Redfish(BaseHTTPRequestHandler):
    cluster: LocalCluster
    requests: list[tuple[str, str]]
    root = "/redfish/v1"
    resets = ("On", "ForceOff", "ForceRestart")

    def do_GET(self) -> None:
        if not self._is_allowed():
            return
        path = self.path.rstrip("/")
        systems = f"{self.root}/Systems"
        node = path.removeprefix(f"{systems}/")
        if path == self.root:
            self._answer(200, {"@odata.id": path, "Systems": {"@odata.id": systems}})
        elif path == systems:
            members: Sequence[Any] = [{"@odata.id": f"{systems}/{name}"} for name in self.cluster.names]
            self._answer(200, {"@odata.id": systems, "Members": members})
        elif node in self.cluster.names:
            state = "Off" if is_off(self.cluster, node) else "On"
            reset = {"target": f"{path}/Actions/ComputerSystem.Reset",
                     "ResetType@Redfish.AllowableValues": list(self.resets)}  # fmt: skip
            self._answer(200, {"@odata.id": path, "Id": node, "PowerState": state,
                               "Actions": {"#ComputerSystem.Reset": reset}})  # fmt: skip
        else:
            self._answer(404, {"error": {"code": "Base.1.0.ResourceMissingAtURI"}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self._is_allowed():
            return
        node, _, rest = self.path.removeprefix(f"{self.root}/Systems/").partition("/")
        kind = str(json.loads(body).get("ResetType"))
        if node not in self.cluster.names or rest != "Actions/ComputerSystem.Reset" or kind not in self.resets:
            self._answer(400, {"error": {"code": "Base.1.0.ActionParameterNotSupported"}})
            return
        self.requests.append((node, kind))
        if kind in ("ForceOff", "ForceRestart"):
            switch(self.cluster, node, "off")
        if kind in ("On", "ForceRestart"):
            switch(self.cluster, node, "on")
        self._answer(204, None)

    def _is_allowed(self) -> bool:
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") == wanted:
            return True
        self._answer(401, {"error": {"code": "Base.1.0.InsufficientPrivilege"}})
        return False

    def _answer(self, code: int, value: object) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002 (its base's name)
        """Keep quiet."""


class SharedDisk:
    """A shared disk for sbd: a loop device with a slot for each node. Raises OSError where none can be had."""

    def __init__(self, file: Path, nodes: Sequence[str]) -> None:
        file.write_bytes(b"\0" * 4 * 1024 * 1024)
        found = subprocess.run(["losetup", "-f", "--show", str(file)], capture_output=True, text=True, check=False)
        if found.returncode:
            raise OSError(found.stderr.strip())
        self.device = found.stdout.strip()
        self._wait_for_device()
        self.sbd("-1", "2", "-4", "4", "create")
        for node in nodes:
            self.sbd("allocate", node)

    def _wait_for_device(self) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while not Path(self.device).exists():
            if time.monotonic() > deadline:
                raise OSError(f"{self.device} does not appear")
            time.sleep(0.02)

    def sbd(self, *arguments: str) -> str:
        done = subprocess.run(["sbd", "-d", self.device, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def message(self, node: str) -> str:
        """Return what lies in a node's slot."""
        rows = [line.split() for line in self.sbd("list").splitlines()]
        return next(row[2] for row in rows if row[1] == node)

    def close(self) -> None:
        subprocess.run(["losetup", "-d", self.device], check=False)
