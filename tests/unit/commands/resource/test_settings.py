"""Single settings of resources: what is set, and what is not for want of a value."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.json_value import Json
from haclusterd.reports.codes import Code
from tests.administered_clusters import NOW, running


@pytest.mark.parametrize(("section", "name"), [("meta", "priority"), ("params", "state"), ("utilization", "cpu")])
def test_a_value_that_was_forgotten_is_asked_for_instead_of_being_empty(section: str, name: str) -> None:
    cluster = running()
    arguments: dict[str, Json] = {"resource": "db", "section": section, "action": "set", "name": name}
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    outcome = registry.run("resource.setting", arguments, context)
    assert [report.code for report in outcome.reports] == [Code.MISSING_ARGUMENT]
    assert outcome.commands == ()
    with_value = registry.run("resource.setting", {**arguments, "value": "1"}, context)
    assert with_value.reports[-1].code is Code.CONFIGURATION_CHANGED
