"""What a bundle is made of: names, parameters, nodes; what makes it impossible."""

import pytest

from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Discovery
from haclusterd.scheduler.model.entities import NodeKind, Resource
from haclusterd.scheduler.model.inventory import Inventory
from tests.unpacked_cibs import block, found, inventory_of, meta, primitive, unpacked
from tests.written_cibs import cib, read

NOT_OCF = '<primitive id="app" class="lsb" type="web"/>'
INSIDE = primitive("app", block("utilization", "u", cpu="2"))


def bundle(engine: str, network: str = "", inside: str = "", more: str = "") -> str:
    reached = f"<network {network}/>" if network else ""
    return f'<bundle id="b"><{engine}/>{reached}{more}{inside}</bundle>'


def names(resources: list[Resource]) -> list[str]:
    return [resource.id for resource in resources]


def test_everything_that_is_made_in_its_order() -> None:
    inventory = inventory_of(bundle('docker image="i" replicas="2"', 'ip-range-start="10.0.0.253"', INSIDE))
    b = found(inventory, "b")
    assert names(b.children) == [
        "b-clone", "b-docker-0", "b-ip-10.0.0.253", "b-0", "b-docker-1", "b-ip-10.0.0.254", "b-1",
    ]  # fmt: skip
    assert names(found(inventory, "b-clone").children) == ["app:0", "app:1"]
    replica = b.replicas[1]
    assert (replica.container, replica.ip, replica.connection, replica.child) == tuple(
        found(inventory, name) for name in ("b-docker-1", "b-ip-10.0.0.254", "b-1", "app:1")
    )
    assert replica.node is inventory.nodes_by_name[replica.connection.id]
    assert names(inventory.tops) == ["b"]


@pytest.mark.parametrize(
    ("around", "inside", "is_asked"),
    [
        ({}, {"notify": "true"}, True),
        ({"notify": "false"}, {"notify": "true"}, True),
        ({"notify": "true"}, {"notify": "false"}, True),
        ({"notify": "true"}, {}, True),
        ({}, {"notify": "false"}, False),
        ({}, {}, False),
    ],
)
def test_the_bundle_or_what_is_inside_asks_for_notifications(
    around: dict[str, str], inside: dict[str, str], is_asked: bool
) -> None:
    more = meta("b", **around) if around else ""
    child = primitive("app", meta("app", **inside) if inside else "")
    inventory = inventory_of(bundle('docker image="i"', 'control-port="99"', child, more))
    assert found(inventory, "b-clone").definition.notifies is is_asked
    assert found(inventory, "b").definition.notifies is (around.get("notify") == "true")


@pytest.mark.parametrize(
    ("around", "inside", "is_by_host"),
    [("", "host", True), ("host", "", True), ("host", "else", True), ("else", "host", False), ("", "", False)],
)
def test_whose_attributes_count_for_a_bundle_says_the_bundle_or_else_what_is_inside(
    around: str, inside: str, is_by_host: bool
) -> None:
    target = "container-attribute-target"
    more = meta("b", **{target: around}) if around else ""
    child = primitive("app", meta("app", **{target: inside}) if inside else "")
    inventory = inventory_of(bundle('docker image="i"', 'ip-range-start="10.0.0.1"', child, more))
    names_of_parts = ("b", "b-docker-0", "b-ip-10.0.0.1", "b-0")
    assert [found(inventory, name).definition.uses_host_attributes for name in names_of_parts] == [is_by_host] * 4


def test_the_container_is_a_node_for_its_child_only() -> None:
    inventory = inventory_of(primitive("a") + bundle('docker image="i"', 'control-port="99"', INSIDE) + primitive("z"))
    node = inventory.nodes_by_name[found(inventory, "b-0").remote_node.name]
    assert (node.kind, node.is_bundle_node, node.base_score) == (NodeKind.GUEST, True, -INFINITY)
    assert node.connection is found(inventory, "b-0")
    child, connection = found(inventory, "app:0"), found(inventory, "b-0")
    assert (child.base_scores.allowed, child.base_scores.discovery) == ({"b-0": 500}, {"b-0": Discovery.EXCLUSIVE})
    assert found(inventory, "b-clone").base_scores.allowed == {"n1": 0, "n2": 0, "b-0": -INFINITY}
    assert all("b-0" not in found(inventory, name).base_scores.allowed for name in ("a", "z", "b-docker-0"))
    assert connection.launcher is found(inventory, "b-docker-0")
    assert connection.definition.is_nesting_allowed
    assert (found(inventory, "b-docker-0").definition.utilization, child.definition.utilization) == ({"cpu": 2}, {})


