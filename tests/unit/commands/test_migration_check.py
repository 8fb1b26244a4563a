"""What `crm migrate check` says of a CIB: what keeps it out, what would be otherwise and why, what is only advice."""

from typing import Any

import pytest

from haclusterd.commands.migration_check import MAY_NOT_COME_IN, check_migration
from haclusterd.commands.migration_differences import Placed, placed
from haclusterd.model.agents import AgentFacts
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import Role
from tests.scheduled_clusters import configured
from tests.written_cibs import MEMBER, NO_FENCING, NOTHING, cib, pair

NOW = WallTime(1_767_268_800_000)
DUMMY = {"ocf:pacemaker:Dummy": AgentFacts(), "ocf:pacemaker:Stateful": AgentFacts(), "stonith:fence_x": AgentFacts()}
MONITORED = '<operations><op id="{0}-m" name="monitor" interval="10s" timeout="20s"/></operations>'
DEVICE = (
    '<primitive id="power" class="stonith" type="fence_x"><instance_attributes id="power-p">'
    '<nvpair id="power-l" name="pcmk_host_list" value="{0}"/></instance_attributes></primitive>'
)
ONLINE = f'<node_state id="1" uname="n1" {MEMBER}/><node_state id="2" uname="n2" {MEMBER}/>'
OFFLINE = 'in_ccm="false" crmd="offline" join="down" expected="member"'


def primitive(name: str, inside: str = "", kind: str = "Dummy") -> str:
    return (
        f'<primitive id="{name}" class="ocf" provider="pacemaker" type="{kind}">{inside}{MONITORED.format(name)}'
        "</primitive>"
    )


def record(name: str, operation: str = "start", agent: str = "Dummy") -> str:
    return (
        f'<lrm_resource id="{name}" class="ocf" provider="pacemaker" type="{agent}"><lrm_rsc_op id="{name}_last_0" '
        f'operation="{operation}" interval="0" call-id="3" rc-code="0" op-status="0" '
        f'transition-key="4:1:0:u" op-digest="{NOTHING}"/></lrm_resource>'
    )


def node(number: int, records: str = "", state: str = MEMBER, attributes: str = "") -> str:
    transient = (
        f'<transient_attributes id="{number}"><instance_attributes id="s{number}">{attributes}</instance_attributes>'
        "</transient_attributes>"
    )
    return (
        f'<node_state id="{number}" uname="n{number}" {state}>{transient if attributes else ""}'
        f'<lrm id="{number}"><lrm_resources>{records}</lrm_resources></lrm></node_state>'
    )


def checked(text: str) -> tuple[int, dict[str, Any]]:
    outcome = check_migration(text, "cib.xml", DUMMY, NOW)
    assert isinstance(outcome.data, dict), outcome.reports
    return int(outcome.exit_status or 0), outcome.data


def codes(found: dict[str, Any], chapter: str) -> list[str]:
    return [each["code"] for each in found[chapter]]


def reasons(text: str) -> dict[str, str]:
    return {each["resource"]: each["reason"] for each in checked(text)[1]["plan"]["differences"]}


def test_what_means_something_else_is_apart_from_advice() -> None:
    bare = '<primitive id="bare" class="ocf" provider="pacemaker" type="Dummy"/>'
    text = cib(
        properties=NO_FENCING + pair("no-quorum-policy", "ignore") + pair("cluster-delay", "60s")
        + pair("batch-limt", "4") + pair("migration-limit", "often") + pair("dc-version", "2.1.5"),
        resources=bare + primitive("web"),
        constraints='<rsc_location id="gone" rsc="web" node="n9" score="5"/>'
        '<rsc_order id="lost" first="web" then="nobody"/>',
        status=ONLINE,
    )  # fmt: skip
    exit_status, found = checked(text)
    assert exit_status == 0
    changed = " | ".join(each["message"] for each in found["changed"])
    assert sorted(codes(found, "changed")) == ["LEFT_OUT", "QUORUM_IGNORED"], changed
    assert "cluster-delay" in changed
    advice = " | ".join(each["message"] for each in found["advice"])
    assert {"NO_MONITOR", "UNKNOWN_NODE", "BAD_VALUE", "LEFT_OUT"} <= set(codes(found, "advice"))
    assert "batch-limt" in advice
    assert "migration-limit" in advice
    assert "there is no resource nobody" in advice
    assert [each["message"] for each in found["notes"]] == [
        "left out: the property dc-version=2.1.5: Pacemaker notes there its version"
    ]
    assert found["reservations"] == [
        "fencing is disabled, so that what a lost node ran is not started on another one",
        "2 lines mean something else here",
    ]


