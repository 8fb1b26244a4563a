"""A fence agent that writes down what it was asked, and the adapter that calls it."""

import asyncio
from pathlib import Path

from haclusterd.adapters.agents.fence_agents import FenceAgentPrograms
from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.model.ids import NodeName
from haclusterd.ports.fencing import FenceCall, FenceCallResult, FenceMetadata
from tests.unit.adapters.scripted_agents import INCARNATION, SHIPPED


class Switches:
    """Fence agents made of scripts."""

    def __init__(self, clock: BoottimeClock, directory: Path, *, allows_development: bool = False) -> None:
        self.clock = clock
        self.directory = directory
        self.counter = 0
        self.has_lease = True
        (directory / "sbin").mkdir(exist_ok=True)
        (directory / "plugins").mkdir(exist_ok=True)
        self.agents = FenceAgentPrograms(
            clock,
            asyncio.get_running_loop(),
            runtime_directory=directory / "run",
            node=NodeName("n1"),
            incarnation=INCARNATION,
            directories=FenceDirectories(
                (directory / "sbin", SHIPPED),
                (directory / "plugins",),
                shims=directory / "shims",
                control_socket=directory / "socket",
            ),
            allows_development=allows_development,
            own_environment={"HACLUSTERD_LOCAL_CLUSTER": str(directory)},
            has_lease=lambda: self.has_lease,
        )

    def write(self, text: str, name: str = "fence_test") -> Path:
        path = self.directory / "sbin" / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def write_plugin(self, text: str, name: str = "test") -> Path:
        path = self.directory / "plugins" / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def begin(
        self,
        action: str,
        agent: str = "fence_test",
        timeout_ms: int = 20_000,
        needs_lease: bool = False,
        **parameters: str,
    ) -> asyncio.Future[FenceCallResult]:
        self.counter += 1
        ended: asyncio.Future[FenceCallResult] = asyncio.get_running_loop().create_future()
        call = FenceCall(f"f{self.counter}", agent, action, parameters, timeout_ms, needs_lease=needs_lease)
        self.agents.call(call, ended.set_result)
        assert not ended.done()
        return ended

    async def run(self, action: str, **options) -> FenceCallResult:
        return await self.begin(action, **options)

    async def metadata(self, agent: str) -> FenceMetadata | None:
        answer: asyncio.Future[FenceMetadata | None] = asyncio.get_running_loop().create_future()
        self.agents.metadata(agent, answer.set_result)
        return await answer
