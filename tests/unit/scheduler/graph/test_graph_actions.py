"""What an action of the graph carries for the agent: parameters, meta, timeouts, expected codes, digests."""

from haclusterd.model.graph import ActionKind, GraphAction
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.ocf import ExitCode
from tests.scheduled_clusters import ScheduledCluster, action_line, configured

CONFIGURATION = """
primitive power stonith:fence_local params pcmk_monitor_timeout=7s
primitive web ocf:haclusterd:http-service params port=80 host=a \\
    op start timeout=40s op monitor interval=10s timeout=5s OCF_CHECK_LEVEL=10 op monitor interval=60s timeout=50s
op_defaults timeout=33s
"""


def planned(cluster: ScheduledCluster) -> dict[str, GraphAction]:
    return {action_line(action): action for action in cluster.plan().graph.actions.values()}


def a_cluster(configuration: str = CONFIGURATION) -> ScheduledCluster:
    cluster = ScheduledCluster.of(["n1", "n2"])
    cluster.configure(configured(configuration))
    return cluster


def test_a_probe() -> None:
    probe = planned(a_cluster())["probe web on n1"]
    assert probe.is_probe
    assert probe.target_exit_code is ExitCode.NOT_RUNNING
    assert probe.timeout_ms == 5000, "of the monitor with the shortest interval"
    assert probe.meta == {
        "name": "monitor", "on_node": "n1", "on_node_uuid": "n1", "timeout": "5000", "interval": "0",
        "op_target_rc": "7",
    }  # fmt: skip
    assert probe.agent == AgentReference("ocf", "haclusterd", "http-service")


def test_a_start_and_its_monitor() -> None:
    actions = planned(a_cluster())
    start, monitor = actions["start web on n2"], actions["monitor/10s web on n2"]
    assert (start.timeout_ms, start.parameters) == (40_000, {"port": "80", "host": "a"})
    assert "op_target_rc" not in start.meta
    assert (monitor.timeout_ms, monitor.meta["interval"], monitor.target_exit_code) == (5000, "10000", ExitCode.OK)
    assert monitor.parameters == {"port": "80", "host": "a", "OCF_CHECK_LEVEL": "10"}
    assert actions["monitor/60s web on n2"].timeout_ms == 50_000
    assert len({start.digest, monitor.digest, ""}) == 3


def test_a_fence_devices_monitor_timeout() -> None:
    actions = planned(a_cluster())
    assert actions["probe power on n1"].timeout_ms == 7000
    assert actions["start power on n1"].timeout_ms == 7000


def test_a_stop_uses_what_the_start_used() -> None:
    cluster = a_cluster()
    cluster.settle()
    cluster.configure(configured(CONFIGURATION.replace("port=80", "port=81")))
    actions = planned(cluster)
    assert actions["stop web on n2"].parameters["port"] == "80"
    assert actions["stop web on n2"].timeout_ms == 33_000, "the operation default"
    assert actions["start web on n2"].parameters["port"] == "81"


def test_a_stop_has_parameters_of_its_own_whatever_the_definition_is() -> None:
    own = CONFIGURATION.replace("op start", "op stop timeout=9s OCF_CHECK_LEVEL=20 host=b op start")
    cluster = a_cluster(own)
    cluster.settle()
    cluster.configure(configured(own.replace("port=80", "port=81")))
    stop = planned(cluster)["stop web on n2"]
    assert stop.timeout_ms == 9000
    assert stop.parameters == {"port": "80", "host": "a", "OCF_CHECK_LEVEL": "20"}, "those of what runs win"
    cluster.configure(configured(own.replace("OCF_CHECK_LEVEL=20", "OCF_CHECK_LEVEL=30").replace("80", "81")))
    assert planned(cluster)["stop web on n2"].parameters["OCF_CHECK_LEVEL"] == "30", "as configured now"


