"""The cluster at a past moment, replayed from the history, is what it was then (`crm why RESOURCE --at TIME`)."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.activity import possibly_active
from haclusterd.cib.changes import Applied
from haclusterd.commands.context import Context, Event, ListedVersion
from haclusterd.commands.history.replay import Replayed, replayed
from haclusterd.commands.registry import VERBS
from haclusterd.commands.verb import run_verb
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field
from haclusterd.runtime.history_rows import rows_of
from haclusterd.runtime.requests.past_catalogue import event_of
from haclusterd.simulator.checks.checker import Checker
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.scenario import Cluster
from haclusterd.verbs.answers.resource import Why
from tests.administered_clusters import KeptVersions, ListedPast

N1, N2 = NodeName("n1"), NodeName("n2")
QUIET_MS = 3000
"""More than the clocks of the nodes differ by."""


class Remembering(Checker):
    """Keeps the rows and the versions that a node's history would have."""

    events: list[Event]
    versions: dict[int, tuple[ListedVersion, Configuration]]

    def first_applied(self, applied: Applied) -> None:
        """See `Checker`."""
        self.events += map(event_of, rows_of(applied.cib.index, applied))
        cib, version = applied.cib, applied.cib.version
        listed = ListedVersion(version.epoch, version.at, version.author, version.reason, "")
        self.versions.setdefault(version.epoch, (listed, cib.configuration))


@dataclass(slots=True)
class Remembered:
    """A cluster whose past is remembered, and what it was at some moments."""

    cluster: Cluster = field(default_factory=lambda: Cluster(3))
    moments: list[tuple[WallTime, Cib]] = field(default_factory=list)
    memory: Remembering = field(init=False)

    def __post_init__(self) -> None:
        self.memory = Remembering(self.cluster, self.cluster.checkers.log)
        self.memory.events, self.memory.versions = [], {}
        self.cluster.checkers.add(self.memory)

    def note(self, *, settled: bool = True) -> None:
        """Note what the cluster is like, while nothing happens."""
        if settled:
            self.cluster.until_settled(60_000, "settled")
        self.cluster.run_for(QUIET_MS)
        newest = max(event.at for event in self.memory.events)
        self.moments.append((WallTime(newest + QUIET_MS // 2), self.cluster.cib))
        self.cluster.run_for(QUIET_MS)

    def context(self) -> Context:
        """Return what is known at the end."""
        listed = tuple(each for each, _ in self.memory.versions.values() if each.number)
        contents = {number: content for number, (_, content) in self.memory.versions.items()}
        now = WallTime(max(event.at for event in self.memory.events) + 60_000)
        past = ListedPast(tuple(sorted(self.memory.events, key=lambda event: event.index)))
        return Context(self.cluster.cib, now, "root@n1", versions=KeptVersions(listed, contents), past=past)


@pytest.fixture(scope="module", name="known")
def _known() -> Remembered:
    """Return a cluster to which a few things happened, one after the other."""
    known = Remembered()
    cluster = known.cluster
    cluster.form()
    known.note()
    home = cluster.node_of("db")
    cluster.power_off(home)
    known.note()
    cluster.power_on(home)
    known.note()
    for _ in range(2):
        cluster.kill_service("db")
        cluster.run_for(2000)
    known.note()
    cluster.administer(commands.SetTransientAttribute(N1, "load", "9", "root@n2", "measured"))
    known.note()
    cluster.administer(commands.SetTransientAttribute(N1, "load", None, "root@n2"))
    cluster.administer(commands.SetTicket("paris", commands.TicketChange.GRANT, "root@n1"))
    cluster.edit([configurations.prefers("db", N2, 1_000)])
    known.note()
    cluster.administer(commands.SetTicket("paris", commands.TicketChange.REVOKE, "root@n1", "it moves"))
    cluster.administer(commands.CleanUp(None, None, author="root@n1", reason="seen to"))
    cluster.kill_brain(N1)
    known.note()
    return known


def shown(status: NodeStatus) -> object:
    """Return what of a node's status decides where resources run."""
    counts = {
        (name, key): each.count
        for name, history in status.histories.items()
        for key, each in history.fail_counts.items()
    }
    return status.state, sorted(possibly_active(status)), counts, dict(status.attributes)


def test_nodes_resources_failures_attributes_and_tickets_are_what_they_were(known: Remembered) -> None:
    context = known.context()
    assert len(known.moments) == 7
    for at, cib in known.moments:
        found = replayed(context, at)
        assert isinstance(found, Replayed)
        assert found.version == cib.version.epoch
        assert found.cib.configuration == cib.configuration
        assert {name: shown(each) for name, each in found.cib.status.nodes.items()} == {
            name: shown(each) for name, each in cib.status.nodes.items()
        }
        granted = [{name: each.is_granted for name, each in one.status.tickets.items()} for one in (found.cib, cib)]
        assert granted[0] == granted[1]
        assert cib.status.controller is not None
        assert found.cib.status.controller is not None
        assert found.cib.status.controller.node == cib.status.controller.node
        assert found.cib.status.controller.term == cib.status.controller.term
        assert found.reports == ()


def test_the_reason_is_what_it_was(known: Remembered) -> None:
    context = known.context()
    for at, cib in known.moments:
        then = run_verb(VERBS["resource.why"], {"resource": "db"}, Context(cib, at, "root@n1"))
        later = run_verb(VERBS["resource.why"], {"resource": "db", "at": f"{context.now - at}ms"}, context)
        assert isinstance(then.answer, Why)
        assert isinstance(later.answer, Why), later.reports
        then_answer, later_answer = then.answer.resources[0], later.answer.resources[0]
        for name in ("now_on", "next_on", "nodes", "verdict"):
            assert getattr(later_answer, name) == getattr(then_answer, name)
        assert [each.text for each in later.answer.before][-1].startswith("start of db")