def test_a_node_that_was_known_before_is_forbidden_to_others() -> None:
    nodes = '<node id="1" uname="n1"/><node id="b-0" type="remote" uname="b-0"/>'
    inventory = inventory_of(
        primitive("a") + bundle('docker image="i"', 'control-port="99"', INSIDE) + primitive("z"), nodes=nodes
    )
    assert found(inventory, "a").base_scores.allowed == {"n1": 0, "b-0": -INFINITY}
    assert found(inventory, "a").base_scores.discovery == {"b-0": Discovery.NEVER}
    assert "b-0" not in found(inventory, "z").base_scores.allowed
    assert found(inventory, "b-0").base_scores.allowed == {"n1": 0}


def run_options(inventory: Inventory, name: str) -> str:
    return found(inventory, name).definition.parameters["run_opts"]


STORAGE = (
    '<storage><storage-mapping id="s1" source-dir-root="/data" target-dir="/t"/>'
    '<storage-mapping id="s2" source-dir="/a" target-dir="/b" options="rw"/></storage>'
)
LOGS = "/var/log/pacemaker/bundles/b-0"
MOUNTS = " -v /data/b-0:/t -v /a:/b:rw"
OWN_MOUNTS = " -v /etc/pacemaker/authkey:/etc/pacemaker/authkey -v /var/log/pacemaker/bundles/b-0:/var/log"


@pytest.mark.parametrize(
    ("engine", "network", "inside", "more", "container", "expected"),
    [
        ('docker image="i"', "", "", "", "b-docker-0", " --restart=no -e PCMK_stderr=1 -e PCMK_remote_port=3121 "),
        ('podman image="i" network="host" options="-o 1"', 'control-port="99"', INSIDE, STORAGE, "b-podman-0",
         f" -e PCMK_stderr=1 --net=host -e PCMK_remote_port=99{MOUNTS}{OWN_MOUNTS} -o 1 "),
        ('docker image="i"', 'control-port="99"', INSIDE, "", "b-docker-0",
         f" --restart=no -e PCMK_stderr=1 -e PCMK_remote_port=99{OWN_MOUNTS} -p 99:99 "),
        ('docker image="i" replicas="2"', 'ip-range-start="10.0.0.1"', INSIDE, "", "b-docker-0",
         " --restart=no -h b-0 -e PCMK_stderr=1 -e PCMK_remote_port=3121" + OWN_MOUNTS
         + " -p 10.0.0.1:3121:3121  --add-host=b-0:10.0.0.1 --add-host=b-1:10.0.0.2"),
        ('podman image="i"', 'ip-range-start="10.0.0.1" add-host="false"', "", "", "b-podman-0",
         " -h b-0 -e PCMK_stderr=1 -e PCMK_remote_port=3121  --hosts-entry=10.0.0.1=b-0"),
    ],
)  # fmt: skip
def test_what_a_container_is_run_with(
    engine: str, network: str, inside: str, more: str, container: str, expected: str
) -> None:
    inventory = inventory_of(bundle(engine, network, inside, more))
    assert run_options(inventory, container) == expected


def test_ports_of_a_container() -> None:
    ports = (
        '<network ip-range-start="10.0.0.1"><port-mapping id="p1" port="80"/>'
        '<port-mapping id="p2" range="1000-1010"/><port-mapping id="p3" port="81" internal-port="8081"/></network>'
    )
    inventory = inventory_of(bundle('podman image="i"', "", "", ports))
    published = " -p 10.0.0.1:80:80 -p 10.0.0.1:1000-1010:1000-1010 -p 10.0.0.1:81:8081 "
    assert published in run_options(inventory, "b-podman-0")


