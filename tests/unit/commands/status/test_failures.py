"""What status says of failures that are not forgotten."""

from haclusterd.commands.status.resource_state import failures
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.records import replace
from tests.unit.situations import N2, Cluster, issue, order, record, result


def test_a_start_that_failed_keeps_the_agents_words_after_the_stop_that_follows() -> None:
    log = Cluster()
    log.must(issue(order("k1", deadline_ms=5000)))
    failed = result("k1", exit_code=ExitCode.ERROR)
    log.must(record(replace(failed, exit_reason="bind: Address already in use")))
    log.must(issue(order("k2", ActionName.STOP, deadline_ms=5000)))
    log.must(record(result("k2", "stop", call_id=2)))
    assert "start_0" not in log.cib.status.nodes[N2].histories[failed.resource].records
    [failure] = failures(log.cib)
    assert failure.record is not None
    assert failure.record.exit_reason == "bind: Address already in use"