@pytest.mark.parametrize(
    "line",
    [
        pair("have-watchdog", "true"), pair("dc-deadtime", "5s"), pair("no-quorum-policy", "ignore"),
    ],
)  # fmt: skip
def test_a_property_that_does_something_else_here_is_no_advice(line: str) -> None:
    _, found = checked(cib(properties=NO_FENCING + line, resources=primitive("web"), status=ONLINE))
    assert (len(found["changed"]), found["advice"]) == (1, [])


def test_two_monitors_of_which_pacemaker_runs_none_mean_something_else() -> None:
    twice = primitive("web").replace("</operations>", '<op id="x" name="monitor" interval="10s" on-fail="stop"/>'
                                     "</operations>")  # fmt: skip
    _, found = checked(cib(properties=NO_FENCING, resources=twice, status=ONLINE))
    assert codes(found, "changed") == ["EQUAL_INTERVALS"]


def test_nodes_that_nobody_can_fence_are_a_reservation() -> None:
    text = cib(resources=primitive("web") + DEVICE.format("n1"), status=ONLINE)
    exit_status, found = checked(text)
    assert exit_status == 0
    assert found["reservations"] == ["nobody can fence n2, so that what runs there is not recovered"]


def test_a_file_without_a_status_says_that_nothing_is_known_of_stops() -> None:
    _, found = checked(cib(properties=NO_FENCING, resources=primitive("web")))
    assert found["reservations"][-1].startswith("what would stop or move is not known")


def test_instances_of_an_anonymous_clone_are_alike() -> None:
    text = "primitive a ocf:acme:T\nprimitive b ocf:acme:T\nclone ca a\nclone cb b meta globally-unique=true"

    def on(*nodes: str) -> Placed:
        state = {
            ResourceId(f"{name}:{number}"): {NodeName(node): Role.STARTED}
            for name in ("a", "b") for number, node in enumerate(nodes)
        }  # fmt: skip
        return placed(configured(text), state)

    one, other = on("n1", "n2"), on("n2", "n1")
    assert one["a"] == other["a"]
    assert one["b:0"] != other["b:0"]


# Why something is placed in another way


def test_an_instance_that_an_old_release_recorded_by_its_number_goes_on_running() -> None:
    clone = f'<clone id="c">{primitive("web")}</clone>'
    status = node(1, record("web:0")) + node(2, record("web:1"))
    exit_status, found = checked(cib(properties=NO_FENCING, resources=clone, status=status))
    assert (exit_status, found["plan"]["interrupted"], found["plan"]["differences"]) == (0, [], [])


def test_promotion_scores_by_number_keep_the_promoted_instance_where_it_is() -> None:
    clone = f'<master id="c">{primitive("db", kind="Stateful")}</master>'
    status = (
        node(1, record("db:0", "promote", agent="Stateful"), attributes=pair("master-db:0", "10"))
        + node(2, record("db:1", agent="Stateful"), attributes=pair("master-db:1", "5"))
    )  # fmt: skip
    exit_status, found = checked(cib(properties=NO_FENCING, resources=clone, status=status))
    assert (exit_status, found["plan"]["interrupted"], found["plan"]["differences"]) == (0, [], [])


def test_a_lost_node_that_nobody_can_fence_is_named_as_the_reason() -> None:
    resources = primitive("web", '<meta_attributes id="m"><nvpair id="n" name="requires" value="nothing"/>'
                                 "</meta_attributes>") + DEVICE.format("n1")  # fmt: skip
    text = cib(resources=resources, status=node(1) + node(2, record("web"), state=OFFLINE))
    assert reasons(text)["web"] == (
        "n2 is lost and cannot be fenced: what ran there is not started on another node (0005)"
    )


