"""What Pacemaker's tools change here, and what they refuse; tests/golden/test_tools.py compares what they print."""

import re
from xml.etree import ElementTree as ET

import pytest

from haclusterd.adapters.agents.metadata import read_agent_metadata
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.permissions import Access
from haclusterd.commands.tools.tools import TOOLS
from haclusterd.model.agents import AgentFacts, ParameterFacts
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import Location, effective
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import AgentReference, FenceKey, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExitCode
from haclusterd.model.records import replace
from haclusterd.model.requests import Request
from haclusterd.scheduler.model.digests import digest_of, pacemaker_digest, restart_digest_of
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.verb import Cost, Permission
from tests.administered_clusters import (
    NOW,
    Cluster,
    ClusterClient,
    fence_order,
    fencing_record,
    formed,
    running,
)
from tests.golden.busy_cluster import busy
from tests.unit.commands.tools.tool_calls import arguments, run

RUN = registry.VERBS["tool.run"]


DIALOGUES = {
    "cluster properties, agents' own too, by set": """
        crm_attribute -t crm_config -n r_REPL_INFO -s redis_replication -v n1 -q ->
        crm_attribute -t crm_config -n r_REPL_INFO -s redis_replication --query -q -> n1
        crm_attribute -t crm_config -n r_REPL_INFO -s other -G -> [105]
        crm_attribute --name standalone_node --update n1 ->
        crm_attribute --query --name standalone_node -> scope=crm_config  name=standalone_node value=n1
        crm_attribute -n standalone_node -D -> Deleted crm_config attribute: id=cib-bootstrap-options-st...
        crm_attribute -n standalone_node -D ->
        crm_attribute --type crm_config --query --name dc-version -> scope=crm_config  name=dc-version value=2.1.5-...
        crm_attribute -G -n cluster-infrastructure -q -> haclusterd
        crm_attribute -G -n dc-version -s redis_replication -> [105]
        crm_attribute -n maintenance-mode -v true ->
        crm_attribute -n maintenance-mode -G -q -> true
        crm_attribute -n stonith-enabled -v true ->
        crm_attribute -n stonith-enabled -G -q -> true
        crm_attribute -n maintenance-mode -v soon -> [2]
        crm_attribute -n maintenanc-mode -v true -> [78]
        crm_attribute -t rsc_defaults -n migration-threshold -v 3 ->
        crm_attribute -t rsc_defaults -n migration-threshold -G -q -> 3
        crm_attribute -t rsc_defaults -n migration-threshold -D -> Deleted rsc_defaults ...
    """,
    "capacities of nodes": """
        crm_attribute --type nodes --node n1 -z -n cpu -v 4 ->
        crm_attribute --quiet -t nodes --node n1 -z -n cpu -> 4
        crm_attribute -t nodes -N n1 -z -n cpu -D -> Deleted nodes attribute: id=nodes-1-utilization-cpu name=cpu
        crm_attribute -N n1 -l reboot -z -n cpu -v 4 -> [64]
    """,
    "nodes by their numbers": """
        crm_attribute -N 2 -l reboot -n a -v 1 ->
        crm_attribute -N n2 -l reboot -n a -G -q -> 1
        crm_node -N 3 -> n3
        crm_node -N 9 -> [68]
        crm_node -N 0 -> n1
    """,
    "parameters of resources": """
        crm_resource -r db -z -p cpu -v 2 -> Set 'db' option: id=db-utilization-cpu set=db-utilization name=cpu value=2
        crm_resource -Q -r db -z -g cpu -> 2
        crm_resource --resource=db --utilization --delete-parameter=cpu -> Deleted 'db' option: id=db-utilization...
        crm_resource --resource=db --utilization --delete-parameter=cpu ->
        crm_resource -r db -m -p is-managed -v false -> Set 'db' option: id=db-meta_attributes-is-managed ...
        crm_resource -r db -m -g is-managed -> false
        crm_resource -r db -p state -v /x -> Set 'db' option: id=db-instance_attributes-state ...
        crm_resource -r db -g state -> /x
        crm_resource -r db -p state -> [64]
        crm_resource -r none -p state -v 1 -> [105]
    """,
    "bans and moves": """
        crm_resource -B -r db -N n2 -Q ->
        crm_resource -U -r db -> Removing constraint: cli-ban-db-on-n2
        crm_resource -U -r db ->
        crm_resource -M -r db -N n9 -> [105]
        crm_resource -M -r db -N n2 -> [108]
        crm_resource -M -r db -N n1 -u nonsense -> [64]
        crm_resource -B -r db -N n1 -Q -u PT1H -> Migration will take effect until: 2026-01-01 13:00:00Z
        crm_resource -B -r web -N n3 -Q ->
        cibadmin -Q -A "//rsc_location[@rsc='web']" -e -> /cib/configuration/constraints/rsc_location[@id='cli-...
        crm_resource -U -r web -> Removing constraint: cli-ban-web-on-n3
        crm_resource -C -r web -> Cleaned up web on n1|Cleaned up web on n2|Cleaned up web on n3
        crm_resource -R -r site -N n1 -> Cleaned up address on n1|Cleaned up web on n1
        crm_resource -m -p priority -v 5 -r site -> Set 'site' option: id=site-meta_attributes-priority ...
        crm_resource -F -r db -> [64]
        crm_resource -D -r db -> [105]
        crm_resource -D -r nothing -t primitive -> [105]
        crm_resource -D -r db -t group ->
        crm_resource -W -Q -r db -> n2
        crm_resource --element -g type -r db -> [64]
    """,
    "standby": """
        crm_standby -N n3 -v on ->
        crm_standby -N n3 -G -> scope=nodes  name=standby value=on
        crm_standby -N n3 -D -> Deleted nodes attribute: id=nodes-3-standby name=standby
        crm_standby -N n3 -G -q -> off
        crm_standby -N n3 -D ->
    """,
    "tickets": """
        crm_ticket -t gold -g -> [4]
        crm_ticket -t gold -g --force ->
        crm_ticket -t gold -G granted -> true
        crm_ticket -t gold -s ->
        crm_ticket -t gold -G standby -> true
        crm_ticket -t gold -S owner -v me -> [64]
        crm_ticket -t gold -r --force ->
    """,
    "membership": """
        crm_node -l -p -> n1 n2 n3...
        crm_node -n -q -> 1
        crm_node -R n9 --force -> [64]
        crm_node -> [64]
        crmadmin -D -> Designated Controller is: n1
        crmadmin -D -q -> n1
        crmadmin -D -S n2 -> Controller on n2 in state S_NOT_DC: ok
        crmadmin -N -> cluster node: n1 (1)|cluster node: n2 (2)|cluster node: n3 (3)
        crmadmin -N cluster,guest -q -> n1|n2|n3
        crmadmin -N -B -> export n1=1|export n2=2|export n3=3
        crmadmin -N -B -q -> n1|n2|n3
        crmadmin --nodes=guest -> No nodes configured
        crmadmin --nodes remote -> No nodes configured
        crmadmin -S n1 -> Controller on n1 in state S_IDLE: ok
        crmadmin -S n2 -q -> S_NOT_DC
        crmadmin -S n9 -> [124]
        crmadmin -P -> Status of pacemakerd: 'Pacemaker is running' (last updated 2026-01-01 12:00:00Z)
        crmadmin -P -q -> running
        crmadmin -H -> [64]
        crmadmin -E n1 -> [64]
        crmadmin -D --output-as=html -> [1]
        crmadmin -> [64]
        pacemakerd -F -> Pacemaker 2.1.5| Supporting v3.16.1: Written for the tools of haclusterd
        pacemakerd -S -> [64]
        crm_verify -L ->
        crm_mon -s -> CLUSTER OK: 3 nodes online, 4 resource instances configured
        crm_mon -d -h /tmp/x.html -> [64]
        crm_mon --output-as=pdf -> [64]
        crm_mon -1 --include=everything -> [64]
    """,
    "attributes by attrd_updater": """
        attrd_updater -n x -U 1 ->
        attrd_updater -n x -Q -> name="x" host="n1" value="1"
        attrd_updater -n x -> name="x" host="n1" value="1"
        attrd_updater -n x -Q -N n2 -> name="x" host="n2" value=""
        attrd_updater -n x -U 2 -N n2 ->
        attrd_updater -n x -Q -A -> name="x" host="n1" value="1"|name="x" host="n2" value="2"
        attrd_updater -n nothing -Q -> [78]
        attrd_updater -Q -> [64]
        attrd_updater -U 1 -> [64]
        attrd_updater -n x -U value++ ->
        attrd_updater -n x -U value+=4 ->
        attrd_updater -n x -U value+=abc -N n3 ->
        attrd_updater -n x -Q -A -> name="x" host="n1" value="6"|name="x" host="n2" value="2"|name="x" host="n3" ...
        attrd_updater -n new -U value++ ->
        attrd_updater -n new -Q -> name="new" host="n1" value="1"
        attrd_updater -n x -B 3 -> Warning: 'B' command given without required --delay
        attrd_updater -n x -R ->
        attrd_updater -n x -Q --output-as=html -> [1]
        crm_attribute -N n1 -n k -v value++ ->
        crm_attribute -N n1 -n k -v value++ ->
        crm_attribute -N n1 -n k -G -q -> 2
        crm_attribute -N n1 -l reboot -n k -v value+=7 ->
        crm_attribute -N n1 -l reboot -n k -G -q -> 7
        crm_attribute -n agent_data_k -s own -v value++ ->
        crm_attribute -n agent_data_k -s own -G -q -> 1
        crm_attribute -p web -v 5 ->
        crm_attribute -p web -G -> scope=status  name=master-web value=5
        crm_attribute --promotion web -D -> Deleted status attribute: id=status-1-master-web name=master-web
        crm_attribute -t tickets -n gold -G -> [105]
        crm_attribute -t tickets -n gold -v 1 -> [64]
        crm_attribute -t bogus -n gold -G -> [76]
        crm_attribute -l bogus -n gold -G -> [76]
    """,
    "fence devices and what they fenced": """
        stonith_admin -L -> power|1 fence device found
        stonith_admin -L -q -> power|1 fence device found
        stonith_admin -l n2 -> power|1 fence device found
        stonith_admin -l n9 -> 0 fence devices found
        stonith_admin -s power -> n1|n2|n3|3 fence targets found
        stonith_admin -s nothing -> [105]
        stonith_admin -Q power ->
        stonith_admin -Q nothing -> [105]
        stonith_admin -H n2 -> 0 events found
        stonith_admin -H n9 -> 0 events found
        stonith_admin -h n2 -> Node n2 has never been fenced
        stonith_admin -H n2 -c -> cleaning up fencing-history for node n2
        stonith_admin -H * -b -> gather fencing-history from all nodes|0 events found
        stonith_admin -I -> 0 fence devices found
        stonith_admin -M -> [64]
        stonith_admin -a fence_local -> [64]
        stonith_admin -M -a fence_none -> [105]
        stonith_admin -F n9 -t 4 -> [105]
        stonith_admin -F n2 --delay=5 -> [64]
        stonith_admin -U n2 -> [64]
        stonith_admin -R dev -a fence_lab -o x=y -> [64]
        stonith_admin -r n1 -i 1 -v power -> [64]
        stonith_admin -L --output-as=html -> [1]
    """,
}


