"""What crm_simulate saves: CIBs, the transition graph as XML and as a drawing."""

from xml.etree import ElementTree as ET

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.tools.simulated_steps import result_of
from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName, ResourceId
from tests.administered_clusters import NOW, Cluster, formed

CONFIGURED = """
primitive power stonith:fence_local params pcmk_host_list="n1 n2 n3" nodes_dir=/nodes
primitive a ocf:haclusterd:dummy params fake=1 op monitor interval=10s
primitive p ocf:haclusterd:stateful op monitor interval=10s role=Promoted op monitor interval=11s role=Unpromoted
clone pc p meta promotable=true notify=true
primitive late ocf:haclusterd:dummy params passwd=swordfish
"""


def clustered() -> Cluster:
    cluster = formed()
    cluster.configure(CONFIGURED)
    for name in ("power n3", "a n1", "p n1", "p n2"):
        cluster.run(*name.split())
    return cluster


def saved(cluster: Cluster, words: str, text: str = "") -> dict[str, str]:
    """Call the tool, and return the files that it writes."""
    if text:
        cluster.live = None
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    asked = {"tool": "crm_simulate", "words": words.split(), **({"text": text} if text else {})}
    data = registry.run("tool.run", asked, context).data
    assert isinstance(data, dict)
    assert data["err"] == ""
    files = data["files"]
    assert isinstance(files, dict)
    return {name: str(content) for name, content in files.items()}


def file_of(cluster: Cluster) -> str:
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    data = registry.run("tool.run", {"tool": "cibadmin", "words": ["-Q"]}, context).data
    assert isinstance(data, dict)
    return str(data["out"])


def test_the_input_is_as_supposed_and_the_output_as_it_is_in_the_end() -> None:
    cluster = clustered()
    text = file_of(cluster)
    files = saved(cluster, "-x cib.xml -S -d n2 -I in -O out", text)
    first, last = (read_cib(files[name], name).cib.status.nodes for name in ("in", "out"))
    assert not first[NodeName("n2")].histories
    assert "late" not in first[NodeName("n1")].histories
    assert any("late" in status.histories for status in last.values())
    assert saved(cluster, "-x cib.xml -R -O out", text) == {"out": text}
    assert saved(cluster, "-x cib.xml -A -I in", text) == {"in": text}


def test_nothing_is_left_to_do_in_what_was_saved() -> None:
    cluster = clustered()
    done = saved(cluster, "-x cib.xml -X", file_of(cluster))["cib.xml"]
    cluster.live = None
    context = Context(cluster.cib, NOW, "root@n1")
    asked = {"tool": "crm_simulate", "words": ["-x", "cib.xml", "-R"], "text": done}
    data = registry.run("tool.run", asked, context).data
    assert isinstance(data, dict)
    assert str(data["out"]).endswith("\nTransition Summary:\n")


def test_a_failure_is_in_the_output() -> None:
    cluster = clustered()
    out = saved(cluster, "-x cib.xml -F late_start_0@n1=1 -F late_start_0@n2=1 -F late_start_0@n3=1 -O out",
                file_of(cluster))["out"]  # fmt: skip
    nodes = read_cib(out, "out").cib.status.nodes.values()
    histories = [each.histories[ResourceId("late")] for each in nodes if "late" in each.histories]
    records = [each.records["start_0"] for each in histories if "start_0" in each.records]
    assert [int(each.exit_code) for each in records] == [1]
    assert 'name="fail-count-late#start_0"' in out


def test_a_graph_names_what_waits_for_what() -> None:
    root = ET.fromstring(saved(clustered(), "-L -R -d n1 -G graph")["graph"])
    assert root.tag == "transition_graph"
    keys = {each.get("id"): each.get("operation_key") for each in root.iterfind("synapse/action_set/*")}
    waits = {
        (str(keys[own.get("id")]), str(keys[before.get("id")]))
        for synapse in root for own in synapse.iterfind("action_set/*")
        for before in synapse.iterfind("inputs/trigger/*")
    }  # fmt: skip
    assert ("a_monitor_10000", "a_start_0") in waits
    (start,) = root.iterfind("synapse/action_set/rsc_op[@operation_key='a_start_0']")
    primitive, attributes = start.find("primitive"), start.find("attributes")
    assert primitive is not None
    assert attributes is not None
    assert dict(primitive.attrib) == {"id": "a", "class": "ocf", "provider": "haclusterd", "type": "dummy"}
    assert (attributes.get("fake"), attributes.get("CRM_meta_timeout")) == ("1", "20000")
    assert start.get("on_node_uuid") == {"n2": "2", "n3": "3"}[str(start.get("on_node"))]


