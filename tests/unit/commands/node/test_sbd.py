"""The words of crmsh about sbd."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.model.configuration import effective
from haclusterd.model.properties import ClusterProperties
from haclusterd.reports.codes import Code
from haclusterd.verbs.answers.resource import Setting
from tests.administered_clusters import NOW, Cluster, formed

TEXT = "primitive poison stonith:fence_sbd params devices=/dev/a"


def with_(text: str) -> Cluster:
    """Return a cluster in which that is configured."""
    cluster = formed()
    cluster.configure(text)
    return cluster



def ask(cluster: Cluster, verb: str, **arguments: str | list[str]) -> Outcome:
    outcome = registry.run(verb, arguments, Context(cluster.cib, NOW, "root@n1"))
    for command in outcome.commands:
        cluster.do(command)
    return outcome


def disks(cluster: Cluster, name: str = "devices") -> str:
    (device,) = cluster.cib.configuration.fence_devices()
    return effective(device.parameters)[name]


def test_watchdogs_are_counted_on_and_no_longer() -> None:
    cluster = with_(TEXT)
    ask(cluster, "sbd.watchdog", state="on")
    assert ClusterProperties(cluster.cib.configuration).boolean("watchdog-fencing")
    ask(cluster, "sbd.watchdog", state="off")
    assert not ClusterProperties(cluster.cib.configuration).boolean("watchdog-fencing")


def test_disks_are_added_shown_and_taken_away() -> None:
    cluster = with_(TEXT)
    ask(cluster, "sbd.device", action="add", disks=["/dev/b", "/dev/a"])
    assert disks(cluster) == "/dev/a,/dev/b"
    shown = ask(cluster, "sbd.device", action="show").answer
    assert shown == Setting(of="poison", section="params", values={"devices": "/dev/a,/dev/b"})
    ask(cluster, "sbd.device", action="remove", disks=["/dev/a"])
    assert disks(cluster) == "/dev/b"


def test_disks_of_the_plugin_of_cluster_glue_are_separated_in_its_own_way() -> None:
    cluster = with_("primitive poison stonith:external/sbd params sbd_device='/dev/a;/dev/b'")
    ask(cluster, "sbd.device", action="add", disks=["/dev/c"])
    ask(cluster, "sbd.device", action="remove", disks=["/dev/a"])
    assert disks(cluster, "sbd_device") == "/dev/b;/dev/c"
    shown = ask(cluster, "sbd.device", action="show").answer
    assert shown == Setting(of="poison", section="params", values={"sbd_device": "/dev/b;/dev/c"})


@pytest.mark.parametrize(
    ("text", "action", "named", "code"),
    [
        (TEXT, "remove", ["/dev/a"], Code.BAD_ARGUMENT),
        (TEXT, "remove", ["/dev/x"], Code.UNKNOWN_OBJECT),
        (TEXT, "add", [], Code.BAD_ARGUMENT),
        (TEXT, "add", ["/dev/a"], Code.NOTHING_TO_DO),
        ("primitive a ocf:haclusterd:dummy", "show", [], Code.BAD_ARGUMENT),
        # Its disks stand in a file: one that is named would take the place of all of them.
        ("primitive a stonith:external/sbd", "add", ["/dev/a"], Code.BAD_ARGUMENT),
    ],
)
def test_what_is_not_done_with_disks_is_said(text: str, action: str, named: list[str], code: Code) -> None:
    assert [each.code for each in ask(with_(text), "sbd.device", action=action, disks=named).reports] == [code]