AGENTS = {
    "ocf:heartbeat:IPaddr2": AgentFacts(),
    "stonith:external/ssh": AgentFacts(
        shortdesc="By <ssh> \x01",
        parameters={
            "hostlist": ParameterFacts(is_required=True, is_unique=True, shortdesc="Hosts"),
            "mode": ParameterFacts(default="a", content_type="select", options=("a", "b"), obsoletes="how"),
        },
        action_timeouts_ms={"off": None, "reboot": None},
    ),
    "stonith:external/broken": AgentFacts(is_unreadable=True),
}


def asked(line: str) -> tuple[int, str]:
    """Call a tool on a node with these agents; return its exit status and what it prints."""
    cluster = running()
    context = Context(cluster.cib, NOW, "root@n1", cluster.live, agents=AGENTS)
    outcome = registry.run("tool.run", arguments(line), context)
    assert isinstance(outcome.answer, ToolOutput)
    return outcome.exit_status or 0, outcome.answer.out


def test_fence_agents_and_plugins_of_a_node_and_what_they_say() -> None:
    assert asked("stonith_admin -I") == (0, "external/broken\nexternal/ssh\n2 fence devices found\n")
    assert asked("stonith_admin --list-installed -q") == (
        0, "external/broken\nexternal/ssh\n2 fence devices found\n"
    )  # fmt: skip
    assert asked("stonith_admin -M -a external/broken") == (105, "")
    status, text = asked("stonith_admin -M -a external/ssh")
    read = read_agent_metadata(text, AgentReference.parse("stonith:external/ssh"))
    assert status == 0
    assert read.parameters == AGENTS["stonith:external/ssh"].parameters
    assert (read.shortdesc, list(read.actions)) == ("By <ssh> \ufffd", ["off", "reboot"])
    root = ET.fromstring(asked("stonith_admin --metadata --agent external/ssh --output-as=xml")[1])
    assert root.findtext("metadata") == text


@pytest.mark.parametrize("name", DIALOGUES)
def test_a_dialogue(name: str) -> None:
    cluster = running()
    for line in DIALOGUES[name].strip().splitlines():
        command, _, expected = (part.strip() for part in line.partition("->"))
        code, out, err = run(cluster, command)
        if expected.startswith("["):
            assert (command, f"[{code}]", out if code != 4 else "", bool(err) or code == 105) == (
                command, expected, "", True,
            )  # fmt: skip
        else:
            shown = out.rstrip("\n").replace("\n", "|")
            if expected.endswith("..."):
                expected = expected.removesuffix("...")
                shown = shown[: len(expected)]
            assert (command, code, shown, err) == (command, 0, expected, "")


def test_a_resource_is_shown_with_the_words_of_its_template_or_without() -> None:
    cluster = formed()
    cluster.configure("rsc_template t ocf:haclusterd:dummy params a=1\nprimitive db @t params b=2")
    texts = (run(cluster, f"crm_resource {word} -r db")[1].partition("XML:\n")[2] for word in ("-q", "-w"))
    expanded, raw = map(ET.fromstring, texts)
    assert (expanded.get("type"), expanded.get("template")) == ("dummy", None)
    assert [each.get("name") for each in expanded.iter("nvpair")] == ["a", "b"]
    assert (raw.get("type"), raw.get("template")) == (None, "t")
    assert [each.get("name") for each in raw.iter("nvpair")] == ["b"]


INSTALLED = dict.fromkeys(
    ("ocf:heartbeat:Dummy", "ocf:pacemaker:Dummy", "ocf:pacemaker:ping", "stonith:fence_x"), AgentFacts()
)


