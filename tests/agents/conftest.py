"""Shipped agents, run as plain executables: nothing of this project is on their path but what they find themselves."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from zlib import crc32

import pytest

from haclusterd.entry_points.free_ports import free_ports
from tests.agents import postgres_nodes
from tests.agents.answering_daemon import AnsweringDaemon
from tests.agents.engine_stand_in import SCRIPT as ENGINE
from tests.agents.mount_namespace import MountNamespace
from tests.agents.network import Segment
from tests.agents.nvml_stub import build_nvml_stub

AGENTS = Path(__file__).parents[2] / "resource_agents"
NODE = "n1"
POSTGRES_BYTES = 1 << 30

SERVER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), reuse_port=False)
while True:
    connection, _ = listener.accept()
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 %s\\r\\nContent-Length: 5\\r\\n\\r\\nhello" % sys.argv[2].encode())
    connection.close()
"""


class AgentUnderTest:
    """One agent with its parameters and a state directory of its own."""

    def __init__(self, name: str, state: Path, parameters: dict[str, str]) -> None:
        self.name = name
        self.state = state
        self.parameters = parameters
        self.environment: dict[str, str] = {}
        self.within: list[str] = []
        """A command that runs it in another namespace: the agent and its action come last."""
        self.is_watcher = False
        """It leaves nothing behind that would have to be stopped."""
        # Tests beside this one look for processes by it, over the whole machine.
        self.instance = f"{name}-{crc32(bytes(state)):08x}"

    def run(
        self, action: str, *, level: int = 0, timeout_ms: int = 20_000, **changes: str | None
    ) -> subprocess.CompletedProcess[str]:
        parameters = {**self.parameters, **changes}
        environment = self._environment(action, level, timeout_ms, parameters)
        return self._run([AGENTS / self.name, action], environment)

    def run_ocf_tester(self, program: str) -> subprocess.CompletedProcess[str]:
        """Put it through the test of the package resource-agents."""
        options = [word for name, value in self.parameters.items() for word in ("-o", f"{name}={value}")]
        environment = self._environment("test", 0, 20_000, {})
        # It is a shell script for administrators: `su` is in the usual places, and the instance comes as an option.
        environment["PATH"] += ":/usr/sbin:/sbin"
        return self._run([program, "-n", self.instance, *options, AGENTS / self.name], environment)

    def _environment(
        self, action: str, level: int, timeout_ms: int, parameters: Mapping[str, str | None]
    ) -> dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HA_RSCTMP": str(self.state),
            "OCF_RESOURCE_INSTANCE": self.instance,
            "OCF_CHECK_LEVEL": str(level),
            "OCF_RESKEY_CRM_meta_timeout": str(timeout_ms),
            "HACLUSTERD_NODE": NODE,
            "HACLUSTERD_ORDER": f"order-of-{action}",
            **{f"OCF_RESKEY_{name}": value for name, value in parameters.items() if value is not None},
            **self.environment,
        }

    def _run(self, command: Sequence[str | Path], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.within, *command],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def code(self, action: str, **options) -> int:
        return self.run(action, **options).returncode

    def pid(self) -> int:
        return int(next(self.state.glob("*.pid")).read_text().split()[0])


@pytest.fixture
def make_agent(tmp_path: Path) -> Iterator[Callable[..., AgentUnderTest]]:
    made: list[AgentUnderTest] = []

    def make(name: str, **parameters: str) -> AgentUnderTest:
        agent = AgentUnderTest(name, tmp_path / f"state-{len(made)}", parameters)
        agent.state.mkdir()
        made.append(agent)
        return agent

    yield make
    for agent in made:
        if not agent.is_watcher:
            agent.run("stop", stop_signal="KILL", rc_stop=None, sleep_stop=None)


@pytest.fixture
def free_port() -> int:
    return free_ports("127.0.0.1", 1)[0]


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return path