def test_a_graph_of_a_running_cluster_shows_no_secret() -> None:
    files = saved(clustered(), "-L -R -G graph -D drawing -O out")
    assert "late_start_0" in files["graph"]
    assert [name for name, text in files.items() if "swordfish" in text] == []


def test_a_drawing_has_fencing_and_bookkeeping() -> None:
    drawn = saved(clustered(), "-L -R -f n1 -D drawing")["drawing"]
    assert drawn.startswith(' digraph "g" {\n')
    assert """"stonith 'reboot' n1" [ style=bold color="green" fontcolor="black"]\n""" in drawn
    assert '"pc_stop_0" [ style=bold color="green" fontcolor="orange"]\n' in drawn
    assert """"stonith 'reboot' n1" -> """ in drawn


@pytest.mark.parametrize("words", ["-L -X", "-p -X -S"])
def test_what_is_stored_in_place_is_a_file(words: str) -> None:
    cluster = clustered()
    cluster.live = None if "-p" in words else cluster.live
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    outcome = registry.run("tool.run", {"tool": "crm_simulate", "words": words.split(), "text": "<cib/>"}, context)
    assert isinstance(outcome.data, dict)
    assert (outcome.exit_status, "-x FILE" in str(outcome.data["err"])) == (64, True)


NAMED = """<cib validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0" have-quorum="1">
<configuration><crm_config><cluster_property_set id="o"><nvpair id="o1" name="stonith-enabled" value="false"/>
</cluster_property_set></crm_config><nodes><node id="hex-1" uname="hex-1"/></nodes><resources>
<primitive id="vm" class="ocf" provider="pacemaker" type="Dummy"/><group id="g">
<primitive id="q" class="ocf" provider="pacemaker" type="Dummy"/>
<primitive id="r" class="ocf" provider="pacemaker" type="Dummy"/></group></resources><constraints/></configuration>
<status><node_state id="hex-1" uname="hex-1" in_ccm="true" crmd="online" join="member" expected="member"/></status>
</cib>
"""


def answered(words: str, text: str) -> str:
    asked = {"tool": "crm_simulate", "words": words.split(), "text": text}
    data = registry.run("tool.run", asked, Context(Cib(), NOW, "root@n1")).data
    assert isinstance(data, dict)
    return str(data["out"])


def test_a_node_without_an_id_goes_by_its_name_in_a_file() -> None:
    cluster = clustered()
    out = saved(cluster, "-x cib.xml -S -O out", NAMED)["out"]
    assert (out.count("<node_state "), out.count('<node_state id="hex-1" ')) == (1, 1)
    assert "into /node_state 'hex-1'\n" in answered("-x cib.xml -F vm_start_0@hex-1=1", NAMED)


def test_what_waits_for_a_failure_does_not_come_to_pass() -> None:
    executed = answered("-x cib.xml -F q_start_0@hex-1=1", NAMED).partition("Executing Cluster Transition:\n")[2]
    assert "  * Resource action: q               start on hex-1\nPretending action " in executed
    assert "r               start" not in executed
    assert "g_running_0" not in executed


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a_b_monitor_10000@n1=7", ("a_b", "monitor", "10000", "n1", 7)),
        ("vm_migrate_to_0@n1=1", ("vm", "migrate_to", "0", "n1", 1)),
        ("vm:1_migrate_from_0@n.example.com=1", ("vm:1", "migrate_from", "0", "n.example.com", 1)),
    ],
)
def test_a_result_is_read(text: str, parts: tuple[str | int, ...]) -> None:
    found = result_of(text, "--op-fail")
    assert (found.resource, found.task, found.interval, found.node, found.code) == parts


GUEST = NAMED.replace('<primitive id="vm" class="ocf" provider="pacemaker" type="Dummy"/>', """
<primitive id="vm" class="ocf" provider="pacemaker" type="Dummy"><meta_attributes id="vm-meta">
<nvpair id="vm-node" name="remote-node" value="guest"/></meta_attributes></primitive>""")


def test_the_connection_to_a_guest_node_is_not_supposed_to_fail() -> None:
    asked = {"tool": "crm_simulate", "words": ["-x", "cib.xml", "-F", "guest_start_0@hex-1=1"], "text": GUEST}
    outcome = registry.run("tool.run", asked, Context(Cib(), NOW, "root@n1"))
    assert isinstance(outcome.data, dict)
    assert (outcome.exit_status, "'guest' is no primitive" in str(outcome.data["err"])) == (64, True)
