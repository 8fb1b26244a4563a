"""Dampened attributes in a daemon: written when quiet, kept while nobody leads, never overtaken by what is at once."""

from haclusterd.model.ids import NodeName
from tests.unit.runtime.desk import Desk, status_of

N1 = NodeName("n1")


def publish(desk: Desk, value: str, dampen_ms: int = 5000) -> str:
    arguments = {"action": "set", "name": "ping", "value": value, "dampen_ms": dampen_ms}
    return desk.ask("node.attribute", arguments)


def written(desk: Desk) -> dict[str, str]:
    return dict(desk.daemon.cib.status.nodes[N1].attributes)


def seen(desk: Desk) -> object:
    response = desk.response(desk.ask("node.attributes", {"lifetime": "reboot"}))
    assert response is not None
    return response.data["nodes"][0]["reboot"]


def test_it_is_answered_at_once_seen_at_once_and_written_when_quiet() -> None:
    desk = Desk()
    assert status_of(desk, publish(desk, "100")) == 0
    assert (seen(desk), written(desk)) == ({"ping": "100"}, {})
    desk.daemon.clock.run(4000)
    publish(desk, "200")
    desk.daemon.clock.run(4999)
    desk.daemon.settle()
    assert written(desk) == {}
    desk.daemon.clock.run(1)
    desk.daemon.settle()
    assert written(desk) == {"ping": "200"}
    assert desk.daemon.store.entries == []
    publish(desk, "200")
    desk.daemon.clock.run(60_000)
    assert desk.daemon.store.entries == [], "the same value again is written nowhere"


def test_without_a_leader_it_waits_and_the_newest_is_written() -> None:
    desk = Desk()
    desk.daemon.lead(None, term=2)
    publish(desk, "100")
    desk.daemon.clock.run(20_000)
    desk.daemon.store.entries.clear()
    publish(desk, "300")
    desk.daemon.clock.run(20_000)
    assert (seen(desk), written(desk)) == ({"ping": "300"}, {})
    desk.daemon.lead(N1, term=3)
    desk.daemon.settle()
    desk.daemon.clock.run(1)
    desk.daemon.settle()
    assert written(desk) == {"ping": "300"}


def test_what_is_written_at_once_is_not_overwritten_by_what_waited() -> None:
    desk = Desk()
    publish(desk, "100")
    assert desk.response(name := publish(desk, "200", dampen_ms=0)) is None
    desk.daemon.settle()
    assert status_of(desk, name) == 0
    desk.daemon.clock.run(60_000)
    desk.daemon.settle()
    assert written(desk) == {"ping": "200"}
    assert desk.daemon.store.entries == []
