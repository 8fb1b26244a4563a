"""Services that are started by their agents, and what is noticed of their deaths."""

from haclusterd.model.ids import ResourceId
from tests.unit.adapters.scripted_agents import ScriptedAgents

R1 = ResourceId("r1")


class Deaths:
    """How many were reported."""

    def __init__(self) -> None:
        self.count = 0

    def report_death(self, resource: ResourceId) -> None:
        assert resource == R1
        self.count += 1


def watched_pids(agents: ScriptedAgents) -> list[int]:
    watched = agents.runner._watch._watched.get(R1)
    return list(watched.pidfds) if watched else []
