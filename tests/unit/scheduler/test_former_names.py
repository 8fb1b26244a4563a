"""What plans do where one name is to run what may run under another (safety.md §1, "One service under two names").

`apply` judges each order beside them, so a plan that it would refuse does not settle here.
"""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.verdict import with_node
from haclusterd.model.graph import Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import ResultKind
from haclusterd.model.records import replace
from haclusterd.scheduler.model.digests import digest_of, restart_digest_of
from tests.scheduled_clusters import TERM, ScheduledCluster, configured

N1, N2, N3 = (NodeName(name) for name in ("n1", "n2", "n3"))
LEFT, RIGHT = ResourceId("left"), ResourceId("right")
PLAIN = """
primitive left ocf:haclusterd:dummy params note={left} {more}
primitive right ocf:haclusterd:dummy params note={right} {more}
location left-on-n1 left 100: n1
location right-on-n3 right 100: n3
"""
SHAPES = {
    "plain": PLAIN,
    "clones": PLAIN + "clone lefts left\nclone rights right\n",
    "unique": PLAIN + "clone lefts left meta globally-unique=true\nclone rights right meta globally-unique=true\n",
    "promotable": PLAIN + "ms lefts left\nms rights right\n",
    "group and plain": PLAIN + "primitive first ocf:haclusterd:dummy\ngroup both first left\n",
    "templates": PLAIN.replace("right ocf", "right @other").replace(":haclusterd:dummy params note={right}", "")
    + "rsc_template other ocf:haclusterd:dummy params note={right}\n",
    "rules": PLAIN.replace("params note={left}", "params note={left} params 2: rule #uname eq n7 note=7"),
}
DEVICE = "primitive power stonith:fence_local\n"


def exchange(cluster: ScheduledCluster, text: str, *, back: bool = False, more: str = "") -> None:
    left, right = ("1", "2") if back else ("2", "1")
    cluster.configure(configured(DEVICE + text.format(left=left, right=right, more=more)))


def formed(text: str = PLAIN, more: str = "") -> ScheduledCluster:
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    exchange(cluster, text, back=True, more=more)
    cluster.settle()
    return cluster


def begun(plan: Plan) -> set[str]:
    """Return what a plan may start or reload, at once or after something else."""
    names = (ActionName.START, ActionName.RELOAD_AGENT)
    return {str(action.resource) for action in plan.graph.actions.values() if action.name in names}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_exchange_settles_as_plain_resources_in_clones_and_groups(shape: str) -> None:
    cluster = formed(SHAPES[shape])
    exchange(cluster, SHAPES[shape])
    done = cluster.settle()
    assert sum("start" in line for line in done) >= 2


@pytest.mark.parametrize("shape", SHAPES)
def test_a_start_that_nobody_wants_any_more_holds_back_the_other_name(shape: str) -> None:
    cluster = formed(SHAPES[shape])
    exchange(cluster, SHAPES[shape])
    while True:
        action = next(iter(each for each in cluster.plan().graph.actions.values() if each.agent is not None))
        if action.name == ActionName.START and str(action.resource).startswith("right"):
            break
        cluster.perform(action)
    order = cluster.order(action)
    cluster.do(commands.VoidOrders(TERM, (order.key,)))
    exchange(cluster, SHAPES[shape], back=True)
    assert not any(name.startswith("left") for name in begun(cluster.plan()))
    cluster.running.add((order.resource, order.node))
    cluster.answer(order, ExitCode.OK)
    cluster.settle()


def test_what_runs_under_a_name_that_is_configured_no_more_holds_back_the_start_under_its_new_name() -> None:
    """Everything was probed already, so nothing else makes the start wait."""
    cluster = formed()
    renamed = DEVICE + PLAIN.replace("left", "shop").format(shop="1", right="2", more="")
    cluster.configure(configured(renamed))
    plan = cluster.plan()
    while not (stops := [each for each in plan.graph.actions.values() if each.name == ActionName.STOP]) or any(
        each.is_probe for each in plan.graph.actions.values()
    ):
        cluster.perform(next(each for each in plan.graph.actions.values() if each.is_probe))
        plan = cluster.plan()
    [start] = [each for each in plan.graph.actions.values() if each.name == ActionName.START]
    assert (start.resource, [each.resource for each in stops]) == ("shop", [LEFT])
    assert start.inputs
    cluster.settle()


