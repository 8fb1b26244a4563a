"""The tools that stock agents call, called as they call them; the output is Pacemaker 2.1.5's."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from haclusterd.model.cluster import NodeState
from tests.agents.answering_daemon import AnsweringDaemon

TOOLS = Path(__file__).parents[2] / "shims"
MISSING = "Error performing operation: No such device or address"


def run(daemon: AnsweringDaemon | None, line: str, **environment: str) -> tuple[int, str, str]:
    tool, *arguments = shlex.split(line)
    done = subprocess.run(
        [TOOLS / tool, *arguments],
        env={
            "PATH": "/usr/bin:/bin",
            "HACLUSTERD_NODE": "n1",
            "HACLUSTERD_SOCKET": str(daemon.socket) if daemon else "/no/such/socket",
            "OCF_RESOURCE_INSTANCE": "pg:2",
            "PYTHONPATH": str(TOOLS.parent),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


DIALOGUES = {
    "crm_attribute until reboot": """
        crm_attribute -N n1 -l reboot --name foo -v 7 ->
        crm_attribute -N n1 -l reboot --name foo --query -> scope=status  name=foo value=7
        crm_attribute -N n1 -l reboot -n foo -G -q -> 7
        crm_attribute -N n1 -l reboot --name foo --quiet -> 7
        crm_attribute -N n1 -l reboot --name foo -D -> Deleted status attribute: id=status-1-foo name=foo
        crm_attribute -N n1 -l reboot --name foo -D ->
        crm_attribute --node n1 --lifetime=reboot -n e --update= ->
        crm_attribute -l reboot -n e -G -> scope=status  name=e value=
    """,
    "crm_attribute for ever": """
        crm_attribute -N n1 -l forever -n data -v 'A|B' ->
        crm_attribute -N n1 -l forever -n data -G -> scope=nodes  name=data value=A|B
        crm_attribute --type nodes --node n1 -n data -G -q -> A|B
        crm_attribute -N n1 -l reboot -n data -G -q -d none -> none
    """,
    "promotion scores": """
        crm_attribute -p -N n1 -v 10 ->
        crm_attribute -p -N n1 -G -> scope=status  name=master-pg value=10
        crm_master -Q -l reboot -v 20 ->
        crm_master -l forever -v 1001 -N n1 ->
        crm_master --lifetime forever --quiet --get-value -> 1001
        crm_master -q -l reboot -G -> 20
        crm_master -l reboot -D -> Deleted status attribute: id=status-1-master-pg name=master-pg
    """,
    "attrd_updater": """
        attrd_updater -n ping -U 100 -d 5s -S status ->
        attrd_updater -n ping -Q -> name="ping" host="n1" value="100"
        attrd_updater -n ping -B 200 -d 5 ->
        attrd_updater --name ping --query --node n1 -> name="ping" host="n1" value="200"
        attrd_updater -n lsn -v '0/3000060#1' -N n2 ->
        attrd_updater -n lsn -Q -A -> name="lsn" host="n2" value="0/3000060#1"
        attrd_updater -n x -Q -N n2 -U 5 ->
        attrd_updater -n x -Q -N n2 -> name="x" host="n2" value="5"
        attrd_updater -n ping -D ->
        attrd_updater -R ->
    """,
    "properties": """
        crm_attribute --type=crm_config --name=stonith-enabled --query --quiet --default=true -> true
        crm_attribute -t crm_config -n no-such-property -G -q -d 0 -> 0
    """,
    "membership": """
        crm_node -n ->n1
        crm_node -i ->1
        crm_node --quorum ->1
        crm_node -q ->1
        pacemakerd -$ ->Pacemaker 2.1.5\\nWritten for the tools of haclusterd
        crm_node -l ->1 n1 member\\n2 n2 member\\n3 n3 lost
        crm_node --partition ->n1 n2 \\n
        crm_node -l -p ->n1 n2 \\n
    """,
}


@pytest.mark.parametrize("name", DIALOGUES)
def test_tools_print_what_pacemakers_print(name: str, daemon: AnsweringDaemon) -> None:
    daemon.cluster.state("n3", NodeState.LOST)
    for line in DIALOGUES[name].strip().splitlines():
        command, _, expected = (part.strip() for part in line.partition("->"))
        code, out, err = run(daemon, command)
        assert (command, code, out.rstrip("\n"), err) == (command, 0, expected.replace("\\n", "\n").rstrip("\n"), "")


def test_a_private_attribute_is_for_the_tools_alone(daemon: AnsweringDaemon) -> None:
    assert run(daemon, "attrd_updater -n lsn -p -v 7 -N n2") == (0, "", "")
    assert run(daemon, "attrd_updater -n lsn -Q -N n2")[1] == 'name="lsn" host="n2" value="7"\n'
    assert daemon.attributes("n2") == {}
    assert run(daemon, "attrd_updater -n lsn -v 8 -N n2") == (0, "", "")
    assert run(daemon, "attrd_updater -n lsn -Q -N n2")[1] == 'name="lsn" host="n2" value="8"\n'
    assert daemon.attributes("n2") == {}
    assert run(daemon, "attrd_updater -n lsn -D -N n2") == (0, "", "")
    assert run(daemon, "attrd_updater -n lsn -Q -N n2")[0] == 78


@pytest.mark.parametrize(
    "command",
    [
        "crm_attribute -N n1 -l reboot -n nothing -G", "crm_attribute -N n1 -l forever -n nothing --quiet",
        "crm_attribute --name nothing --query", "crm_master -l reboot -G",
    ],
)  # fmt: skip
def test_what_is_not_there(command: str, daemon: AnsweringDaemon) -> None:
    assert run(daemon, command) == (105, "", f"crm_attribute: {MISSING}\n")


def test_an_updater_query_of_nothing_fails(daemon: AnsweringDaemon) -> None:
    code, out, err = run(daemon, "attrd_updater -n nothing -Q")
    assert (code, out, "does not exist" in err) == (78, "", True)


def test_the_node_is_the_agents_own(daemon: AnsweringDaemon) -> None:
    assert run(daemon, "attrd_updater -n a -U 1", OCF_RESKEY_CRM_meta_on_node="n3")[0] == 0
    assert run(daemon, "attrd_updater -n a -U 2", HACLUSTERD_NODE="n2")[0] == 0
    assert [daemon.attributes(node) for node in ("n1", "n2", "n3")] == [{}, {"a": "2"}, {"a": "1"}]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("attrd_updater -n a", 78), ("attrd_updater -U 1", 64), ("attrd_updater -n a -U 1 -d soon", 64),
        ("attrd_updater -n a -U 1 more", 64), ("crm_attribute --frobnicate", 64),
        ("crm_node", 64), ("crm_node --remove n3", 64), ("pacemakerd --foreground", 64),
        ("attrd_updater -n a -U 1 -N n9", 105), ("crm_verify -x /no/such/file", 66), ("cibadmin --erase --force", 64),
    ],
)  # fmt: skip
def test_what_is_refused(command: str, code: int, daemon: AnsweringDaemon) -> None:
    found, out, err = run(daemon, command)
    assert (found, out) == (code, "")
    assert err.startswith(f"{command.split(maxsplit=1)[0]}: ")


@pytest.mark.parametrize(("name", "command"), [
    ("CIB_shadow", "crm_mon -1"), ("CIB_shadow", "cibadmin -Q"), ("CIB_file", "crm_node -n"),
    ("CIB_file", "stonith_admin -B n1"), ("CIB_file", "attrd_updater -n x -U 1"),
])  # fmt: skip
def test_a_call_for_a_file_does_not_reach_the_cluster(name: str, command: str, daemon: AnsweringDaemon) -> None:
    code, out, err = run(daemon, command, **{name: "/tmp/cib.xml"})
    assert (code, out, f"{name} is set" in err) == (64, "", True)


CIB = """<cib validate-with="pacemaker-3.9" epoch="3" num_updates="0" admin_epoch="0" have-quorum="1" dc-uuid="1">
  <configuration>
    <crm_config>
      <cluster_property_set id="options"><nvpair id="o1" name="stonith-enabled" value="false"/></cluster_property_set>
    </crm_config>
    <nodes><node id="1" uname="node1"/></nodes>
    <resources><primitive id="a" class="ocf" provider="pacemaker" type="Dummy"/></resources>
    <constraints/>
  </configuration>
  <status>
    <node_state id="1" uname="node1" in_ccm="true" crmd="online" join="member" expected="member"/>
  </status>
