"""What the configured resources become: instances, inherited meta-attributes, templates, what is left out."""

import pytest

from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import MultipleActive, Needs, Variant
from haclusterd.scheduler.model.inventory import Inventory
from tests.unpacked_cibs import block, found, inventory_of, meta, primitive
from tests.written_cibs import pair

GROUP = f'<group id="g">{primitive("a")}{primitive("b")}</group>'


def clone(inside: str, **pairs: str) -> str:
    return f'<clone id="c">{meta("c", **pairs)}{inside}</clone>'


def shape(inventory: Inventory) -> list[str]:
    return [f"{each.id} {each.variant.name}" for each in inventory.by_id.values()]


def test_a_clone_of_a_primitive_has_an_instance_for_each_node() -> None:
    inventory = inventory_of(clone(primitive("a")))
    c, first, second = (found(inventory, name) for name in ("c", "a:0", "a:1"))
    assert inventory.tops == [c]
    assert c.children == [first, second]
    assert (c.variant, c.is_anonymous_clone) == (Variant.CLONE, True)
    assert (c.definition.clone_max, c.definition.clone_node_max) == (2, 1)
    assert (second.parent, second.number, second.base_id, second.recorded_as) == (c, 1, "a", "a")
    assert ResourceId("a") not in inventory.by_id


def test_a_clone_of_a_group_numbers_the_members() -> None:
    inventory = inventory_of(clone(GROUP, **{"clone-max": "2", "globally-unique": "true"}))
    assert shape(inventory) == [
        "c CLONE", "g:0 GROUP", "a:0 PRIMITIVE", "b:0 PRIMITIVE", "g:1 GROUP", "a:1 PRIMITIVE", "b:1 PRIMITIVE",
    ]  # fmt: skip
    member = found(inventory, "b:1")
    assert (member.parent, member.number, member.recorded_as, member.top) == (
        found(inventory, "g:1"), 1, "b:1", found(inventory, "c"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pairs", "agent", "expected"),
    [
        ({}, "ocf:pacemaker:Dummy", (2, 1, False)),
        ({"clone-max": "5"}, "ocf:pacemaker:Dummy", (5, 1, False)),
        ({"clone-node-max": "3"}, "ocf:pacemaker:Dummy", (2, 3, True)),
        ({"clone-node-max": "3", "globally-unique": "false"}, "ocf:pacemaker:Dummy", (2, 1, False)),
        ({"clone-max": "6", "clone-node-max": "3"}, "lsb:web", (2, 1, False)),
        ({"clone-max": "6", "globally-unique": "true"}, "stonith:fence_dummy", (6, 1, True)),
        ({"clone-max": "0"}, "ocf:pacemaker:Dummy", (0, 1, False)),
    ],
)
def test_how_many_instances(pairs: dict[str, str], agent: str, expected: tuple[int, int, bool]) -> None:
    inventory = inventory_of(clone(primitive("a", agent=agent), **pairs))
    c = found(inventory, "c")
    assert (c.definition.clone_max, c.definition.clone_node_max, c.definition.is_unique) == expected
    assert len(c.children) == max(1, c.definition.clone_max)
    assert [child.found.is_removed for child in c.children] == [c.definition.clone_max == 0] * len(c.children)


def test_one_more_instance_than_there_should_be_is_to_be_removed() -> None:
    inventory = inventory_of(clone(GROUP, **{"clone-max": "1"}))
    assert inventory.make_instance is not None
    assert [leaf.id for leaf in inventory.primitives()] == ["a:0", "b:0"]
    extra = inventory.make_instance(found(inventory, "c"))
    assert [leaf.id for leaf in inventory.primitives()] == ["a:0", "b:0", "a:1", "b:1"]
    assert (extra.id, [leaf.found.is_removed for leaf in inventory.primitives()]) == ("g:1", [False, False, True, True])


@pytest.mark.parametrize(
    ("resources", "name", "stickiness"),
    [
        (primitive("a"), "a", 7),
        (clone(primitive("a")), "a:0", 7),
        (f'<group id="g">{meta("g", **{"resource-stickiness": "3"})}{primitive("a")}</group>', "a", 3),
        (f'<group id="g">{meta("g", **{"resource-stickiness": "3"})}{primitive("a")}</group>', "g", 0),
        (primitive("a", meta("a", **{"resource-stickiness": "#default"})), "a", 7),
        (clone(GROUP.replace('<group id="g">', f'<group id="g">{meta("g", **{"resource-stickiness": "3"})}'),
               **{"resource-stickiness": "4"}), "b:1", 3),
    ],
)  # fmt: skip
def test_the_nearest_word_counts(resources: str, name: str, stickiness: int) -> None:
    defaults = f"<rsc_defaults>{block('meta_attributes', 'd', **{'resource-stickiness': '7'})}</rsc_defaults>"
    assert found(inventory_of(resources, more=defaults), name).definition.stickiness == stickiness


def test_instances_stay_a_little_where_they_are() -> None:
    inventory = inventory_of(clone(GROUP) + primitive("z"))
    assert [found(inventory, name).definition.stickiness for name in ("c", "g:0", "a:0", "z")] == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("agent", "standard", "expected"),
    [("ocf:pacemaker:Dummy", "ocf", 5), ("systemd:web", "ocf", 0), ("systemd:web", "systemd", 5)],
)
def test_defaults_for_an_agent(agent: str, standard: str, expected: int) -> None:
    rule = f'<rule id="r"><rsc_expression id="e" class="{standard}"/></rule>'
    defaults = block("meta_attributes", "d", rule=rule, priority="5")
    inventory = inventory_of(primitive("a", agent=agent), more=f"<rsc_defaults>{defaults}</rsc_defaults>")
    assert found(inventory, "a").assignment.priority == expected