@pytest.mark.parametrize(
    ("words", "status", "shown"),
    [
        ("--list-standards", 0, "ocf stonith"),
        ("--list-ocf-providers", 0, "heartbeat pacemaker"),
        ("--list-ocf-alternatives ping", 0, "pacemaker"),
        ("--list-ocf-alternatives pong", 105, ""),
        ("--list-agents ocf", 0, "Dummy ping"),
        ("--list-agents ocf:heartbeat", 0, "Dummy"),
        ("--list-agents=stonith", 0, "fence_x"),
        ("--list-agents ocf:none", 1, ""),
        ("--show-metadata ocf:none:none", 105, ""),
    ],
)
def test_installed_agents_are_listed(words: str, status: int, shown: str) -> None:
    cluster = running()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live, agents=INSTALLED)
    for more in ("", " --output-as=xml"):
        outcome = registry.run("tool.run", arguments(f"crm_resource {words}{more}"), context)
        assert isinstance(outcome.answer, ToolOutput)
        assert (outcome.exit_status or 0) == status
        if not more:
            assert outcome.answer.out.split() == shown.split()
        elif not status:
            root = ET.fromstring(outcome.answer.out)
            assert [each.text for each in root.iter() if each.text and each.text.strip()] == shown.split()


def test_a_change_is_answered_as_xml() -> None:
    cluster = running()
    for line in ("-m -p priority -v 7 -r db", "-B -r db -N n1", "-U -r db"):
        status, out, err = run(cluster, f"crm_resource {line} --output-as=xml")
        found = ET.fromstring(out).find("status")
        assert (status, err, found is not None and found.get("code")) == (0, "", "0"), line
    assert run(cluster, "crm_resource -m -g priority -r db") == (0, "7\n", "")


def test_what_is_wrong_is_answered_as_xml() -> None:
    status, out, _ = run(running(), "crm_resource -g x --output-as=xml")
    assert (status, ET.fromstring(out).findtext("status/errors/error")) == (
        64, "crm_resource: Must supply a resource id with -r"
    )  # fmt: skip
    assert run(running(), "crm_resource -L --output-as=html")[0] == 1


def test_what_is_printed_may_be_written_to_a_file() -> None:
    def answered(line: str) -> dict[str, object]:
        answer = ClusterClient(running()).call(Request("1", "tool.run", arguments(line)), lambda _: None)
        assert isinstance(answer.data, dict)
        return {name: value for name, value in answer.data.items() if name != "schema"}

    plain = answered("crm_resource -L")
    assert answered("crm_resource -L --output-to=-") == plain
    assert answered("crm_resource -L --output-to=x/y") == {"out": "", "err": "", "files": {"x/y": plain["out"]}}
    page = answered("crm_mon --output-as=html")["out"]
    assert answered("crm_mon -h x.html") == {"out": "", "err": "", "files": {"x.html": page}}
    assert answered("crm_mon -w")["out"] == f"Content-Type: text/html\n\n{page}"


def test_a_ticket_that_is_held_is_not_forgotten_without_force() -> None:
    cluster = busy()
    status, out, _ = run(cluster, "crm_ticket -t gold -C")
    assert status == 4
    assert "please specify --force" in out
    assert run(cluster, "crm_ticket -w")[1] == "gold\n"
    assert run(cluster, "crm_ticket -t gold -C -f") == (0, "Cleaned up gold\n", "")
    assert run(cluster, "crm_ticket -w")[1] == ""


def test_what_is_not_there_is_added_only_when_that_is_allowed() -> None:
    cluster = running()
    before = cluster.cib.configuration
    for word in ("-M", "-R", "-R -c"):
        status, _, err = run(cluster, f"cibadmin {word} -o constraints -X '{LOCATION}'")
        assert (status, err) == (105, "Call failed: No such device or address\n")
    assert cluster.cib.configuration == before
    assert run(cluster, f"cibadmin -M -c -o constraints -X '{LOCATION}'") == (0, "", "")
    assert "l1" in cluster.cib.configuration.constraints


def test_an_option_may_have_a_value_or_none() -> None:
    cluster = busy()
    assert run(cluster, "crm_attribute --promotion=pg -N n1 -v 5") == (0, "", "")
    assert run(cluster, "crm_attribute --promotion=pg -N n1 -G -q")[1] == "5\n"
    assert run(cluster, "crm_attribute --promotion -N n1 -G -q")[0] == 105
    assert "ban-pg" not in run(cluster, "crm_mon -1 --neg-locations=ban-w")[1]
    assert "ban-pg" in run(cluster, "crm_mon -1 --neg-locations")[1]


def test_failures_are_forgotten() -> None:
    for line in ("crm_failcount -r web -N n1 -D", "crm_resource -C -r web -N n1", "crm_resource --cleanup"):
        cluster = busy()
        assert run(cluster, "crm_failcount -r web -N n1 -G -q")[1] == "2\n"
        assert run(cluster, line)[0] == 0
        assert run(cluster, "crm_failcount -r web -N n1 -G -q")[1] == "0\n", line


@pytest.mark.parametrize("line", ["stonith_admin -B n2", "stonith_admin -F n2 --tolerance 5m"])
def test_a_node_is_fenced_without_a_second_question(line: str) -> None:
    cluster = running()
    assert run(cluster, line) == (0, "", "")
    assert cluster.cib.status.nodes[NodeName("n2")].state is NodeState.LOST
    assert run(running(), "stonith_admin -B n9")[0] != 0


def test_a_fencing_is_answered_when_the_node_is_fenced_and_not_before() -> None:
    cluster = running()
    outcome = outcome_of(Context(cluster.cib, NOW, "root@n1", live=cluster.live), "stonith_admin -F n2 -t 30")
    assert (outcome.waits_by_default, outcome.wait_ms_max) == (True, 30_000)
    assert outcome.until is not None
    for state, is_done in ((NodeState.LOST, False), (NodeState.FENCED, True)):
        cluster.state("n2", state)
        assert outcome.until(cluster.cib, cluster.live) is is_done
    assert run(cluster, "stonith_admin -B n2 -t soon")[0] == 64


def test_a_restart_is_answered_when_it_runs_again() -> None:
    cluster = running()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    outcome = outcome_of(context, "crm_resource --restart -r db -T 5min")
    assert (outcome.waits_by_default, outcome.wait_ms_max) == (True, 300_000)
    assert outcome.afterwards is not None
    is_stopped = True
    again = outcome.afterwards(cluster.cib, is_stopped)
    assert (again.waits_by_default, again.wait_ms_max, again.answer) == (True, 300_000, None)
    assert outcome_of(context, "crm_resource --restart -r db").wait_ms_max == 3_600_000


def test_a_ban_without_a_node_is_from_where_it_runs() -> None:
    cluster = running()
    code, out, err = run(cluster, "crm_resource --ban -r db")
    assert (code, out) == (0, "")
    assert err.startswith("WARNING: Creating rsc_location constraint 'cli-ban-db-on-n2' with a score of -INFINITY")
    assert run(running(), "crm_resource --ban -r db -Q") == (0, "", "")
    assert "cli-ban-db-on-n2" in cluster.cib.configuration.constraints
    assert run(busy(), "crm_resource --ban -r gc")[0] == 64


@pytest.mark.parametrize("name", ["db", "web", "site"])
def test_the_warning_of_a_ban_names_the_constraint_that_is_made(name: str) -> None:
    cluster = running()
    _, _, err = run(cluster, f"crm_resource --ban -r {name} -N n3")
    (made,) = (each for each in cluster.cib.configuration.constraints.values() if each.id.startswith("cli-ban-"))
    assert isinstance(made, Location)
    assert f"'{made.id}' with a score of -INFINITY for resource {made.resource} on n3." in err