@pytest.mark.parametrize(
    ("engine", "inside", "expected"),
    [
        ('docker image="i"', INSIDE, {"run_cmd": "/usr/sbin/pacemaker-remoted", "mount_points": LOGS}),
        ('docker image="i" run-command="/x"', INSIDE, {"run_cmd": "/x", "mount_points": LOGS}),
        ('docker image="i" run-command="/x"', "", {"run_cmd": "/x", "mount_points": ""}),
        ('docker image="i"', "", {"mount_points": ""}),
    ],
)  # fmt: skip
def test_other_parameters_of_a_container(engine: str, inside: str, expected: dict[str, str]) -> None:
    inventory = inventory_of(bundle(engine, 'control-port="1"' if inside else "", inside))
    common = {"image": "i", "allow_pull": "true", "force_kill": "false", "reuse": "false", "monitor_cmd": "/bin/true"}
    parameters = found(inventory, "b-docker-0").definition.parameters
    assert parameters == common | expected | {"run_opts": parameters["run_opts"]}


@pytest.mark.parametrize(
    ("engine", "network", "count", "per_host", "unique", "promotable"),
    [
        ('docker image="i"', 'control-port="1"', 1, 1, False, False),
        ('docker image="i" promoted-max="3"', 'control-port="1"', 3, 1, False, True),
        ('docker image="i" promoted-max="1" replicas="2"', 'control-port="1"', 2, 1, False, True),
        ('docker image="i" replicas="4" replicas-per-host="2"', 'ip-range-start="10.0.0.1"', 4, 2, True, False),
        ('docker image="i" replicas="4" replicas-per-host="2"', 'control-port="1"', 4, 1, False, False),
    ],
)
def test_how_many(engine: str, network: str, count: int, per_host: int, *, unique: bool, promotable: bool) -> None:
    inventory = inventory_of(bundle(engine, network, INSIDE))
    b, inner = found(inventory, "b"), found(inventory, "b-master" if promotable else "b-clone")
    assert (b.definition.clone_max, b.definition.clone_node_max, b.definition.is_unique) == (count, per_host, unique)
    inside = inner.definition
    assert (inside.clone_max, inside.clone_node_max, inside.is_unique) == (count, per_host, unique)
    assert len(b.replicas) == len(inner.children) == count
    assert inner.definition.is_promotable is promotable


def test_what_is_said_of_a_bundle_holds_inside() -> None:
    inventory = inventory_of(bundle('docker image="i"', 'control-port="1"', INSIDE, meta("b", priority="4")))
    assert {resource.assignment.priority for resource in inventory.by_id.values()} == {4}


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        (bundle('docker image="i"', "", INSIDE), "with neither ip-range-start nor control-port nothing reaches app"),
        (bundle('docker image="i"', 'ip-range-start="somewhere"'), "there are no 1 addresses from somewhere on"),
        (bundle('docker image="i" replicas="2"', 'ip-range-start="10.255.254.254"'),
         "there are no 2 addresses from 10.255.254.254 on"),
        (bundle('docker image="i"') + primitive("b-docker-0"), "it needs the name b-docker-0 for itself"),
        (bundle('docker image="i" promoted-max="1"', 'control-port="1"', NOT_OCF),
         "only agents of the class ocf can be promoted"),
    ],
)  # fmt: skip
def test_a_bundle_that_cannot_be(resources: str, problem: str) -> None:
    inventory = inventory_of(resources)
    assert f"b is left out: {problem}" in inventory.warnings
    assert [each for each in inventory.by_id if each == "app" or each.startswith("b-clone")] == []
    assert "b" not in inventory.by_id


@pytest.mark.parametrize(
    ("first", "second"),
    [("10.0.0.9", "10.0.0.10"), ("10.0.0.254", "10.0.1.1"), ("10.0.254.254", "10.1.1.1"), ("fd00::ff", "fd00::100")],
)
def test_the_next_address(first: str, second: str) -> None:
    inventory = inventory_of(bundle('docker image="i" replicas="2"', f'ip-range-start="{first}"'))
    assert [replica.address for replica in found(inventory, "b").replicas] == [first, second]


def test_attributes_of_a_container_are_a_nodes() -> None:
    parameters = block("instance_attributes", "s", role="x")
    state = f'<node_state remote_node="true" id="b-0" uname="b-0"><transient_attributes id="t">{parameters}'
    inside = bundle('docker image="i"', 'control-port="1"', INSIDE)
    inventory, _ = unpacked(read(cib(resources=inside, status=f"{state}</transient_attributes></node_state>")).cib)
    node = found(inventory, "b-0").remote_node
    assert node is not None
    assert (node.attributes["#kind"], node.status.attributes) == ("container", {"role": "x"})
