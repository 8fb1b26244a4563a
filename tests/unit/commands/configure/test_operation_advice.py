"""`configure default-timeouts`: timeouts of operations become what the agent's metadata advise."""

from haclusterd.commands.configure.operation_advice import with_advised_timeouts
from haclusterd.model.agents import AgentFacts
from haclusterd.model.configuration import Primitive
from haclusterd.model.ids import ResourceId
from haclusterd.reports.codes import Code
from tests.administered_clusters import configured

AGENTS = {"ocf:haclusterd:dummy": AgentFacts(action_timeouts_ms={"start": 20_000, "stop": None, "monitor": 30_000,
                                                                  "reload": 5_000})}  # fmt: skip
WEB = "primitive web ocf:haclusterd:dummy op monitor interval=10s timeout=5s op monitor interval=11s role=Unpromoted\n"


def test_what_is_configured_gets_the_advice_and_so_does_a_start() -> None:
    made, reports = with_advised_timeouts(configured(WEB), ["web"], AGENTS)
    web = made.resources[ResourceId("web")]
    assert isinstance(web, Primitive)
    assert reports == ()
    assert [(each.id, each.name, each.interval_ms, each.timeout_ms) for each in web.operations] == [
        ("web-monitor-10s", "monitor", 10_000, 30_000),
        ("web-monitor-11s", "monitor", 11_000, 30_000),
        ("web-start-0", "start", 0, 20_000),
    ]


def test_what_cannot_be_advised_is_named_at_once() -> None:
    text = WEB + "primitive db ocf:heartbeat:pgsql\ngroup site web\n"
    _, reports = with_advised_timeouts(configured(text), ["db", "site", "nothing"], AGENTS)
    assert [each.code for each in reports] == [Code.UNKNOWN_AGENT, Code.NO_SUCH_RESOURCE, Code.NO_SUCH_RESOURCE]
    assert [each.code for each in with_advised_timeouts(configured(text), ["web"], None)[1]] == [Code.NOT_OFFLINE]