def test_invalid_words_count_as_unset_or_false() -> None:
    written = meta(
        "a",
        **{"is-managed": "perhaps", "critical": "perhaps", "priority": "high", "migration-threshold": "-4",
           "multiple-active": "dance", "target-role": "Sleeping", "requires": "luck", "maintenance": "perhaps"},
    )  # fmt: skip
    a = found(inventory_of(primitive("a", written)), "a")
    definition = a.definition
    assert (definition.is_managed, definition.is_maintenance, definition.is_critical) == (False, False, False)
    assert (definition.priority, definition.migration_threshold) == (0, INFINITY)
    assert (definition.multiple_active, definition.target_role) == (MultipleActive.STOP_START, Role.UNKNOWN)
    assert definition.needs is Needs.FENCING


@pytest.mark.parametrize(
    ("role", "promotable", "next_role"),
    [("Stopped", False, Role.STOPPED), ("Started", False, Role.UNKNOWN), ("Unpromoted", False, Role.UNKNOWN),
     ("Slave", True, Role.UNPROMOTED), ("Promoted", True, Role.UNKNOWN)],
)  # fmt: skip
def test_a_target_role(role: str, *, promotable: bool, next_role: Role) -> None:
    pairs = {"target-role": role, "promotable": str(promotable).lower()}
    inventory = inventory_of(clone(primitive("a"), **pairs))
    assert {found(inventory, name).found.next_role for name in ("c", "a:0", "a:1")} == {next_role}


@pytest.mark.parametrize(
    ("written", "agent", "properties", "needs", "unfencing"),
    [
        ("", "ocf:pacemaker:Dummy", "", Needs.FENCING, False),
        ("", "stonith:fence_dummy", "", Needs.QUORUM, False),
        ("", "ocf:pacemaker:remote", "", Needs.QUORUM, False),
        ("", "ocf:pacemaker:Dummy", pair("stonith-enabled", "false"), Needs.QUORUM, False),
        ("", "ocf:pacemaker:Dummy", pair("stonith-enabled", "false") + pair("no-quorum-policy", "ignore"),
         Needs.NOTHING, False),
        ("unfencing", "ocf:pacemaker:Dummy", "", Needs.FENCING, True),
        ("unfencing", "stonith:fence_dummy", "", Needs.QUORUM, False),
        ("unfencing", "ocf:pacemaker:Dummy", pair("stonith-enabled", "false"), Needs.QUORUM, False),
        ("nothing", "ocf:pacemaker:Dummy", "", Needs.NOTHING, False),
    ],
)  # fmt: skip
def test_what_a_start_needs(written: str, agent: str, properties: str, needs: Needs, *, unfencing: bool) -> None:
    asked = meta("a", requires=written) if written else ""
    a = found(inventory_of(primitive("a", asked, agent), properties=properties), "a")
    assert (a.definition.needs, a.definition.needs_unfencing) == (needs, unfencing)