@pytest.mark.parametrize(
    ("line", "constraint", "role"),
    [
        ("crm_resource --ban -r {clone} -N n1", "cli-ban-{clone}-on-n1", "Started"),
        ("crm_resource --ban -r {clone} -N n1 --promoted", "cli-ban-{clone}-on-n1", "Promoted"),
        ("crm_resource --ban -r {clone} -N n1 --master", "cli-ban-{clone}-on-n1", "Promoted"),
        ("crm_resource --move -r {clone} --promoted -N n2", "cli-prefer-{clone}", "Promoted"),
        ("crm_resource --move -r {clone} -N n2 -f", "cli-prefer-{clone}", "Started"),
    ],
)
def test_a_constraint_has_the_role_that_crm_resource_gives_it(line: str, constraint: str, role: str) -> None:
    cluster, clone = busy(), "pgc"
    assert run(cluster, line.format(clone=clone))[0] == 0
    made = cluster.cib.configuration.constraints[constraint.format(clone=clone)]
    assert isinstance(made, Location)
    assert made.role == role


def test_a_ban_ends_with_its_lifetime() -> None:
    cluster = running()
    assert run(cluster, "crm_resource --ban -r db --lifetime PT5M")[0] == 0
    made = cluster.cib.configuration.constraints["cli-ban-db-on-n2"]
    assert isinstance(made, Location)
    assert made.rules


@pytest.mark.parametrize(
    "line",
    [
        "crm_resource -r db --set-parameter target-role --meta -v Started --recursive",
        "crm_resource -r db --set-parameter target-role --meta -v Started -s another",
        "crm_resource -r db --set-parameter target-role --meta -v Started -i another",
        "crm_resource -r db --set-parameter description -v x --element",
        "crm_resource --cleanup -r db -n monitor",
        "crm_resource --cleanup -r db -n monitor -I 10s",
    ],
)
def test_a_change_that_would_be_another_one_than_asked_for_is_refused(line: str) -> None:
    cluster = busy()
    before = cluster.cib
    assert run(cluster, line)[0] == 64
    assert cluster.cib == before


LOCATION = '<rsc_location id="l1" rsc="db" node="n1" score="INFINITY"/>'


def test_the_configuration_is_changed_as_xml() -> None:
    cluster = running()
    assert run(cluster, f"cibadmin -C -o constraints -X '{LOCATION}'") == (0, "", "")
    assert run(cluster, f"cibadmin -C -o constraints -X '{LOCATION}'")[0] == 108
    assert "l1" in cluster.cib.configuration.constraints
    assert run(cluster, "cibadmin -M -X '<rsc_location id=\"l1\" score=\"7\"/>'") == (0, "", "")
    assert 'score="7"' in run(cluster, "cibadmin -Q --xpath \"//rsc_location[@id='l1']\"")[1]
    assert run(cluster, "cibadmin -D --xpath \"//rsc_location[@id='l1']\"") == (0, "", "")
    assert run(cluster, "cibadmin -D -X '<rsc_location id=\"l1\"/>'") == (0, "", "")
    assert "l1" not in cluster.cib.configuration.constraints
    meta = (
        '<primitive id="db"><meta_attributes id="db-meta_attributes">'
        '<nvpair id="db-m" name="target-role" value="Stopped"/></meta_attributes></primitive>'
    )
    assert run(cluster, "cibadmin --modify -o resources -p", meta) == (0, "", "")
    assert effective(cluster.cib.configuration.resources[ResourceId("db")].meta)["target-role"] == "Stopped"
    assert run(cluster, "cibadmin --replace -x whole", run(cluster, "cibadmin -Q")[1]) == (0, "", "")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("cibadmin -C -o resources -X '<group id=\"empty\"/>'", 78),
        ("cibadmin -M -o status -X '<node_state id=\"1\"/>'", 64),
        ("cibadmin -C -X '<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>'", 64),
        ("cibadmin -C -X '<a'", 64),
        ("cibadmin -C", 64),
        ("cibadmin --erase", 107),
        ("cibadmin --erase --force", 64),
        ("cibadmin -Q -S -U root", 64),
        ("cibadmin -Q -U alice", 64),
        ("cibadmin -Q --xpath 'count(//node)'", 64),
        ("cibadmin -Q --xpath '//node/@id[1]'", 64),
        ("cibadmin -Q --xpath \"//node[ancestor::nodes]\"", 64),
        ("cibadmin -Q --xpath //node/../node", 64),
        ("cibadmin -Q --xpath '//node['", 64),
        ("cibadmin -Q -o nothing", 64),
        ("cibadmin -Q --xpath '//nothing'", 105),
    ],
)
def test_xml_that_is_refused(line: str, code: int) -> None:
    cluster = running()
    before = cluster.cib.configuration
    assert run(cluster, line)[0] == code
    assert cluster.cib.configuration == before


def test_an_xpath_selects_with_its_parents_and_in_bounded_time() -> None:
    cluster = running()
    either = "//primitive[@id='db' or @id='none']"
    assert run(cluster, f'cibadmin -Q --xpath "{either}"')[1].startswith('<primitive id="db"')
    assert run(cluster, "cibadmin -Q --xpath \"//primitive[@id='db']/..\"")[1].startswith("<resources>")
    assert run(cluster, "cibadmin -Q --xpath nodes")[1].startswith("<nodes>")
    assert run(cluster, "cibadmin -Q --xpath /cib/..")[0] == 105
    nested = "<rule id='r' boolean-op='and' score='1'>" + "".join(
        f"<rule id='r{number}' boolean-op='and'>" for number in range(15)
    ) + "<expression id='e' attribute='a' operation='defined'/>" + "</rule>" * 16  # fmt: skip
    location = f"<rsc_location id='l' rsc='db'>{nested}</rsc_location>"
    assert run(cluster, "cibadmin -C -o constraints -p", location)[0] == 0
    assert run(cluster, f"cibadmin -Q --xpath {'//*' * 14}")[0] == 0, "there are 2,000,000 ways through these rules"
    status, _, error = run(cluster, f"cibadmin -Q --xpath //*{'[1]' * 300}")
    assert status in (0, 64)
    assert error.count("narrower") == (status == 64)


@pytest.mark.parametrize("line", ["cibadmin -Q", "crm_mon -1 --output-as=xml"])
def test_what_agents_say_leaves_the_xml_readable(line: str) -> None:
    """Colours of a program that an agent has called, in the reason of its failure; a value that an agent has read."""
    cluster = busy()
    status = cluster.node("n1")
    said = "a\x1b[31mb\x00\ufffe"
    histories = {
        name: replace(history, records={key: replace(each, exit_reason=said) for key, each in history.records.items()})
        for name, history in status.histories.items()
    }
    cluster.put(replace(status, attributes={"read": said}, histories=histories))
    _, out, _ = run(cluster, line)
    root = ET.fromstring(out)
    found = {value for element in root.iter() for value in element.attrib.values()}
    assert "a\ufffd[31mb\ufffd\ufffd" in found


def test_deep_xml_is_refused() -> None:
    assert run(running(), "cibadmin -C -p", "<a>" * 10_000 + "</a>" * 10_000)[0] == 64


def test_secrets_are_asterisks_and_stay_what_they_are() -> None:
    cluster = running()
    cluster.configure("primitive p stonith:fence_x params password=hidden pcmk_host_list=n1")
    text = run(cluster, "cibadmin -Q")[1]
    assert "hidden" not in text
    assert run(cluster, "cibadmin -R -p", text.replace('epoch="', 'epoch="1'))[0] == 0
    found = cluster.cib.configuration.resources[ResourceId("p")]
    assert effective(found.parameters)["password"] == "hidden"


