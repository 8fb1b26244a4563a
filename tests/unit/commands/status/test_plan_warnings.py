"""What the DC's newest plan warns of stands in its status."""

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.records import replace
from haclusterd.verbs.answers.status import Status
from tests.administered_clusters import NOW, running


def test_what_the_newest_plan_warns_of_is_shown() -> None:
    cluster = running()
    live = replace(cluster.live, warnings=("the pacer waits",), plan_warnings=("site is left out: it has no members",))
    answer = registry.run("status", {}, Context(cluster.cib, NOW, "root@n1", live=live)).answer
    assert isinstance(answer, Status)
    assert answer.warnings == ("the pacer waits", "site is left out: it has no members")
