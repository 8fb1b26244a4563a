"""Metrics: what is exported is what the cluster is, and rules and dashboard ask for nothing else."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from haclusterd.api.metrics import DOWN, exposition
from haclusterd.commands import registry
from haclusterd.commands.context import Context, HeardFrom
from haclusterd.machines.tally import CAUSES
from haclusterd.model.counted import Counted, Spans
from haclusterd.model.ids import NodeName
from haclusterd.model.loop_stalls import LoopStall
from haclusterd.model.records import replace
from tests.administered_clusters import NOW, SITUATIONS, Cluster, ListedPast, running

MONITORING = Path(__file__).parents[3] / "monitoring"
COUNTED = Counted(
    {"node-lost": 2}, {("start", "ok"): 3, ("monitor", "failed"): 1}, {"start": 4200}, {("n2", "reboot", "fenced"): 1},
    {cause: Spans().and_one(1500).and_one(700_000) for cause in CAUSES},
)  # fmt: skip


def exported(cluster: Cluster) -> str:
    assert cluster.live is not None
    live = replace(cluster.live, counted=COUNTED, loop_stalls=(LoopStall("main", 700, 30, 400),))
    outcome = registry.run("metrics", {}, Context(cluster.cib, NOW, "root@n1", live=live, past=ListedPast()))
    assert not outcome.reports
    assert isinstance(outcome.data, Mapping)
    return exposition(outcome.data["families"], 3).body.decode()


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        for each in family.samples:
            found.setdefault(each.name, []).append((each.labels, each.value))
    return found


def value(found: Mapping[str, Any], name: str, **labels: str) -> float:
    (only,) = [number for has, number in found[name] if labels.items() <= has.items()]
    return float(only)


@pytest.mark.parametrize("situation", sorted(SITUATIONS))
def test_every_situation_is_exported(situation: str) -> None:
    found = samples(exported(SITUATIONS[situation]()))
    assert value(found, "haclusterd_up") == 1
    assert all(len({frozenset(labels.items()) for labels, _ in each}) == len(each) for each in found.values())


def test_a_lost_node_and_what_ran_on_it() -> None:
    found = samples(exported(SITUATIONS["node-lost"]()))
    assert value(found, "haclusterd_node_state", node="n2", state="lost") == 1
    assert value(found, "haclusterd_resource_instances", resource="db", state="lost") == 1
    assert value(found, "haclusterd_fencings_open", target="n2") == 1
    assert value(found, "haclusterd_gravity") > 0
    assert value(found, "ha_cluster_pacemaker_nodes", node="n2", status="unclean") == 1
    assert value(found, "ha_cluster_pacemaker_nodes", node="n1", status="dc") == 1
    assert value(found, "ha_cluster_corosync_quorum_votes", type="total_votes") == 2


def test_spans_are_seconds_and_histograms_have_rising_buckets() -> None:
    found = samples(exported(running()))
    assert value(found, "haclusterd_outage_seconds_sum", cause="node-lost") == 701.5
    assert value(found, "haclusterd_outage_seconds_count", cause="planned") == 2
    buckets = [number for labels, number in found["haclusterd_outage_seconds_bucket"] if labels["cause"] == "failure"]
    assert buckets == sorted(buckets)
    assert value(found, "haclusterd_outage_seconds_bucket", cause="failure", le="2.0") == 1
    assert value(found, "haclusterd_outage_seconds_bucket", cause="failure", le="+Inf") == 2
    assert value(found, "haclusterd_operation_seconds_total", operation="start") == 4.2
    assert value(found, "haclusterd_loop_hold_seconds", loop="main", window="longest") == 0.7
    assert value(found, "ha_cluster_pacemaker_migration_threshold", resource="db") == float("inf")
    assert value(found, "ha_cluster_pacemaker_config_last_change") == (NOW - 300_000) / 1000


def test_resources_have_the_words_of_the_exporter() -> None:
    cluster = running()
    cluster.configure("group g a b\nprimitive a ocf:haclusterd:dummy\nprimitive b ocf:haclusterd:dummy\n")
    cluster.run("a", "n3")
    found = samples(exported(cluster))
    active = value(found, "ha_cluster_pacemaker_resources", resource="a", status="active", node="n3")
    assert (active, value(found, "ha_cluster_pacemaker_resources", resource="b", status="active")) == (1, 0)
    (labels, _), *_ = [each for each in found["ha_cluster_pacemaker_resources"] if each[0]["resource"] == "b"]
    assert (labels["role"], labels["group"], labels["clone"], labels["managed"]) == ("stopped", "g", "", "true")
    assert labels["agent"] == "ocf:haclusterd:dummy"


DASHBOARDS_OF_THE_EXPORTER: Mapping[str, tuple[str, ...]] = {
    "ha_cluster_pacemaker_nodes": ("node", "status", "type"),
    "ha_cluster_pacemaker_resources": ("resource", "node", "status", "role", "agent"),
    "ha_cluster_pacemaker_config_last_change": (),
    "ha_cluster_pacemaker_migration_threshold": ("resource", "node"),
    "ha_cluster_pacemaker_fail_count": ("resource", "node"),
    "ha_cluster_pacemaker_node_attributes": ("node", "name", "value"),
    "ha_cluster_pacemaker_location_constraints": ("constraint", "resource", "node", "role"),
    "ha_cluster_corosync_quorate": (),
    "ha_cluster_corosync_quorum_votes": ("type",),
    "ha_cluster_corosync_ring_errors": (),
    "ha_cluster_sbd_devices": ("device", "status"),
}
"""What the dashboards "HA Cluster details" and "Multi-cluster overview" of ha_cluster_exporter ask for, with the labels
that they choose, group or show by. `instance` and `job` are Prometheus' own; `node_` and `up` are other exporters'."""


SBD = "fence_sbd params devices=/dev/disk/by-id/a,/dev/disk/by-id/b"


def with_a_disk(device: str = SBD) -> Cluster:
    cluster = SITUATIONS["failed-and-back"]()
    cluster.configure(
        f"primitive sbd stonith:{device}\n"
        "location here web 200: n1\nnode n3 attributes rack=4\n"
    )
    return cluster


def test_every_query_of_the_exporters_dashboards_is_answered() -> None:
    found = samples(exported(with_a_disk()))
    for name, labels in DASHBOARDS_OF_THE_EXPORTER.items():
        assert found.get(name), name
        assert all(set(labels) <= set(has) for has, _ in found[name]), name
    statuses = {has["status"] for has, _ in found["ha_cluster_pacemaker_nodes"]}
    assert {"online", "unclean", "dc"} <= statuses
    votes = {has["type"] for has, _ in found["ha_cluster_corosync_quorum_votes"]}
    assert votes == {"expected_votes", "highest_expected", "total_votes", "quorum"}
    per_node = [has["node"] for has, _ in found["ha_cluster_pacemaker_nodes"] if has["status"] == "online"]
    assert len(per_node) == len(set(per_node)), "the dashboards count the nodes by these lines"


@pytest.mark.parametrize("device", [SBD, "external/sbd params sbd_device='/dev/disk/by-id/a;/dev/disk/by-id/b'"])
def test_a_disk_is_healthy_while_its_device_is(device: str) -> None:
    cluster = with_a_disk(device)
    found = samples(exported(cluster))
    assert value(found, "ha_cluster_sbd_devices", device="/dev/disk/by-id/a", status="unhealthy") == 1
    cluster.run("sbd", "n1")
    found = samples(exported(cluster))
    assert value(found, "ha_cluster_sbd_devices", device="/dev/disk/by-id/b", status="healthy") == 1
    assert len(found["ha_cluster_sbd_devices"]) == 2


def test_a_node_that_does_not_hear_this_one_is_a_ring_error() -> None:
    cluster = running()
    assert value(samples(exported(cluster)), "ha_cluster_corosync_ring_errors") == 0
    assert cluster.live is not None
    deaf = HeardFrom(10, hears={NodeName("n1"): 60_000, NodeName("n2"): 10})
    cluster.live = replace(cluster.live, heard={**cluster.live.heard, NodeName("n3"): deaf})
    assert value(samples(exported(cluster)), "ha_cluster_corosync_ring_errors") == 1


def test_a_daemon_that_does_not_run_is_nothing_but_down() -> None:
    found = samples(exposition(DOWN, 0).body.decode())
    assert set(found) == {"haclusterd_up", "haclusterd_api_event_streams"}
    assert value(found, "haclusterd_up") == 0


# Rules and dashboard.


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:ha_cluster|haclusterd)_[a-z0-9_]+\b", expression))


def expressions() -> dict[str, str]:
    rules = yaml.safe_load((MONITORING / "prometheus-rules.yaml").read_text())
    found = {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        found |= {f"{panel['title']} {each['refId']}": each["expr"] for each in panel["targets"]}
    return found


def test_rules_and_dashboard_ask_for_what_is_exported() -> None:
    known = set(samples(exported(SITUATIONS["node-lost"]())))
    asked = expressions()
    assert len(asked) > 25
    assert {name: names_in(each) - known for name, each in asked.items() if names_in(each) - known} == {}
    assert all(names_in(each) or "up{" in each for each in asked.values())
    labels = {word for each in asked.values() for word in re.findall(r"([a-z]+)(?:=|!=|=~)\"", each)}
    assert labels <= {"job", "state", "outcome", "window", "cause"}


def test_every_rule_says_what_is_wrong_and_what_to_do() -> None:
    rules = yaml.safe_load((MONITORING / "prometheus-rules.yaml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["alert"].startswith("Haclusterd")


def test_the_piece_of_prometheus_yaml_is_yaml_and_names_the_job_of_the_rules() -> None:
    (job,) = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())["scrape_configs"]
    assert job["job_name"] == "haclusterd"
    assert 'job="haclusterd"' in expressions()["HaclusterdApiAbsent"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_promtool_has_no_objection() -> None:
    file = MONITORING / "prometheus-rules.yaml"
    rules = subprocess.run(["promtool", "check", "rules", file], check=False, capture_output=True, text=True)
    assert rules.returncode == 0, rules.stderr
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=exported(running()), check=False, capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
