"""`configure.apply`: made so once, and never again; what a tag says is removed, nothing else is."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.planning.preview import preview
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.reports.codes import Code
from tests.administered_clusters import NOW, Cluster, formed, running

WEB = "primitive web ocf:haclusterd:dummy op monitor interval=10s timeout=20s\n"
LOG = "primitive log ocf:haclusterd:dummy op monitor interval=10s timeout=20s\n"
NEAR = "colocation near inf: log web\n"


def asked(cluster: Cluster, text: str, *, is_forced: bool = False, **arguments: Json) -> Outcome:
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, is_forced=is_forced)
    return registry.run("configure.apply", {"text": text, **arguments}, context)


def done(cluster: Cluster, text: str, *, is_forced: bool = False, **arguments: Json) -> bool:
    """Apply; return whether anything was changed, which the exit status says as well."""
    outcome = asked(cluster, text, is_forced=is_forced, **arguments)
    assert not outcome.is_refused, outcome.reports
    for command in outcome.commands:
        cluster.do(command)
    assert isinstance(outcome.data, dict)
    assert (outcome.exit_status == 10) is outcome.data["changed"] is bool(outcome.commands)
    return bool(outcome.data["changed"])


@pytest.mark.parametrize("prune", ["", "ours"])
def test_what_is_so_is_not_changed(prune: str) -> None:
    cluster = formed()
    more: dict[str, Json] = {"prune": prune} if prune else {}
    assert done(cluster, WEB + LOG + NEAR, **more)
    version = cluster.cib.version
    assert not done(cluster, WEB + LOG + NEAR, **more)
    assert cluster.cib.version == version
    assert done(cluster, WEB + LOG.replace("20s", "30s") + NEAR, **more)


def test_what_the_text_says_no_more_is_removed_with_its_tag_and_nothing_else_is() -> None:
    cluster = running()
    others = list(cluster.cib.configuration.resources)
    assert "log" not in others
    assert done(cluster, LOG + "primitive extra ocf:haclusterd:dummy\nlocation l9 log 5: n1\n", prune="ours")
    assert set(cluster.cib.configuration.tags["ours"].references) == {"log", "extra", "l9"}
    refused = asked(cluster, LOG, prune="ours")
    assert [each.code for each in refused.reports if each.severity == "error"] == [Code.UNSAFE]
    assert done(cluster, LOG, prune="ours", is_forced=True)
    assert list(cluster.cib.configuration.resources) == [*others, "log"]
    assert "l9" not in cluster.cib.configuration.constraints
    assert done(cluster, "# nothing\n", prune="ours", is_forced=True)
    assert list(cluster.cib.configuration.resources) == others
    assert "ours" not in cluster.cib.configuration.tags


def test_a_preview_says_whether_something_would_be_changed() -> None:
    cluster = formed()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, is_preview=True)
    shown = preview(context, registry.run("configure.apply", {"text": WEB}, context))
    assert (shown.exit_status, shown.commands) == (10, ())
    assert isinstance(shown.data, dict)
    assert shown.data["change"]["changed"] is True


@pytest.mark.parametrize(("prune", "code"), [("no tag", Code.BAD_ID), ("web", Code.EXISTS)])
def test_what_cannot_be_a_tag(prune: str, code: Code) -> None:
    cluster = formed()
    done(cluster, WEB)
    assert [each.code for each in asked(cluster, LOG, prune=prune).reports] == [code]


def test_what_is_wrong_with_a_text_changes_nothing() -> None:
    cluster = formed()
    refused = asked(cluster, WEB + "primitive\ncolocation c inf: web nothing\n")
    assert refused.is_refused
    assert refused.commands == ()


def test_the_difference_is_answered_where_it_is_asked_for_and_a_preview_has_the_same() -> None:
    cluster = formed()
    assert done(cluster, WEB)
    text = WEB.replace("20s", "30s") + LOG
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, is_preview=True)
    shown = preview(context, registry.run("configure.apply", {"text": text, "difference": True}, context))
    assert isinstance(shown.data, dict)
    asked_for = asked(cluster, text, difference=True)
    assert isinstance(asked_for.data, dict)
    difference = str(asked_for.data["difference"])
    assert shown.data["change"]["difference"] == difference
    lines = difference.splitlines()
    assert lines[:2] == ["--- version 1", "+++ version 2"]
    assert any(line.startswith("+primitive log") for line in lines)
    assert "+\top monitor interval=10s timeout=30s" in lines
    assert "difference" not in (asked(cluster, text).data or {})
    assert (asked(cluster, WEB, difference=True).data or {})["difference"] == ""


def test_the_difference_hides_secrets() -> None:
    text = "primitive pdu stonith:fence_apc params ip=192.0.2.9 username=cluster password=swordfish\n"
    answer = asked(formed(), text, difference=True)
    assert not answer.is_refused, answer.reports
    assert "+primitive pdu" in str(answer.data)
    assert "swordfish" not in str(answer.data)


STOPPED = ("resource.stop", {"resources": ["web"]}, "target-role=Stopped")
UNMANAGED = ("resource.manage", {"resources": ["web"], "unmanage": True}, "is-managed=false")


@pytest.mark.parametrize(("verb", "arguments", "kept"), [STOPPED, UNMANAGED])
def test_what_a_command_has_set_stays_until_the_text_says_otherwise(
    verb: str, arguments: dict[str, Json], kept: str
) -> None:
    cluster = formed()
    assert done(cluster, WEB + LOG)
    for command in registry.run(verb, arguments, Context(cluster.cib, NOW, "root@n1", live=cluster.live)).commands:
        cluster.do(command)
    again = asked(cluster, WEB + LOG)
    assert [each.parameters["what"] for each in again.reports if each.code is Code.KEPT] == [f"web: {kept}"]
    assert not done(cluster, WEB + LOG)
    assert done(cluster, WEB.replace("20s", "30s") + LOG)
    name = kept.partition("=")[0]
    assert cluster.cib.configuration.resources[ResourceId("web")].meta[0].get(name) == kept.partition("=")[2]
    said = WEB.replace("\n", " meta target-role=Started is-managed=true\n")
    assert done(cluster, said + LOG)
    assert cluster.cib.configuration.resources[ResourceId("web")].meta[0].get(name) in ("Started", "true")


def test_a_node_on_standby_stays_so() -> None:
    cluster = formed()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    for command in registry.run("node.standby", {"node": "n2"}, context).commands:
        cluster.do(command)
    assert done(cluster, "node n2 attributes rack=4\n")
    assert not done(cluster, "node n2 attributes rack=4\n")
    (block,) = cluster.cib.configuration.nodes[NodeName("n2")].attributes
    assert dict(block.pairs) == {"rack": "4", "standby": "on"}