</cib>
"""


def test_a_file_is_asked_and_changed_without_a_daemon(tmp_path: Path) -> None:
    file = tmp_path / "cib.xml"
    file.write_text(CIB)
    assert run(None, "crm_resource -l", CIB_file=str(file)) == (0, "a\n", "")
    assert run(None, "cibadmin -Q", CIB_file=str(file)) == (0, CIB, "")
    assert run(None, "crm_attribute -t crm_config -n cluster-delay -v 30s", CIB_file=str(file)) == (0, "", "")
    assert 'name="cluster-delay" value="30s"' in file.read_text()
    assert run(None, "crm_mon -1", CIB_file=str(tmp_path / "none"))[0] == 66


@pytest.mark.parametrize("words", ["-x FILE -S", "-Sx FILE", "-xFILE -S", "--xml-file=FILE -S", "--xml-file FILE -VS"])
def test_a_plan_is_made_for_a_file_without_a_daemon(words: str, tmp_path: Path) -> None:
    file, out = tmp_path / "cib.xml", tmp_path / "out.xml"
    file.write_text(CIB)
    code, text, err = run(None, f"crm_simulate {words.replace('FILE', str(file))} -O {out}")
    assert (code, "  * Start      a       ( node1 )" in text, err) == (0, True, "")
    assert 'operation_key="a_start_0"' in out.read_text()
    assert file.read_text() == CIB


@pytest.mark.parametrize(("tool", "code"), [("crm_simulate", 64), ("cibadmin", 64), ("crm_diff", 65)])
def test_a_tool_without_words_says_what_it_wants(tool: str, code: int, tmp_path: Path) -> None:
    file = tmp_path / "cib.xml"
    file.write_text(CIB)
    status, out, err = run(None, tool, CIB_file=str(file))
    assert (status, out, "Traceback" in err) == (code, "", False)


def test_dates_have_nothing_to_do_with_a_file(daemon: AnsweringDaemon) -> None:
    assert run(daemon, "iso8601 -d 2024-02-29", CIB_file="/nowhere")[0] == 0


def test_a_plan_is_made_for_what_is_piped_in(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HACLUSTERD_SOCKET": "/no/such/socket", "PYTHONPATH": str(TOOLS.parent)}
    done = subprocess.run([TOOLS / "crm_simulate", "-SQp"], env=environment, input=CIB, capture_output=True, text=True,
                          timeout=30, check=False)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_file_is_verified_without_a_daemon(tmp_path: Path) -> None:
    file = tmp_path / "cib.xml"
    file.write_text(CIB)
    assert run(None, f"crm_verify -x {file}")[:2] == (0, "")
    file.write_text(CIB.replace("node1", "node 1<"))
    assert run(None, f"crm_verify -x {file}")[0] != 0
    assert run(None, "crm_verify -L")[0] == 102


def test_an_agents_state_of_what_another_tool_prints_is_the_clusters(daemon: AnsweringDaemon) -> None:
    assert run(daemon, "crm_mon -1", CIB_file="/dev/fd/63")[0] == 0


def test_two_files_are_compared(daemon: AnsweringDaemon, tmp_path: Path) -> None:
    old, new, patch = (tmp_path / name for name in ("old", "new", "patch"))
    old.write_text('<cib epoch="1"><a id="1"/></cib>')
    new.write_text('<cib epoch="2"><a id="1" x="2"/></cib>')
    code, out, err = run(daemon, f"crm_diff --original={old} -n {new}")
    assert (code, '<change operation="modify" path="/cib/a[@id=&apos;1&apos;]">' in out, err) == (1, True, "")
    patch.write_text(out)
    assert run(daemon, f"crm_diff -o {old} -p{patch}")[:2] == (0, '<cib epoch="2">\n  <a id="1" x="2"/>\n</cib>\n')
    assert run(daemon, f"crm_diff -o {old} -n {old}") == (0, "", "")
    assert run(daemon, f"crm_diff -o {old} -n {tmp_path}/no")[0] == 66


def test_dates_are_read_as_the_cluster_reads_them(daemon: AnsweringDaemon) -> None:
    assert run(daemon, "iso8601 -d 2024-060 -D P1D")[1].splitlines()[-1] == "Duration ends at: 2024-03-01 00:00:00Z"
    assert run(daemon, "iso8601 -d now -L")[0] == 64


@pytest.mark.parametrize(
    ("words", "code", "out"),
    [
        ("-X 105", 0, "No such object"), ("-n -X 64", 0, "CRM_EX_USAGE - Incorrect usage"),
        ("-X 1 4", 0, "Error occurred\nInsufficient privileges"), ("6", 0, "No such device or address"),
        ("-n -- -62", 0, "ETIME - Timer expired"), ("-X 99", 0, "Unknown exit status"),
        ("0", 0, "OK"), ("nonsense", 64, ""), ("-l", 64, ""), ("--nothing", 64, ""), ("--output-as=html 1", 64, ""),
        ("--output-to=x 1", 64, ""), ("--version", 0, "Pacemaker 2.1.5"),
    ],
)  # fmt: skip
def test_codes_are_explained_without_a_daemon(words: str, code: int, out: str) -> None:
    found, text, _ = run(None, f"crm_error {words}")
    assert (found, text.rstrip("\n")) == (code, out)


def test_codes_are_listed_and_written_as_xml() -> None:
    listed = run(None, "crm_error -l -X -n")[1].splitlines()
    assert (len(listed), listed[-1]) == (43, "  193: CRM_EX_NONE                 No exit status available")
    assert run(None, "crm_error -X 105 --output-as=xml")[1].splitlines()[1:] == [
        '  <result-code code="105" description="No such object"/>', '  <status code="0" message="OK"/>',
        "</pacemaker-result>"]  # fmt: skip


def test_a_promotion_score_needs_a_resource(daemon: AnsweringDaemon) -> None:
    assert run(daemon, "crm_master -v 5", OCF_RESOURCE_INSTANCE="")[0] == 64


def test_without_a_daemon_they_fail_at_once() -> None:
    for command in ("attrd_updater -n a -U 1", "crm_attribute -n a -N n1 -G", "crm_master -v 1", "crm_node -l"):
        code, out, err = run(None, command)
        assert (code, out, "/no/such/socket" in err) == (102, "", True)
    assert run(None, "crm_node -n") == (0, "n1\n", "")


def test_a_large_value_passes(daemon: AnsweringDaemon) -> None:
    value = "0/3000060#1 " * 300
    assert run(daemon, f"attrd_updater -n lsn -U '{value}'")[0] == 0
    assert daemon.attributes() == {"lsn": value}


def test_every_tool_is_executable() -> None:
    assert [path.name for path in TOOLS.iterdir() if not os.access(path, os.X_OK)] == []


def test_what_is_printed_is_written_to_the_file_that_was_named(daemon: AnsweringDaemon, tmp_path: Path) -> None:
    page = tmp_path / "state.html"
    assert run(daemon, f"crm_mon -1 -h {page}") == (0, "", "")
    assert page.read_text().startswith("<!DOCTYPE html>\n")
    assert run(daemon, f"crm_mon -1 --output-as=text --output-to={page}") == (0, "", "")
    assert page.read_text().startswith("Cluster Summary:\n")
    missing = tmp_path / "no" / "directory"
    assert run(daemon, f"crm_mon -1 --output-to={missing}") == (
        1, "", f"crm_mon: {missing}: No such file or directory\n"
    )  # fmt: skip
