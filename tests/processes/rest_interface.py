"""A REST interface beside a real daemon, and what it and `crm` answer."""

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass, field
from tests.processes.daemons import Scenario

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Api:
    """One `haclusterd-api` and how to talk to it."""

    process: "subprocess.Popen[bytes]"
    port: int
    tokens: dict[str, str] = field(default_factory=dict)

    def ask(
        self, method: str, path: str, *, role: str = "admin", body: Any = None, raw: bytes | None = None,
        timeout: float = 90, **headers: str,
    ) -> Answer:  # fmt: skip
        data = raw if raw is not None else (None if body is None else json.dumps(body).encode())
        made = {"Authorization": f"Bearer {self.tokens[role]}"} if role else {}
        made |= {"Content-Type": "application/json"} if data is not None else {}
        made |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, made, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def get(self, path: str, **query: Any) -> Answer:
        return self.ask("GET", f"{path}?{urlencode(query, doseq=True)}" if query else path)

    def resident_kib(self) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def crm(scenario: Scenario, node: str, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.crm", "-o", "json", *words],
        capture_output=True, text=True, timeout=100, check=False, cwd=CHECKOUT,
        env={**os.environ, "HACLUSTERD_SOCKET": str(scenario.cluster.nodes[node].socket)},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def started(scenario: Scenario, node: str, directory: Path, more: str = "") -> Api:
    """Start the interface beside a node; `more`: what else its configuration says."""
    (port,) = free_ports("127.0.0.1", 1)
    file = directory / f"api-{node}.yaml"
    control = scenario.cluster.nodes[node].socket
    file.write_text(f"listen: ['127.0.0.1:{port}']\nsocket: {control}\n{more}")
    process = subprocess.Popen(
        [sys.executable, "-m", "haclusterd.entry_points.api", "--configuration", str(file)], cwd=CHECKOUT
    )
    api = Api(process, port)

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    scenario.until("the API to listen", listens)
    return api


def history(scenario: Scenario, asked: str, limit: int = 7, **arguments: Any) -> list[Any]:
    """Return all that a node's history has, page by page."""
    found: list[Any] = []
    after = "0"
    while True:
        page = {"after": after, "wait_s": 0, "limit": limit, **arguments}
        answer = scenario.cluster.call(NodeName(asked), "history.follow", **page)
        assert answer.exit == 0, answer.reports
        assert answer.data["missing"] is None
        found += answer.data["events"]
        if not answer.data["has_more"]:
            return found
        after = answer.data["next"]