def test_where_unfencing_is_used_everything_needs_it_by_default() -> None:
    device = primitive("f", meta("f", provides="unfencing"), "stonith:fence_dummy")
    inventory = inventory_of(device + primitive("a") + primitive("b", meta("b", requires="quorum")))
    assert [found(inventory, name).definition.needs_unfencing for name in ("f", "a", "b")] == [False, True, False]


def test_a_template_speaks_before_the_primitive() -> None:
    template = (
        '<template id="t" class="ocf" provider="pacemaker" type="Dummy">'
        + block("instance_attributes", "tp", fake="t", state="t")
        + '<operations><op id="t1" name="monitor" interval="10s"/><op id="t2" name="monitor" interval="20s" '
        'role="Promoted"/></operations></template>'
    )
    own = block("instance_attributes", "ap", fake="a") + (
        '<operations><op id="a1" name="monitor" interval="30s"/></operations>'
    )
    inventory = inventory_of(template + f'<primitive id="a" template="t">{own}</primitive>')
    a = found(inventory, "a")
    assert a.definition.parameters == {"fake": "a", "state": "t"}
    assert [operation.id for operation in a.definition.operations] == ["t2", "a1"]
    assert inventory.template_users == {"t": ["a"]}


def test_parameters_of_what_it_is_in_come_last() -> None:
    group = f'<group id="g">{block("instance_attributes", "gp", score="INFINITY", fake="g", state="g")}' + primitive(
        "a", block("instance_attributes", "ap", fake="a")
    )
    assert found(inventory_of(f"{group}</group>"), "a").definition.parameters == {"fake": "a", "state": "g"}


def test_maintenance_mode_holds_for_all() -> None:
    inventory = inventory_of(
        primitive("a", meta("a", **{"is-managed": "true"})) + clone(primitive("b")),
        properties=pair("maintenance-mode", "true"),
    )
    assert {(each.is_managed, each.found.is_maintenance) for each in inventory.by_id.values()} == {(False, True)}


def test_scores_of_nodes_are_everybodys() -> None:
    nodes = '<node id="1" uname="n1" score="5"/><node id="2" uname="n2"/>'
    inventory = inventory_of(clone(GROUP), nodes=nodes)
    assert all(each.base_scores.allowed == {"n1": 5, "n2": 0} for each in inventory.by_id.values())
    asymmetric = inventory_of(clone(GROUP), nodes=nodes, properties=pair("symmetric-cluster", "false"))
    assert all(each.base_scores.allowed == {} for each in asymmetric.by_id.values())


def test_priority_decides_the_order() -> None:
    high = [primitive(name, meta(name, priority="5")) for name in ("b", "e")]
    inventory = inventory_of(primitive("a") + high[0] + primitive("d") + high[1])
    assert [top.id for top in inventory.tops] == ["b", "e", "a", "d"]


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        (clone(primitive("a", agent="lsb:web"), promotable="true"),
         "c is left out: only agents of the class ocf can be promoted"),
        (clone('<group id="g"></group>'), "c is left out: g cannot be made"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_left_out(inside: str, problem: str) -> None:
    inventory = inventory_of(inside + primitive("z"))
    assert [top.id for top in inventory.tops] == ["z"]
    assert problem in inventory.warnings


def test_a_launcher_knows_what_runs_inside_it() -> None:
    inventory = inventory_of(
        primitive("vm") + primitive("a", meta("a", container="vm")) + primitive("b", meta("b", container="b"))
    )
    assert found(inventory, "vm").launched == [found(inventory, "a")]
    assert [found(inventory, name).launcher for name in ("a", "b")] == [found(inventory, "vm"), None]


def test_a_cloned_primitive_is_found_by_its_name_once_it_has_a_record() -> None:
    inventory = inventory_of(clone(primitive("a")))
    assert inventory.find("a") is None
    instance = found(inventory, "a:1")
    instance.found.history_id = ResourceId("a")
    inventory.by_history_id[ResourceId("a")] = instance
    assert inventory.find("a") is found(inventory, "c")
    assert inventory.find("a:1") is instance
