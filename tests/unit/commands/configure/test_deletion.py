"""Deletion changes nothing silently."""

import pytest

from haclusterd.commands.configure.deletion import delete
from haclusterd.model.configuration import Configuration, Group
from haclusterd.model.ids import ResourceId
from haclusterd.reports.codes import Code
from tests.administered_clusters import Cluster, formed, running

STOPPED = """
primitive a ocf:haclusterd:dummy
primitive b ocf:haclusterd:dummy
primitive c ocf:haclusterd:dummy
group g a b
group single c
location la a 5: n1
location lg g 5: n1
order o g single
property node-timeout=2s
node n1 attributes rack=1
node ghost attributes rack=2
"""


def stopped() -> Cluster:
    cluster = formed()
    cluster.configure(STOPPED)
    return cluster


def remaining(configuration: Configuration) -> str:
    sets = [block.id for block in configuration.properties]
    return " ".join([*configuration.resources, *configuration.constraints, *configuration.nodes, *sets])


@pytest.mark.parametrize(
    ("ids", "cascade", "left"),
    [
        ("la", False, "a b c g single lg o n1 ghost cib-bootstrap-options"),
        ("la lg o", False, "a b c g single n1 ghost cib-bootstrap-options"),
        ("a la g lg o", False, "b c single n1 ghost cib-bootstrap-options"),
        ("g", True, "a b c single la n1 ghost cib-bootstrap-options"),
        ("a", True, "b c g single lg o n1 ghost cib-bootstrap-options"),
        ("c", True, "a b g la lg n1 ghost cib-bootstrap-options"),
        ("ghost cib-bootstrap-options", False, "a b c g single la lg o n1"),
        ("la la", False, "a b c g single lg o n1 ghost cib-bootstrap-options"),
    ],
)
def test_delete_removes_the_named_objects_and_with_cascade_what_depends_on_them(
    ids: str, cascade: bool, left: str
) -> None:
    configuration, reports = delete(stopped().cib, ids.split(), cascade=cascade, is_forced=False)
    assert [report.message for report in reports] == []
    assert remaining(configuration) == left


def test_a_group_loses_the_member() -> None:
    configuration, _ = delete(stopped().cib, ["a"], cascade=True, is_forced=False)
    group = configuration.resources[ResourceId("g")]
    assert isinstance(group, Group)
    assert group.members == ("b",)


@pytest.mark.parametrize(
    ("ids", "code", "message"),
    [
        ("a", Code.HAS_DEPENDANTS, "a is used by: g, la"),
        ("g", Code.HAS_DEPENDANTS, "g is used by: lg, o"),
        ("nothing", Code.UNKNOWN_OBJECT, "there is no object 'nothing'"),
        ("n1", Code.UNSAFE, "n1 is a member of the cluster; its attributes would be lost"),
    ],
)
def test_what_does_not_go(ids: str, code: Code, message: str) -> None:
    before = stopped().cib
    configuration, reports = delete(before, ids.split(), cascade=False, is_forced=False)
    assert [(report.code, report.message) for report in reports] == [(code, message)]
    assert configuration == before.configuration


def test_what_runs_is_not_deleted_without_force() -> None:
    cluster = running()
    _, reports = delete(cluster.cib, ["db"], cascade=True, is_forced=False)
    assert [report.code for report in reports] == [Code.UNSAFE]
    configuration, reports = delete(cluster.cib, ["db"], cascade=True, is_forced=True)
    assert reports == ()
    assert "db" not in remaining(configuration)