def test_what_is_left_alone_without_any_device_is_named_as_the_reason() -> None:
    found = reasons(cib(properties=pair("stonith-enabled", "true"), resources=primitive("web"), status=ONLINE))
    assert found["web"].startswith("Pacemaker leaves all as it is while no fence device is configured")


def test_what_loading_changes_is_named_with_its_line() -> None:
    watchdog = '<primitive id="dog" class="stonith" type="fence_watchdog"/>'
    found = reasons(cib(resources=primitive("web") + watchdog, status=ONLINE))
    assert found["dog"] == "loaded otherwise: dog (stonith:fence_watchdog) is kept as watchdog-fencing=true (line 5)"


def test_what_goes_with_another_resource_says_with_which() -> None:
    needs = '<meta_attributes id="m"><nvpair id="n" name="requires" value="nothing"/></meta_attributes>'
    text = cib(
        resources=primitive("web", needs) + primitive("ip", needs.replace('"m"', '"k"').replace('"n"', '"o"'))
        + DEVICE.format("n1"),
        constraints='<rsc_colocation id="c" rsc="ip" with-rsc="web" score="INFINITY"/>',
        status=node(1) + node(2, record("web"), state=OFFLINE),
    )  # fmt: skip
    found = reasons(text)
    assert found["web"].startswith("n2 is lost and cannot be fenced")
    assert found["ip"] == "it goes with web"


def test_the_exit_status_is_ten_when_it_may_not_come_in() -> None:
    exit_status, found = checked(cib(properties=NO_FENCING, resources='<bundle id="b"><podman image="i"/></bundle>'))
    assert (exit_status, found["may_come_in"]) == (MAY_NOT_COME_IN, False)


SCRIPT = """node n1
node n2
primitive web ocf:pacemaker:Dummy op monitor interval=10s
property have-watchdog=true stonith-enabled=false cluster-name=prod
"""


def test_a_script_of_crmsh_is_judged_without_what_runs() -> None:
    exit_status, found = checked(SCRIPT)
    assert (exit_status, found["may_come_in"], found["cluster"]) == (0, True, "prod")
    assert found["size"] == {"nodes": 2, "resources": 1, "constraints": 0}
    assert (codes(found, "changed"), found["plan"]["is_known"]) == (["LEFT_OUT"], False)
    assert found["changed"][0]["place"] == "cib.xml:4:10"


def test_what_a_script_says_wrong_is_listed_with_its_place() -> None:
    exit_status, found = checked(SCRIPT + "primitive gone ocf:none:Such\ncolocation c inf: web nobody\nfrob web\n")
    assert exit_status == MAY_NOT_COME_IN
    places = [each["place"] for each in found["refused"]]
    assert places == ["cib.xml:6:23", "cib.xml:7:1"]
    assert [each["agent"] for each in found["missing_agents"]] == ["ocf:none:Such"]


@pytest.mark.parametrize("text", ["", " \n", "hello", "<nothing/>", "primitive"])
def test_a_text_that_is_neither_a_cib_nor_a_script_is_refused(text: str) -> None:
    outcome = check_migration(text, "cib.xml", DUMMY, NOW)
    assert outcome.is_refused
    assert all(each.place is not None for each in outcome.reports)


def test_more_instances_than_can_be_planned_in_time_are_refused_without_a_plan() -> None:
    crowd = "".join(primitive(f"w{number}") for number in range(20))
    many = '<meta_attributes id="c-m"><nvpair id="c-n" name="clone-max" value="1000"/></meta_attributes>'
    text = cib(
        properties=NO_FENCING, resources=f'<clone id="c">{many}<group id="g">{crowd}</group></clone>', status=ONLINE
    )
    exit_status, found = checked(text)
    assert exit_status == MAY_NOT_COME_IN
    assert [each["message"] for each in found["refused"]] == [
        "c: clone-max: 1000 instances of 20 members are more than 1000 resources"
    ]
    assert found["plan"]["problem"] == found["refused"][0]["message"]