def test_what_only_asks_needs_the_permission_to_read_and_proposes_nothing() -> None:
    cluster = busy()
    for line in ("crm_mon -1", "cibadmin -Q", "crm_attribute -n a -N n1 -G", "attrd_updater -Q -n a", "crm_node -l"):
        assert RUN.permission_for(arguments(line)) is Permission.READ, line
    for line in (
        "crm_attribute -n a -N n1 -v 1", "attrd_updater -n a -D", "crm_resource -C", "cibadmin -D -X x", "x y",
    ):  # fmt: skip
        assert RUN.permission_for(arguments(line)) is Permission.OPERATE, line
    assert RUN.permission_for({"tool": "crm_mon", "words": 7}) is Permission.OPERATE
    context = Context(cluster.cib, NOW, "u@n1", live=cluster.live, access=Access(Permission.OPERATE, "tests"))
    for line in (
        "crm_attribute -n maintenance-mode -v true", "crm_resource -r db -p a -v 1", "stonith_admin -B n2",
        "cibadmin -D -X '<primitive id=\"db\"/>'", "crm_attribute -N n1 -n terminate -v true -l reboot",
    ):  # fmt: skip
        outcome = registry.run("tool.run", arguments(line), context)
        assert [str(each.code) for each in outcome.reports] == ["NOT_PERMITTED"], line
    assert outcome_of(context, "crm_attribute -N n1 -l reboot -n a -v 1").commands


def outcome_of(context: Context, line: str) -> Outcome:
    return registry.run("tool.run", arguments(line), context)


def test_what_it_costs_follows_from_the_call() -> None:
    expected = {
        "attrd_updater -n a -U 1": Cost.LIGHT, "crm_master -v 1": Cost.LIGHT, "crm_node -l": Cost.LIGHT,
        "crm_attribute -N n1 -l reboot -n a -v 1": Cost.LIGHT, "crm_attribute -N n1 -n a -v 1": Cost.WHOLE,
        "crm_attribute -N n1 -n a -G": Cost.LIGHT, "crm_master -l forever -v 1": Cost.WHOLE, "crm_mon -1": Cost.WHOLE,
        "cibadmin -Q": Cost.LONG, "cibadmin -D -X x": Cost.LONG, "crm_resource -M -r db": Cost.LONG,
        "crm_resource -C -r db": Cost.WHOLE, "crm_resource -W -r db": Cost.WHOLE, "crm_simulate -L": Cost.LONG,
        "crm_ticket -t a -g": Cost.WHOLE, "crm_failcount -r db -D": Cost.WHOLE,
    }  # fmt: skip
    assert {line: RUN.cost_of(arguments(line)) for line in expected} == expected


def test_a_bump_makes_a_version_of_what_is_configured() -> None:
    cluster = running()
    before = cluster.cib
    assert run(cluster, "cibadmin --bump") == (0, "", "")
    assert cluster.cib.configuration == before.configuration
    assert cluster.cib.version.epoch == before.version.epoch + 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cibadmin -E --force", "crm configure erase"), ("crm_failcount -r web -N n1 -D -n monitor", "leave them out"),
        ("crm_attribute -N n1 -n a -v 1 -i x", "leave it out"), ("crm_attribute -N n1 -n a -v 1 -s x", "leave it out"),
        ("crm_resource -r web --force-start", "crm agent run"), ("crm_resource --validate -r web", "crm ra validate"),
        ("crm_resource -r web -C -n monitor", "leave out -n"), ("crm_ticket -t gold -S a -v 1", "crm ticket"),
        ("crm_mon -d --output-to=x", "crm monitor"), ("crm_mon -1 -E /bin/true", "crm configure alert"),
        ("pacemakerd -S", "systemctl stop"), ("crm_rule -c -r x -X -", "give the text itself"),
        ("crm_diff -s -o x", "-o FILE -n FILE"), ("stonith_admin -U n1", "joins"),
    ],
)  # fmt: skip
def test_what_is_not_done_is_refused_by_name_with_what_to_do(line: str, said: str) -> None:
    cluster = running()
    before = cluster.cib
    code, out, err = run(cluster, line)
    assert (code, out, said in err, cluster.cib) == (64, "", True, before), err


def test_a_plan_is_shown() -> None:
    cluster = running()
    cluster.configure("primitive extra ocf:haclusterd:dummy")
    code, out, _ = run(cluster, "crm_simulate -L -S")
    assert code == 0
    assert re.search(r"^  \* Start      extra   \(    n[123] \)", out, re.MULTILINE)
    assert "  * Node List:\n    * Online: [ n1 n2 n3 ]\n" in out


def test_a_plan_is_shown_with_what_was_asked_for_and_nothing_is_ignored() -> None:
    cluster = running()
    cluster.configure("primitive extra ocf:haclusterd:dummy\nlocation l extra 7: n2")
    plain, asked = (run(cluster, f"crm_simulate -L {flags}")[1] for flags in ("-R", "-s -S"))
    assert run(cluster, "crm_simulate -LRQ")[1] == ""
    assert "pcmk__primitive_assign: extra allocation score on n2: 7\n" in run(cluster, "crm_simulate -LsQ")[1]
    assert "scores" not in plain.lower()
    assert "\npcmk__primitive_assign: extra allocation score on n1: 0\n" in asked
    assert "\npcmk__primitive_assign: extra allocation score on n2: 7\n" in asked
    assert re.search(r"^Resource action: extra +start on n2$", asked, re.MULTILINE)
    assert asked.rpartition("\n\n")[2].count("\nextra\t(ocf:haclusterd:dummy):\t Started n2\n") == 1
    code, _, err = run(cluster, "crm_simulate -x cib.xml -S", "<cib/>")
    assert (code, "crm simulate --cib FILE" in err) == (64, True)
    assert "Original: n1 capacity:\n" in run(cluster, "crm_simulate -L -U")[1]


@pytest.mark.parametrize(
    ("words", "supposed", "planned"),
    [
        ("-d n1", ["Taking node n1 offline"], ["Start address", "Start web"]),
        ("-f n1", ["Failing node n1"], ["Fence (reboot)", "Move address", "Move web"]),
        ("-u n2", ["Bringing node n2 online"], []),
        (
            "-i web_monitor_10000@n1=1",
            ["Injecting web_monitor_10000@n1=1 into the configuration",
             "Injecting attribute fail-count-web#monitor_10000=value++ into /node_state '1'",
             f"Injecting attribute last-failure-web#monitor_10000={NOW // 1000} into /node_state '1'"],
            ["Recover web"],
        ),
        ("-i web_monitor_10000@n1=0", ["Injecting web_monitor_10000@n1=0 into the configuration"], []),
        ("-q 0", ["Setting quorum: 0"], ["Stop db", "Stop power", "Stop address", "Stop web"]),
        ("-g gold -b gold", ["Granting ticket gold", "Making ticket gold standby"], []),
    ],
)
def test_a_plan_under_suppositions(words: str, supposed: list[str], planned: list[str]) -> None:
    cluster = running()
    before = cluster.cib
    code, out, err = run(cluster, f"crm_simulate -LR {words}")
    assert (code, err, cluster.cib) == (0, "", before)
    _, _, modified = out.partition("Performing Requested Modifications:\n")
    head, _, summary = out.partition("Transition Summary:\n")
    assert [each.removeprefix("  * ") for each in modified.partition("\n\n")[0].splitlines()] == supposed
    assert [" ".join(each.split()[1:3]) for each in summary.splitlines()] == planned
    assert head.startswith("Current cluster status:\n")


