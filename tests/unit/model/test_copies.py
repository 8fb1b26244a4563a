"""How many copies `apply` lets be active: what plans make of the same words, wherever they stand."""

import pytest

from haclusterd.formats.crm.syntax import assemble, parse_script
from haclusterd.machines.no_quorum import promotable_resources
from haclusterd.model.configuration import Bundle, Configuration
from haclusterd.model.copies import Copies
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import replace

NODES = 3
PG = ResourceId("pg")
BASE = "primitive pg ocf:haclusterd:stateful\n"


def configured(text: str) -> Configuration:
    script = parse_script(BASE + text, "t")
    made = assemble(script.statements)
    assert (script.reports, made.reports) == ((), ())
    return made.configuration


@pytest.mark.parametrize(
    ("text", "most", "most_promoted"),
    [
        ("", 1, 1),
        ("clone pgs pg", NODES, 1),
        ("clone pgs pg meta promotable=true clone-max=2 promoted-max=2", 2, 2),
        ("clone pgs pg meta promotable=true\nrsc_defaults clone-max=1 promoted-max=2", 1, 2),
        ("clone pgs pg meta clone-max=2\nrsc_defaults clone-max=1", 2, 1),
        ("group g pg\nclone pgs g\nrsc_defaults clone-max=1", 1, 1),
        ("rsc_defaults clone-max=2 promoted-max=2", 1, 1),
        ("clone pgs pg\nrsc_defaults globally-unique=true clone-max=0", 0, 1),
    ],
)
def test_limits_are_the_clones_own_before_the_defaults(text: str, most: int, most_promoted: int) -> None:
    copies = Copies(configured(text), NODES)
    assert (copies.most(PG), copies.most_promoted(PG)) == (most, most_promoted)


@pytest.mark.parametrize(
    ("text", "is_promotable"),
    [
        ("clone pgs pg\nrsc_defaults promotable=true", True),
        ("clone pgs pg meta promotable=false\nrsc_defaults promotable=true", False),
        ("rsc_defaults promotable=true", False),
    ],
)
def test_what_can_be_promoted_by_default_is_demoted_by_a_node_alone(text: str, *, is_promotable: bool) -> None:
    assert (PG in promotable_resources(configured(text))) is is_promotable


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ("pg",)),
        ("group g pg", ("pg",)),
        ("clone pgs pg meta clone-max=2", ("pg",)),
        ("clone pgs pg meta globally-unique=true", ("pg:0",)),
        ("clone pgs pg meta clone-node-max=2", ("pg:0",)),
        ("clone pgs pg meta clone-node-max=2 globally-unique=false", ("pg",)),
        ("group g pg\nclone pgs g\nrsc_defaults globally-unique=true", ("pg:0",)),
        ("primitive unit systemd:unit\nclone units unit meta globally-unique=true", ("unit", "unit:0")),
        ("bundle b docker image=i primitive=pg", ("pg", "pg:0")),
        ("clone others other\nprimitive other ocf:haclusterd:stateful", ("pg", "unknown", "unknown:0")),
    ],
)
def test_a_name_has_a_number_where_instances_differ(text: str, names: tuple[str, ...]) -> None:
    copies = Copies(configured(text) if "bundle" not in text else bundled(), NODES)
    name = names[0].partition(":")[0]
    wanted = tuple(each for each in (name, f"{name}:0") if copies.may_be_wanted(ResourceId(each)))
    assert wanted == tuple(each for each in names if each.partition(":")[0] == name)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("clone pgs pg meta globally-unique=true clone-max=2", ("pg:0", "pg:1")),
        ("group g pg\nclone pgs g meta clone-node-max=2\nrsc_defaults clone-max=1", ("pg:0",)),
        ("clone pgs pg meta globally-unique=true", ("pg:0", "pg:1", "pg:2", "pg:3")),
        ("clone pgs pg meta globally-unique=true clone-max=0", ()),
    ],
)
def test_of_a_unique_clone_only_so_many_are_wanted_as_it_says(text: str, wanted: tuple[str, ...]) -> None:
    copies = Copies(configured(text), NODES)
    names = [f"pg:{number}" for number in range(4)]
    assert tuple(name for name in names if copies.may_be_wanted(ResourceId(name))) == wanted


def bundled() -> Configuration:
    """Return what runs in containers: how it is called is left to plans."""
    made = configured("")
    bundle = Bundle(ResourceId("b"), "docker", "image", primitive=PG)
    return replace(made, resources={**made.resources, bundle.id: bundle})