def test_what_only_a_start_had_ends_with_it_whatever_the_definition_is() -> None:
    own = CONFIGURATION.replace("op start timeout=40s", "op start timeout=40s OCF_CHECK_LEVEL=5 host=b warm_up=yes")
    cluster = a_cluster(own)
    start = planned(cluster)["start web on n2"]
    assert start.parameters == {"port": "80", "host": "b", "OCF_CHECK_LEVEL": "5", "warm_up": "yes"}
    cluster.settle()
    kept = cluster.cib.status.nodes[NodeName("n2")].histories[ResourceId("web")]
    assert (kept.parameters, kept.definition) == ({"port": "80", "host": "a"}, start.definition)
    assert not planned(cluster), "nothing has changed"
    cluster.configure(configured(own.replace("port=80", "port=81").replace("warm_up=yes", "")))
    stop = planned(cluster)["stop web on n2"]
    assert stop.parameters == {"port": "80", "host": "a"}
    assert stop.definition == start.definition


def test_a_stop_of_what_is_configured_as_it_was_started_has_its_own_parameters() -> None:
    own = CONFIGURATION.replace("op start", "op stop OCF_CHECK_LEVEL=20 host=b op start")
    cluster = a_cluster(own)
    cluster.settle()
    cluster.configure(configured(own + "\nlocation away web -inf: n2\n"))
    assert planned(cluster)["stop web on n2"].parameters == {"port": "80", "host": "b", "OCF_CHECK_LEVEL": "20"}


def test_another_agent_is_stopped_without_parameters_of_the_new_ones_stop() -> None:
    cluster = a_cluster()
    cluster.settle()
    other = CONFIGURATION.replace("http-service", "dummy").replace("op start", "op stop OCF_CHECK_LEVEL=20 op start")
    cluster.configure(configured(other))
    assert planned(cluster)["stop web on n2"].parameters == {"port": "80", "host": "a"}


def test_another_agent_is_stopped_as_it_was_started() -> None:
    cluster = a_cluster()
    cluster.settle()
    cluster.configure(configured(CONFIGURATION.replace("http-service", "dummy")))
    actions = planned(cluster)
    assert str(actions["stop web on n2"].agent) == "ocf:haclusterd:http-service"
    assert str(actions["start web on n2"].agent) == "ocf:haclusterd:dummy"


def test_a_service_whose_name_a_fence_device_has_taken_is_stopped_as_it_was_started() -> None:
    cluster = a_cluster()
    cluster.settle()
    cluster.configure(configured("primitive power stonith:fence_local\nprimitive web stonith:fence_local\n"))
    actions = planned(cluster)
    assert str(actions["stop web on n2"].agent) == "ocf:haclusterd:http-service"
    assert str(actions["start web on n2"].agent) == "stonith:fence_local"


def test_a_fence_action_names_the_life_that_must_end() -> None:
    cluster = a_cluster()
    cluster.settle()
    cluster.lose("n1")
    fence = planned(cluster)["fence n1 (reboot)"]
    assert fence.kind is ActionKind.FENCE
    assert fence.target_incarnation == cluster.cib.status.nodes[NodeName("n1")].incarnation
    assert (fence.reason, fence.timeout_ms) == ("silent for 2034 ms", 60_000)


def test_the_dc_is_fenced_last() -> None:
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.configure(configured("primitive power stonith:fence_local\n"))
    cluster.settle()
    cluster.lose("n1")
    cluster.lose("n2")
    actions = planned(cluster)
    assert actions["fence n1 (reboot)"].inputs == (actions["fence n2 (reboot)"].id,)


def test_a_removed_resource_is_stopped_by_its_recorded_agent() -> None:
    cluster = a_cluster()
    cluster.settle()
    cluster.configure(configured("primitive power stonith:fence_local\n"))
    stop = planned(cluster)["stop web on n2"]
    assert (stop.resource, str(stop.agent)) == (ResourceId("web"), "ocf:haclusterd:http-service")
    assert stop.parameters["port"] == "80"
    cluster.settle()
    assert cluster.running == {(ResourceId("power"), NodeName("n1"))}