@pytest.mark.parametrize(
    "words",
    ["-d n9", "-f n9", "-i nonsense", "-i web_monitor_10000@n9=1", "-t nonsense", "-F nonsense", "-X", "-P /tmp",
     "-N 3", "-S -a", "-R -t nonsense", "-u n9"],
)
def test_a_supposition_that_makes_no_sense_is_refused(words: str) -> None:
    assert run(running(), f"crm_simulate -L {words}")[0] != 0


def test_a_plan_as_xml() -> None:
    root = ET.fromstring(run(running(), "crm_simulate -LS -f n1 -g gold --output-as=xml")[1])
    assert [each.tag for each in root] == [
        "cluster_status", "modifications", "actions", "transition", "revised_cluster_status", "status"
    ]  # fmt: skip
    assert [dict(each.attrib) for each in root.iterfind("modifications/*")] == [
        {"action": "Failing", "node": "n1"}, {"action": "Granting", "ticket": "gold"}
    ]  # fmt: skip
    assert root.find("actions/node_action[@node='n1'][@task='Fence (reboot)']") is not None
    assert root.find("actions/rsc_action[@action='move'][@resource='web'][@source='n1'][@dest='n2']") is not None
    assert root.find("transition/fencing_action[@target='n1'][@op='reboot']") is not None
    assert root.find("transition/rsc_action[@resource='web'][@op='start'][@node='n2']") is not None
    assert root.find("transition/pseudo_action[@task='site_start_0']") is not None
    assert root.find("revised_cluster_status/nodes/node[@name='n1'][@online='false']") is not None
    assert root.find("revised_cluster_status//resource[@id='web']/node[@name='n2']") is not None


def test_a_plan_for_another_time_says_so() -> None:
    out = run(running(), "crm_simulate -LS -t 2026-02-01T12:00:00Z")[1]
    assert out.count("Setting effective cluster time: 2026-02-01T12:00:00Z\n") == 2


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_every_tool_helps_tells_its_version_and_refuses_what_it_does_not_know(tool: str) -> None:
    cluster = running()
    assert f"Usage: {tool} " in run(cluster, f"{tool} --help")[1]
    assert run(cluster, f"{tool} --version")[1].startswith("Pacemaker 2.1.5\n")
    assert run(cluster, f"{tool} --frobnicate")[0] == 64
    assert run(cluster, f"{tool} unexpected")[0] == 64


def fenced_often() -> Cluster:
    cluster = running()
    records = tuple(
        replace(fencing_record(target, outcome), key=FenceKey(f"f{number}"), ended_at=WallTime(NOW - 1000 * number))
        for number, target, outcome in (
            (8, "n3", FenceOutcome.FENCED), (5, "n3", FenceOutcome.FENCED), (2, "n2", FenceOutcome.FAILED))
    )  # fmt: skip
    orders = {FenceKey("f9"): replace(fence_order("n2"), key=FenceKey("f9"))}
    cluster.cib = replace(
        cluster.cib, status=replace(cluster.cib.status, fencing_history=records, fence_orders=orders)
    )
    return cluster


@pytest.mark.parametrize(
    ("words", "headings", "lines"),
    [
        ("", ["Failed Fencing Actions:", "Pending Fencing Actions:"], 2),
        ("-m0", [], 0),
        ("-m1", ["Failed Fencing Actions:", "Pending Fencing Actions:"], 2),
        ("-m", ["Failed Fencing Actions:", "Fencing History:"], 3),
        ("-m2 -I stack", ["Failed Fencing Actions:", "Fencing History:"], 3),
        ("-m 3", ["Failed Fencing Actions:", "Fencing History:"], 4),
        ("--fence-history=3", ["Failed Fencing Actions:", "Fencing History:"], 4),
        ("-m3 --node=n3", ["Fencing History:"], 2),
        ("-U fencing-failed", ["Pending Fencing Actions:"], 1),
        ("-I none,fencing-failed", ["Failed Fencing Actions:"], 1),
    ],
)
def test_the_level_of_the_history_says_which_fencings_are_shown(words: str, headings: list[str], lines: int) -> None:
    code, out, _ = run(fenced_often(), f"crm_mon -1 {words} -U nodes,resources,summary")
    found = out.splitlines()
    assert (code, [each for each in found if each.endswith(":") and "Fencing" in each]) == (0, headings)
    assert sum("reboot of" in each for each in found) == lines


def test_each_level_words_when_a_node_was_fenced() -> None:
    """The words are those of a running Pacemaker 2.1.5; its client is a program with its number."""

    def shown(words: str) -> list[str]:
        text = run(fenced_often(), f"crm_mon -1 {words}")[1]
        return [each.strip(" *") for each in text.splitlines() if "reboot" in each]

    by, details = "by n1 for haclusterd@n1", "delegate=n1, client=haclusterd, origin=n1"
    assert shown("-m1") == [
        f"reboot of n2 {by} last failed at 2026-01-01 11:59:58Z", "reboot of n2 for haclusterd@n1 last pending"
    ]  # fmt: skip
    assert shown("-m2") == [
        f"reboot of n2 {by} failed at 2026-01-01 11:59:58Z", "reboot of n2 for haclusterd@n1 pending",
        f"reboot of n3 {by} successful at 2026-01-01 11:59:55Z",
    ]  # fmt: skip
    assert shown("-m3 -R") == [
        f"reboot of n2 failed: {details}, completed='2026-01-01 11:59:58Z'",
        "reboot of n2 pending: client=haclusterd, origin=n1",
        f"reboot of n3 successful: {details}, completed='2026-01-01 11:59:55Z'",
        f"reboot of n3 successful: {details}, completed='2026-01-01 11:59:52Z'",
    ]  # fmt: skip
    assert shown("--include=none,fencing-succeeded -R")[-1] == (
        f"reboot of n3 successful: {details}, last-successful='2026-01-01 11:59:55Z'"
    )


def test_stonith_admin_shows_the_last_success_and_in_detail_everything() -> None:
    def shown(words: str) -> list[str]:
        return run(fenced_often(), f"stonith_admin {words}")[1].splitlines()

    details = "delegate=n1, client=haclusterd, origin=n1"
    assert shown("-H n3") == [
        f"reboot of n3 successful: {details}, last-successful='2026-01-01 11:59:55Z'", "1 event found"
    ]  # fmt: skip
    assert shown("-H n2") == ["0 events found"]
    assert shown("-H * -V") == [
        "reboot of n2 pending: client=haclusterd, origin=n1",
        f"reboot of n2 failed: {details}, completed='2026-01-01 11:59:58Z'",
        f"reboot of n3 successful: {details}, completed='2026-01-01 11:59:55Z'",
        f"reboot of n3 successful: {details}, completed='2026-01-01 11:59:52Z'", "4 events found",
    ]  # fmt: skip
    assert shown("-H n3 -q") == ["1767268795", "0 events found"]
    assert shown("-h n3") == ["Node n3 last fenced at: Thu Jan  1 11:59:55 2026"]
    event = (
        '    <fence_event action="reboot" target="n3" client="haclusterd" origin="n1" status="success" delegate="n1" '
        'completed="2026-01-01 11:59:55Z"/>'
    )
    assert shown("-H n3 --output-as=xml")[1:4] == ['  <list name="fencing history" count="1">', event, "  </list>"]
    assert shown("-h n3 --output-as=xml")[1] == '  <last-fenced target="n3" when="2026-01-01 11:59:55Z"/>'
    assert run(fenced_often(), "stonith_admin -h n1 --output-as=xml")[0] == 74


