"""One node runs agents, for tests: OcfAgents with a directory of scripts for provider `test`."""

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path

from haclusterd.adapters.agents.ocf import OcfAgents
from haclusterd.adapters.agents.seals import Seals
from haclusterd.adapters.agents.surroundings import AgentDirectories
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.processes.spawner_link import Spawner
from haclusterd.agents.process_table import list_pids, read_marks
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.ports.agents import AgentCall, AgentMetadata, AgentResult
from tests.unit.adapters.recorded_actions import recorded_in

INCARNATION = Incarnation("boot-1", "00000000000000aa")
SHIPPED = Path(__file__).parents[3] / "resource_agents"


class ScriptedAgents:
    """Starts actions and collects what becomes of them."""

    def __init__(
        self,
        clock: BoottimeClock,
        directory: Path,
        incarnation: Incarnation = INCARNATION,
        node: str = "n1",
        service_group: Path | None = None,
        spawner: Spawner | None = None,
        seals: Seals | None = None,
    ) -> None:
        self.clock = clock
        self.node = NodeName(node)
        self.directory = directory
        self.counter = 0
        self.has_lease = True
        self.runtime = directory / ("run" if node == "n1" else f"run-{node}")
        (directory / "ra" / "test").mkdir(parents=True, exist_ok=True)
        self.runner = OcfAgents(
            clock,
            asyncio.get_running_loop(),
            runtime_directory=self.runtime,
            node=self.node,
            incarnation=incarnation,
            service_group=service_group,
            spawner=spawner,
            directories=AgentDirectories(
                shipped=SHIPPED,
                search=(directory / "ra",),
                init_scripts=directory / "init.d",
                shims=Path("/opt/shims"),
                control_socket=directory / "control.sock",
                own_environment={"HACLUSTERD_LOCAL_CLUSTER": str(directory)},
                seals=seals,
            ),
            has_lease=lambda: self.has_lease,
        )

    def write(self, name: str, text: str, mode: int = 0o755) -> Path:
        """Put an agent in place as an installer does: a file that is being executed cannot be opened for writing."""
        path = self.directory / "ra" / "test" / name
        new = self.directory / f"{name}.new"
        new.write_text(text)
        new.chmod(mode)
        return new.replace(path)

    def call(self, script: str, action: str = "monitor", **changes) -> AgentCall:
        self.counter += 1
        fields = {
            "key": f"{INCARNATION.token}-{self.counter}",
            "resource": ResourceId("r1"),
            "instance": "r1",
            "agent": AgentReference("ocf", "test", script),
            "action": action,
            "parameters": {},
            "meta": {},
            "timeout_ms": 20_000,
            "incarnation": INCARNATION,
        }
        return AgentCall(**{**fields, **changes})

    def begin(self, call: AgentCall) -> asyncio.Future[AgentResult]:
        ended: asyncio.Future[AgentResult] = asyncio.get_running_loop().create_future()
        self.runner.run(call, ended.set_result)
        assert not ended.done()
        return ended

    async def run(self, *arguments, **changes) -> AgentResult:
        return await self.begin(self.call(*arguments, **changes))

    async def metadata(self, agent: AgentReference) -> AgentMetadata | None:
        answer: asyncio.Future[AgentMetadata | None] = asyncio.get_running_loop().create_future()
        self.runner.metadata(agent, answer.set_result)
        return await answer

    def records(self) -> list[Path]:
        return recorded_in(self.runtime / "actions")

    def recorded_pids(self) -> list[int]:
        records = [json.loads(path.read_text()) for path in self.records()]
        return [record["pid"] for record in records if record["pid"] is not None]


def end_all(directory: Path) -> None:
    """Kill everything that any ScriptedAgents of this directory started."""
    for pid in list_pids():
        if read_marks(pid).get("HACLUSTERD_LOCAL_CLUSTER") == str(directory):
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
