"""What `assist` makes of resources."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.formats.crm.syntax import show
from haclusterd.reports.codes import Code
from tests.administered_clusters import NOW, Cluster, formed

TEXT = "primitive a ocf:haclusterd:dummy\nprimitive b ocf:haclusterd:dummy\nprimitive s ocf:haclusterd:stateful"


def with_(text: str) -> Cluster:
    """Return a cluster in which that is configured."""
    cluster = formed()
    cluster.configure(text)
    return cluster



def assisted(cluster: Cluster, verb: str, *resources: str, **more: str) -> list[Code]:
    context = Context(cluster.cib, NOW, "root@n1")
    outcome = registry.run(verb, {"resources": list(resources), **more}, context)
    for command in outcome.commands:
        cluster.do(command)
    return [each.code for each in outcome.reports if each.code is not Code.NO_MONITOR]


def test_a_weak_bond_is_a_set_without_order_beside_a_dummy() -> None:
    cluster = with_(TEXT)
    assisted(cluster, "assist.weak_bond", "a", "b")
    assert "colocation place-constraint-1 inf: ( a b ) place-dummy-1" in show(cluster.cib.configuration)
    assisted(cluster, "assist.weak_bond", "a", "b")
    assert "colocation place-constraint-2 inf: ( a b ) place-dummy-2" in show(cluster.cib.configuration)


def test_primitives_of_one_agent_get_a_template() -> None:
    cluster = with_(TEXT)
    assisted(cluster, "assist.template", "a", "b", id="dummies")
    text = show(cluster.cib.configuration)
    assert "rsc_template dummies ocf:haclusterd:dummy" in text
    assert "primitive a @dummies" in text
    assert assisted(cluster, "assist.template", "a") == [Code.BAD_ARGUMENT]


@pytest.mark.parametrize(
    ("verb", "resources", "code"),
    [
        ("assist.weak_bond", ("a",), Code.BAD_ARGUMENT),
        ("assist.weak_bond", ("a", "x"), Code.NO_SUCH_RESOURCE),
        ("assist.template", ("a", "s"), Code.BAD_ARGUMENT),
    ],
)
def test_what_cannot_be_assisted_is_refused(verb: str, resources: tuple[str, ...], code: Code) -> None:
    assert assisted(with_(TEXT), verb, *resources) == [code]