def test_a_failure_says_that_a_later_attempt_succeeded() -> None:
    cluster = fenced_often()
    failed = replace(fencing_record("n3", FenceOutcome.TIMEOUT), ended_at=WallTime(NOW - 9000))
    status = cluster.cib.status
    cluster.cib = replace(cluster.cib, status=replace(status, fencing_history=(failed, *status.fencing_history)))
    assert "reboot of n3 by n1 for haclusterd@n1 last failed at 2026-01-01 11:59:51Z (a later attempt from n1 " in run(
        cluster, "crm_mon -1"
    )[1]


def test_a_device_whose_monitor_fails_does_not_answer() -> None:
    cluster = running()
    for node in ("n1", "n2", "n3"):
        cluster.record("power", node, "monitor", ExitCode.ERROR, interval_ms=60_000)
    assert run(cluster, "stonith_admin -Q power") == (1, "", "")


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        ("stonith_admin -L", '<list name="registered fence devices" count="1">|  <item name="device">power</item>|'
                             "</list>"),
        ("stonith_admin -l n9", '<list name="registered fence devices" count="0"/>'),
        ("stonith_admin -s power", '<list name="fence targets" count="3">|  <item>n1</item>|  <item>n2</item>|'
                                   "  <item>n3</item>|</list>"),
        ("stonith_admin -H n2", '<list name="fencing history" count="0"/>'),
        ("crmadmin -D", '<dc node_name="n1"/>'),
        ("crmadmin -S n2", '<crmd node_name="n2" state="S_NOT_DC" result="ok"/>'),
        ("crmadmin -N", '<nodes>|  <node type="cluster" name="n1" id="1"/>|  <node type="cluster" name="n2" id="2"/>|'
                        '  <node type="cluster" name="n3" id="3"/>|</nodes>'),
        ("crmadmin -P", '<pacemakerd sys_from="pacemakerd" state="running" last_updated="2026-01-01 12:00:00Z"/>'),
        ("attrd_updater -n x -Q -N n2", '<attribute name="x" value="2" host="n2"/>'),
    ],
)  # fmt: skip
def test_members_and_devices_as_xml(line: str, inside: str) -> None:
    """As Pacemaker 2.1.5 answers in a running cluster."""
    cluster = running()
    run(cluster, "attrd_updater -n x -U 2 -N n2")
    code, out, err = run(cluster, f"{line} --output-as=xml")
    lines = out.splitlines()
    assert (code, err, lines[0]) == (
        0, "", f'<pacemaker-result api-version="2.25" request="{line} --output-as=xml">'
    )  # fmt: skip
    assert "|".join(each.removeprefix("  ") for each in lines[1:-2]) == inside
    assert lines[-2:] == ['  <status code="0" message="OK"/>', "</pacemaker-result>"]


def test_pacemakers_tools_may_change_what_is_queried() -> None:
    """They discard each change of a CIB whose feature set is above that of Pacemaker 2.1.5, which is 3.16.1."""
    assert 'crm_feature_set="3.16.1"' in run(formed(), "cibadmin -Q")[1]


def ran_with(cluster: Cluster, resource: str, node: str, parameters: dict[str, str], reloadable: str = "") -> None:
    """Let the start of a resource be recorded with the digests of these parameters, as a node does it."""
    status, name = cluster.node(node), ResourceId(resource)
    history = status.histories[name]
    fixed = tuple(sorted(each for each in parameters if each != reloadable))
    made = {
        key: replace(
            record, digest=digest_of(parameters),
            restart_digest=restart_digest_of(parameters, fixed) if reloadable else "",
            restart_parameters=fixed if reloadable else None,
        )
        for key, record in history.records.items() if not record.interval_ms
    }  # fmt: skip
    history = replace(history, records={**history.records, **made})
    cluster.put(replace(status, histories={**status.histories, name: history}))


def written_digests(cluster: Cluster, resource: str) -> dict[str, str | None]:
    root = ET.fromstring(run(cluster, "cibadmin -Q")[1])
    start = next(each for each in root.iter("lrm_rsc_op") if each.get("operation_key") == f"{resource}_start_0")
    return {name: start.get(name) for name in ("op-digest", "op-restart-digest")}


def test_what_has_not_changed_has_pacemakers_digest() -> None:
    """Its crm_simulate takes any other for a changed definition, and plans restarts; so `crm_resource --digests` says.

    The digests are those of no parameters, and of `command=/bin/true`.
    """
    cluster = running()
    ran_with(cluster, "db", "n2", {})
    ran_with(cluster, "web", "n1", {"command": "/bin/true"})
    assert written_digests(cluster, "db")["op-digest"] == "f2317cad3d54cec5d7d7aa7d0bf35cf8"
    assert written_digests(cluster, "web")["op-digest"] == "027a58b008b13bd90024c4a04f7bb1aa"
    assert written_digests(cluster, "address")["op-digest"] == "f2317cad3d54cec5d7d7aa7d0bf35cf8"


def test_what_has_changed_keeps_a_digest_that_leads_to_its_restart() -> None:
    cluster = running()
    ran_with(cluster, "web", "n1", {"command": "/bin/false"})
    assert written_digests(cluster, "web")["op-digest"] == digest_of({"command": "/bin/false"})


def test_what_is_to_be_reloaded_has_pacemakers_digest_of_what_cannot_be() -> None:
    cluster = formed()
    cluster.configure("primitive db ocf:haclusterd:dummy params state=/x fake=new")
    cluster.run("db", "n2")
    was = {"state": "/x", "fake": "old"}
    ran_with(cluster, "db", "n2", was, reloadable="fake")
    assert written_digests(cluster, "db") == {
        "op-digest": digest_of(was), "op-restart-digest": pacemaker_digest({"state": "/x"})
    }  # fmt: skip


def test_digests_are_of_what_is_shown_in_the_place_of_secrets() -> None:
    cluster = formed()
    cluster.configure("primitive db ocf:haclusterd:dummy params passwd=hidden")
    cluster.run("db", "n2")
    ran_with(cluster, "db", "n2", {"passwd": "hidden"})
    shown = ET.fromstring(run(cluster, "cibadmin -Q")[1]).find(".//nvpair[@name='passwd']")
    assert shown is not None
    value = shown.get("value", "")
    assert "hidden" not in value
    assert written_digests(cluster, "db")["op-digest"] == pacemaker_digest({"passwd": value})


def test_a_probe_that_found_nothing_is_a_record() -> None:
    """Without one Pacemaker's crm_simulate plans the probe."""
    cluster = running()
    status = cluster.node("n3")
    cluster.put(replace(status, probed=frozenset({ResourceId("db")})))
    root = ET.fromstring(run(cluster, "cibadmin -Q")[1])
    found = root.find("status/node_state[@uname='n3']//lrm_rsc_op[@operation_key='db_monitor_0']")
    assert found is not None
    assert (found.get("rc-code"), found.get("op-status"), found.get("transition-key", "").split(":")[2]) == (
        "7", "0", "7"
    )  # fmt: skip
    assert "db_monitor_0 (node=n3, call=1, rc=7" in run(cluster, "crm_resource -o -N n3")[1]
    assert "db" not in run(cluster, "crm_mon -1o --include=none,operations --node=n3")[1]


def test_force_is_obeyed_where_a_change_takes_something_away() -> None:
    cluster = running()
    assert run(cluster, "cibadmin -D -X '<primitive id=\"db\"/>'")[0] == 107
    assert run(cluster, "cibadmin -D --force -X '<primitive id=\"db\"/>'") == (0, "", "")
    assert ResourceId("db") not in cluster.cib.configuration.resources


