"""What status says of resources that were deleted and run nevertheless."""

from haclusterd.cib.edits import PutSets
from haclusterd.commands.context import Context
from haclusterd.commands.status.headlines import headlines
from haclusterd.commands.status.overview import overview_of
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.records import replace
from tests.unit.situations import DB, Cluster, issue, order, record, result, started


def said_of_it(log: Cluster) -> list[tuple[str, str]]:
    context = Context(log.cib, WallTime(10_000), "root@n1")
    found = headlines(context, overview_of(context))
    return [(each.text, each.remedy) for each in found if each.text.startswith(f"{DB} was deleted")]


def test_one_whose_stop_has_failed_is_named_with_its_node_and_what_to_do() -> None:
    log = Cluster()
    started(log)
    assert said_of_it(log) == []
    log.must(issue(order("k9", ActionName.STOP, deadline_ms=5000)))
    failed = replace(result("k9", "stop", exit_code=ExitCode.ERROR, call_id=9), exit_reason="it hangs")
    log.must(record(failed))
    assert said_of_it(log) == [
        (f"{DB} was deleted, and has failed on n2: stop: it hangs (error)", f"crm resource cleanup {DB}")
    ]


def test_one_that_nobody_stops_is_named_too() -> None:
    log = Cluster()
    started(log)
    stays = AttributeSet("cib-bootstrap-options", (("stop-removed-resources", "false"),))
    log.configure(PutSets("properties", (stays,)))
    assert said_of_it(log) == [(f"{DB} was deleted, and runs on n2: stop-removed-resources is false", "")]