@pytest.fixture
def write_script(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        os.chmod(path, 0o755)
        return path

    return write


@pytest.fixture
def make_http(make_agent, server: Path, free_port: int) -> Callable[..., AgentUnderTest]:
    def make(status: str = "200 OK", **parameters: str) -> AgentUnderTest:
        command = f"python3 -S -E {server} {free_port} '{status}'"
        url = f"http://127.0.0.1:{free_port}/ready"
        return make_agent("http-service", **{"command": command, "ready_url": url, **parameters})

    return make


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[AnsweringDaemon]:
    with AnsweringDaemon(tmp_path) as answering:
        yield answering


@pytest.fixture
def make_watcher(make_agent, daemon: AnsweringDaemon) -> Callable[..., AgentUnderTest]:
    """Make an agent that publishes to the daemon, and has the cluster's tools and this program's dependencies."""

    def make(name: str, **parameters: str) -> AgentUnderTest:
        agent = make_agent(name, CRM_meta_interval="10000", **parameters)
        agent.is_watcher = True
        give_tools(agent, daemon)
        return agent

    return make


def give_tools(agent: AgentUnderTest, daemon: AnsweringDaemon) -> None:
    """Let an agent call the cluster's tools."""
    agent.environment.update(
        HACLUSTERD_SOCKET=str(daemon.socket),
        HACLUSTERD_PYTHON=sys.executable,
        PATH=f"{AGENTS.parent / 'shims'}:/usr/local/bin:/usr/bin:/bin",
    )


@pytest.fixture
def segment() -> Iterator[Segment]:
    with Segment() as made:
        yield made


@pytest.fixture
def make_vip(segment: Segment, make_agent) -> Callable[..., AgentUnderTest]:
    """Make an agent for an address of the near side of a cable."""

    def make(ip: str = "10.77.0.50", **parameters: str) -> AgentUnderTest:
        agent = make_agent("vip", ip=ip, **parameters)
        agent.within = segment.near
        return agent

    return make


@pytest.fixture
def place(tmp_path: Path) -> Iterator[MountNamespace]:
    with MountNamespace(tmp_path) as made:
        yield made


@pytest.fixture
def make_mount(place: MountNamespace, make_agent) -> Callable[..., AgentUnderTest]:
    """Make an agent for a mount in a namespace of the test; of a file system in memory where nothing is said."""

    def make(device: str = "tmpfs", **parameters: str) -> AgentUnderTest:
        in_memory = {"fstype": "tmpfs"} if device == "tmpfs" else {}
        agent = make_agent("mount", device=device, **{"directory": str(place.point), **in_memory, **parameters})
        agent.within = place.within
        return agent

    return make


@pytest.fixture
def make_proxy(make_agent) -> Iterator[Callable[[], AgentUnderTest]]:
    """Make an agent for a proxy with one backend, which takes connections and says nothing."""
    listen, backend = free_ports("127.0.0.1", 2)
    with socket.create_server(("127.0.0.1", backend)):
        yield lambda: make_agent("tcp-proxy", listen=f"127.0.0.1:{listen}", backends=f"127.0.0.1:{backend}")


@pytest.fixture(scope="session")
def postgres_base() -> Iterator[Path]:
    """Make the copy that all begin with, where the server's user may go; in memory where there is some."""
    why = postgres_nodes.obstacle()
    if why:
        pytest.skip(why)
    memory = Path("/dev/shm")
    is_large = memory.is_dir() and shutil.disk_usage(memory).free > POSTGRES_BYTES
    directory = Path(tempfile.mkdtemp(prefix="pg-", dir=memory if is_large else None))
    directory.chmod(0o711)
    postgres_nodes.build(directory / "base")
    yield directory / "base"
    shutil.rmtree(directory)


@pytest.fixture
def make_postgres(postgres_base: Path, make_agent) -> Iterator[Callable[[], AgentUnderTest]]:
    """Make an agent for a server alone."""
    place = Path(tempfile.mkdtemp(prefix="pg-", dir=postgres_base.parent))
    yield lambda: make_agent("postgres", **postgres_nodes.alone(place, postgres_base))
    postgres_nodes.crash(place / "data")
    shutil.rmtree(place)


@pytest.fixture
def make_inference(make_agent, server: Path, free_port: int) -> Callable[[], AgentUnderTest]:
    """Make an agent for a server that answers every question well, and has no model."""

    def make() -> AgentUnderTest:
        command = f"python3 -S -E {server} {free_port} '200 OK'"
        url = f"http://127.0.0.1:{free_port}"
        return make_agent("inference-server", command=command, url=url, profile="custom", ready_path="/ready")

    return make


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """Make a directory with a stand-in for podman, which keeps its state beside itself."""
    directory = tmp_path / "engine"
    directory.mkdir()
    (directory / "image").touch()
    program = directory / "podman"
    program.write_text(ENGINE)
    program.chmod(0o755)
    return directory


@pytest.fixture
def make_container(engine: Path, make_agent) -> Callable[..., AgentUnderTest]:
    """Make an agent for a container of the stand-in."""

    def make(image: str = "shop:1", **parameters: str) -> AgentUnderTest:
        agent = make_agent("container", image=image, **parameters)
        agent.environment["PATH"] = f"{engine}:/usr/local/bin:/usr/bin:/bin"
        return agent

    return make


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a libnvidia-ml.so.1."""
    return build_nvml_stub(tmp_path_factory.mktemp("nvml"))