@pytest.mark.parametrize(
    "words", ["-C -X '<x/>'", "-C -X '<rsc_location id=\"l\" rsc=\"db\" node=\"n1\" score=\"1\"/>'"]
)
def test_nothing_is_created_in_no_section(words: str) -> None:
    """It went beside the sections, where nothing reads it, with exit status 0."""
    cluster = running()
    assert run(cluster, f"cibadmin {words}") == (105, "", "Call failed: No such device or address\n")


def test_the_text_of_an_empty_cib_is_a_cib() -> None:
    code, out, _ = run(running(), "cibadmin --empty")
    assert (code, [each.tag for each in ET.fromstring(out)]) == (0, ["configuration", "status"])


def test_changes_of_attributes_are_answered_as_xml() -> None:
    cluster = busy()
    for words in ("-N n3 -l reboot -n pingd -v 5", "-N n3 -l reboot -n pingd -D", "-N n3 -l reboot -n pingd -D",
                  "-n maintenance-mode -v true"):  # fmt: skip
        status, out, err = run(cluster, f"crm_attribute {words} --output-as=xml")
        assert (status, out.splitlines()[1:], err) == (
            0, ['  <status code="0" message="OK"/>', "</pacemaker-result>"], ""
        ), words  # fmt: skip


def test_a_deletion_by_xpath_takes_the_first_and_all_only_by_force() -> None:
    cluster = running()
    cluster.configure("location l1 db 1: n1\nlocation l2 db 2: n1\nlocation l3 db 3: n3")
    words = "-A \"//rsc_location[@rsc='db']\""
    code, out, _ = run(cluster, f"cibadmin -D {words} -d")
    assert (code, out) == (107, "")
    assert run(cluster, f"cibadmin -D {words}") == (0, "", "")
    assert sorted(each for each in cluster.cib.configuration.constraints if each.startswith("l")) == ["l1", "l2", "l3"]
    assert "db-likes-n2" not in cluster.cib.configuration.constraints
    assert run(cluster, f"cibadmin -d {words} --force") == (0, "", "")
    assert not [each for each in cluster.cib.configuration.constraints if each.startswith("l")]


def test_what_exists_is_named_when_it_is_not_created() -> None:
    text = '<rsc_location id="db-likes-n2" rsc="db" node="n1" score="5"/>'
    assert run(running(), f"cibadmin -C -o constraints -X '{text}'") == (108, (
        '<failed>\n  <failed_update id="db-likes-n2" object_type="rsc_location" operation="cib_create" '
        f'reason="File exists">\n    {text}\n  </failed_update>\n</failed>\n'
    ), "Call failed: File exists\n")  # fmt: skip


def test_a_resource_is_deleted() -> None:
    cluster = running()
    cluster.configure("primitive idle ocf:haclusterd:dummy meta target-role=Stopped")
    assert run(cluster, "crm_resource -D -r idle -t primitive") == (0, "", "")
    assert ResourceId("idle") not in cluster.cib.configuration.resources


def test_a_ban_as_xml_has_no_warning_in_it() -> None:
    out = run(running(), "crm_resource -B -r db -N n1 --output-as=xml")[1]
    assert out.splitlines()[1:] == ['  <status code="0" message="OK"/>', "</pacemaker-result>"]


def ended() -> Cluster:
    cluster = running()
    cluster.configure(
        "location cli-ban-db-on-n1 db rule $id=r1 -inf: #uname eq n1 and date lt 2020-01-01\n"
        "location cli-ban-db-on-n3 db rule $id=r3 -inf: #uname eq n3 and date lt 2040-01-01\n"
        "location cli-ban-web-on-n3 web rule $id=r4 -inf: #uname eq n3 and date lt 2020-01-01\n"
    )
    return cluster


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        ("", ["cli-ban-db-on-n1", "cli-ban-web-on-n3"]), ("-r db", ["cli-ban-db-on-n1"]), ("-r db -N n3", []),
        ("-N n3", ["cli-ban-web-on-n3"]),
    ],
)  # fmt: skip
def test_bans_that_have_ended_are_cleared(words: str, gone: list[str]) -> None:
    cluster = ended()
    before = set(cluster.cib.configuration.constraints)
    assert run(cluster, f"crm_resource --clear --expired {words}") == (
        0, "".join(f"Removing constraint: {each}\n" for each in gone), "")  # fmt: skip
    assert before - set(cluster.cib.configuration.constraints) == set(gone)


def test_a_meta_attribute_of_what_is_cloned_is_set_for_the_clone() -> None:
    cluster = busy()
    said = "Performing update of 'is-managed' on 'pgc', the parent of 'pg:0'\n"
    option = "id=pgc-meta_attributes-is-managed set=pgc-meta_attributes name=is-managed value=false"
    out = f"{said}Set 'pgc' option: {option}\n"
    assert run(cluster, "crm_resource -m -p is-managed -v false -r pg:0") == (0, out, "")
    resources = cluster.cib.configuration.resources
    assert [effective(resources[ResourceId(name)].meta).get("is-managed") for name in ("pg", "pgc")] == [None, "false"]
    assert run(cluster, "crm_resource -m -p priority -v 7 -r pg --force")[0] == 64


def test_a_pattern_changes_one_attribute_and_names_several() -> None:
    cluster = busy()
    assert run(cluster, "crm_attribute -P ing -N n3 -l reboot -v 7") == (0, "", "")
    assert run(cluster, "crm_attribute -n pingd -N n3 -l reboot -G -q")[1] == "7\n"
    code, out, err = run(cluster, "crm_attribute -P '^[ap]' -N n3 -l reboot -v 7")
    assert (code, out, "a-b, pingd" in err) == (64, "", True)
    assert run(cluster, "crm_attribute -P x -N n3 -v 7")[0] == 64
    assert run(cluster, "crm_attribute -P '[' -N n3 -G")[0] == 64


def test_a_file_that_refers_to_nothing_is_no_valid_configuration() -> None:
    text = run(running(), "cibadmin -Q")[1].replace('rsc="db"', 'rsc="dbb"')
    code, out, err = run(running(), "crm_verify -x file.xml", text)
    assert (code, out) == (78, "")
    assert "there is no resource dbb" in err
    code, out, _ = run(running(), "crm_verify -x file.xml --output-as=xml", text)
    assert (code, '<status code="78" message="Invalid configuration"/>' in out) == (78, True)
    assert run(running(), "crm_verify -L --save-xml=x")[0] == 64


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("-c try -b", "crm cib new try"), ("--create-empty=try", "crm cib new try empty"), ("-w", "crm cib list"),
        ("-C try -f", "crm cib commit try"), ("-D try", "crm cib delete try"), ("-s try", "crm -c try"),
        ("", "crm cib new NAME"),
    ],
)  # fmt: skip
def test_a_shadow_is_made_by_crm_cib(words: str, instead: str) -> None:
    status, out, err = run(running(), f"crm_shadow {words}")
    assert (status, out) == (64, "")
    assert err.endswith(f": {instead}\n")


@pytest.mark.parametrize("xpath", ["(//primitive)[0]", "(//primitive)[3", "//primitive[self::group]", "((//a)[1])[1]"])
def test_a_path_that_leads_nowhere_or_is_not_understood(xpath: str) -> None:
    assert run(running(), f'cibadmin -Q -A "{xpath}"')[0] in (64, 105)


def test_digests_of_what_is_hidden_are_of_what_is_shown() -> None:
    cluster = running()
    before = run(cluster, "crm_resource --digests -r power -N n1")
    cluster.configure("primitive other stonith:fence_local params password=one")
    one = run(cluster, "crm_resource --digests -r other -N n1")
    cluster.configure("primitive other2 stonith:fence_local params password=two")
    assert one == run(cluster, "crm_resource --digests -r other2 -N n1")
    assert before[0] == 0
    assert one != before
