"""What verbs are given of installed agents that do not tell anything."""

from collections.abc import Callable

from haclusterd.model.ids import AgentReference
from haclusterd.ports.agents import AgentMetadata
from haclusterd.runtime.requests.agent_catalogue import AgentCatalogue

BROKEN, REMOVED = (AgentReference.parse(f"ocf:test:{name}") for name in ("broken", "removed"))


class Agents:
    """Two agents, of which none has meta-data; one is removed as it is asked."""

    def installed(self) -> tuple[AgentReference, ...]:
        return BROKEN, REMOVED

    def exists(self, agent: AgentReference) -> bool:
        return agent == BROKEN

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        done(None)


def test_an_agent_without_meta_data_is_not_taken_for_one_that_is_not_there() -> None:
    catalogue = AgentCatalogue(Agents())
    assert not any(catalogue[str(each)].is_unreadable for each in (BROKEN, REMOVED))
    catalogue.read(lambda: None)
    assert catalogue[str(BROKEN)].is_unreadable
    assert str(REMOVED) not in catalogue
