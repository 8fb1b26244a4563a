"""`crm cluster wait_for_startup`: it asks until somebody answers who has a leader, or until the time is over."""

import io
from collections.abc import Callable

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.session import Streams
from haclusterd.model.records import replace
from haclusterd.model.requests import Progress, Request, Response, ShownReport
from tests.administered_clusters import Cluster, ClusterClient, running


class Starting:
    """A daemon that does not listen yet when it is asked first."""

    def __init__(self, cluster: Cluster, refusals: int, status: int = 69) -> None:
        self.client = ClusterClient(cluster)
        self.refusals = refusals
        self.status = status

    def describe(self) -> str:
        return "live"

    def call(self, request: Request, progress: Callable[[Progress], None]) -> Response:
        self.refusals -= 1
        if self.refusals >= 0:
            return Response(request.id, self.status, (ShownReport("error", "NOT_RUNNING", "no daemon answers"),))
        return self.client.call(request, progress)


def waited(daemon: Starting, seconds: str) -> tuple[int, str]:
    out = io.StringIO()
    world = World(
        streams=Streams(io.StringIO(), out, out), environment={}, connect=lambda _: daemon, open_file=lambda _: daemon,
        setup=lambda _: Response("", 0), version=lambda: "0",
    )  # fmt: skip
    return run(["cluster", "wait_for_startup", seconds], world), out.getvalue()


def test_it_waits_until_the_daemon_answers() -> None:
    daemon = Starting(running(), 1)
    assert waited(daemon, "60") == (0, "INFO: the cluster is up; n1 leads\n")
    assert daemon.refusals == -1


def without_leader() -> Cluster:
    cluster = running()
    assert cluster.live is not None
    cluster.live = replace(cluster.live, leader=None)
    return cluster


@pytest.mark.parametrize(
    ("daemon", "missing"),
    [
        (Starting(running(), 99), "the daemon to answer"),
        (Starting(without_leader(), 0), "the cluster to have a leader"),
    ],
)
def test_it_gives_up_and_says_what_is_missing(daemon: Starting, missing: str) -> None:
    status, printed = waited(daemon, "0")
    assert (status, f"not reached in 0 s: {missing}" in printed) == (124, True), printed


def test_a_refusal_that_time_does_not_change_is_reported_at_once() -> None:
    assert waited(Starting(running(), 99, status=77), "60")[0] == 77