@pytest.mark.parametrize("probes", ["true", "false"])
def test_what_a_unique_instance_ran_with_is_not_recorded_of_what_starts_in_its_place(probes: str) -> None:
    """Both are called `web:0`; without probes the old one's stop is the first of which the parameters are asked for."""
    cluster = ScheduledCluster.of(["n1", "n2"])
    text = f"property enable-startup-probes={probes}\n{DEVICE}primitive web ocf:haclusterd:dummy params note={{}}\n"
    cluster.configure(configured(text.format("old") + "clone webs web meta globally-unique=true"))
    cluster.settle()
    cluster.configure(configured(text.format("new") + "clone webs web"))
    begun = [each for each in cluster.plan().graph.actions.values() if each.is_named(ActionName.START) and each.agent]
    assert {each.definition for each in begun} == {digest_of({"note": "new"})}


@pytest.mark.parametrize("kind", [ResultKind.FINISHED, ResultKind.UNKNOWN])
def test_a_start_that_failed_holds_the_other_name_back_until_it_was_stopped(kind: ResultKind) -> None:
    """What has failed says nothing of its parameters, and may run all the same."""
    cluster = formed()
    exchange(cluster, PLAIN)
    while True:
        action = next(iter(each for each in cluster.plan().graph.actions.values() if each.agent is not None))
        if action.name == ActionName.START and action.resource == RIGHT:
            break
        cluster.perform(action)
    cluster.answer(cluster.order(action), ExitCode.ERROR, kind=kind)
    cluster.fence("n1")
    exchange(cluster, PLAIN, back=True)
    plan = cluster.plan()
    starts = [each for each in plan.graph.actions.values() if each.name == ActionName.START and each.resource == LEFT]
    assert starts
    assert all(each.inputs for each in starts)
    cluster.settle()
    assert {name for name, _ in cluster.running} >= {LEFT, RIGHT}


def test_what_has_arrived_by_a_live_migration_takes_other_parameters_over_by_a_restart() -> None:
    text = DEVICE + (
        "primitive left ocf:haclusterd:dummy params note={note} meta allow-migrate=true\n"
        "location there left 9: {node}\n"
    )
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.configure(configured(text.format(note=1, node="n1")))
    cluster.settle()
    cluster.configure(configured(text.format(note=1, node="n2")))
    assert "migrate_from" in " ".join(cluster.settle())
    cluster.configure(configured(text.format(note=2, node="n2")))
    assert "stop" in " ".join(cluster.settle())
    assert cluster.cib.status.nodes[N2].histories[LEFT].parameters == {"note": "2"}


def test_what_is_left_alone_under_one_name_starts_under_no_other() -> None:
    cluster = formed()
    text = PLAIN.replace("note={right} {more}", "note={right} meta is-managed=false")
    exchange(cluster, text)
    cluster.settle()
    assert (RIGHT, N3) in cluster.running
    assert "left" not in begun(cluster.plan())


def test_what_is_in_doubt_is_asked_first_also_when_all_its_failures_were_forgotten() -> None:
    cluster = formed()
    cluster.do(commands.CleanUp(RIGHT, None, reprobe=True))
    status = cluster.cib.status.nodes[N3]
    history = replace(status.histories[RIGHT], records={})
    cluster.cib = with_node(cluster.cib, replace(status, histories={**status.histories, RIGHT: history}))
    exchange(cluster, PLAIN)
    cluster.settle()
    assert cluster.running >= {(LEFT, N1), (RIGHT, N3)}


def test_two_do_not_exchange_by_a_reload() -> None:
    cluster = formed()
    for node, name in ((N1, LEFT), (N3, RIGHT)):
        status = cluster.cib.status.nodes[node]
        history = status.histories[name]
        start = replace(
            history.records["start_0"], restart_digest=restart_digest_of({}, ()), restart_parameters=()
        )
        history = replace(history, records={**history.records, "start_0": start})
        cluster.cib = with_node(cluster.cib, replace(status, histories={**status.histories, name: history}))
    before = cluster.cib
    cluster.configure(configured(DEVICE + PLAIN.format(left="1", right="3", more="")))
    assert "reload-agent" in " ".join(cluster.settle())
    cluster.cib = before
    exchange(cluster, PLAIN)
    done = " ".join(cluster.settle())
    assert "reload-agent" not in done
    assert done.count("start") >= 2


def test_a_lost_node_is_fenced_before_what_it_may_run_starts_under_another_name() -> None:
    cluster = formed()
    cluster.lose("n3")
    exchange(cluster, PLAIN)
    plan = cluster.plan()
    starts = [each for each in plan.graph.actions.values() if each.name == ActionName.START and each.resource == LEFT]
    assert all(each.inputs for each in starts)
    cluster.settle()
    assert (LEFT, N1) in cluster.running
