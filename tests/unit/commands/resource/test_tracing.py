"""Which operations are traced, and what is left when they are not any more."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.ids import ResourceId
from haclusterd.reports.codes import Code
from tests.administered_clusters import NOW, Cluster, formed

TEXT = "primitive web ocf:haclusterd:dummy op monitor interval=10s timeout=20s\nprimitive power stonith:fence_local"


def with_(text: str) -> Cluster:
    """Return a cluster in which that is configured."""
    cluster = formed()
    cluster.configure(text)
    return cluster



def traced(cluster: Cluster, **arguments: str | bool) -> tuple[list[Code], dict[str, str]]:
    outcome = registry.run("resource.trace", arguments, Context(cluster.cib, NOW, "root@n1"))
    for command in outcome.commands:
        cluster.do(command)
    web = cluster.cib.configuration.resources[ResourceId("web")]
    assert isinstance(web, Primitive)
    found = {f"{each.name} {each.interval_ms}": effective(each.parameters) for each in web.operations}
    return [each.code for each in outcome.reports], {
        name: ",".join(f"{key}={value}" for key, value in values.items()) for name, values in found.items()
    }


def test_every_operation_is_traced_and_the_old_state_comes_back() -> None:
    cluster = with_(TEXT)
    before = cluster.cib.configuration
    _, found = traced(cluster, resource="web")
    assert found == {"monitor 10000": "trace_ra=1", "start 0": "trace_ra=1", "stop 0": "trace_ra=1"}
    traced(cluster, resource="web", end=True)
    assert cluster.cib.configuration == before


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"operation": "start"}, {"monitor 10000": "", "start 0": "trace_ra=1"}),
        ({"operation": "monitor", "directory": "/t"}, {"monitor 10000": "trace_ra=1,trace_dir=/t"}),
        ({"operation": "probe"}, {"monitor 10000": "", "monitor 0": "trace_ra=1"}),
    ],
)
def test_one_operation_is_traced(words: dict[str, str | bool], expected: dict[str, str]) -> None:
    assert traced(with_(TEXT), resource="web", **words)[1] == expected


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"resource": "power"}, Code.BAD_ARGUMENT),
        ({"resource": "wbe"}, Code.NO_SUCH_RESOURCE),
        ({"resource": "web", "operation": "monitor", "interval": "soon"}, Code.BAD_ARGUMENT),
        ({"resource": "web", "end": True}, Code.NOTHING_TO_DO),
    ],
)
def test_what_cannot_be_traced_is_said(words: dict[str, str | bool], code: Code) -> None:
    assert traced(with_(TEXT), **words)[0] == [code]
