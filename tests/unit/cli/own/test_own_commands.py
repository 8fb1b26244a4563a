"""What `crm` carries out by itself: settings, suppositions, scripts, templates, views of the past, services."""

import io
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.own import services
from haclusterd.cli.session import Streams
from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Options, Request, Response
from tests.administered_clusters import ClusterClient, running, with_events, with_versions


def _client() -> ClusterClient:
    cluster = with_events(running())
    return ClusterClient(cluster, versions=with_versions(cluster))


@dataclass
class Person:
    """Somebody who uses `crm` on a cluster, with a home of their own."""

    home: Path
    client: ClusterClient = field(default_factory=_client)

    def types(self, line: str, stdin: str = "") -> tuple[int, str]:
        """Return exit status, and what is on both streams."""
        out = io.StringIO()
        world = World(
            streams=Streams(io.StringIO(stdin), out, out),
            environment={"HOME": str(self.home), "XDG_STATE_HOME": str(self.home / ".local" / "state")},
            connect=lambda _: self.client,
            open_file=lambda path: OfflineClient(path, "root@n1"),
            setup=lambda _: Response("", 0),
            version=lambda: "0",
        )
        status = run(shlex.split(line), world)
        return status, out.getvalue()

    def says(self, line: str, stdin: str = "") -> str:
        """Return what is said to a line that succeeds."""
        status, said = self.types(line, stdin)
        assert status == 0, said
        return said


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.chdir(tmp_path)
    return Person(tmp_path)


def test_a_setting_is_kept_at_the_prompt_and_counts_later(person: Person) -> None:
    assert "kept in" in person.says("options editor nano")
    assert "nano" in person.says("options show editor")
    person.says("options reset")
    assert "nano" not in person.says("options show")


def test_a_setting_in_a_session_counts_until_its_end_unless_it_is_saved(person: Person) -> None:
    assert "nano" in person.says("", "options editor nano\noptions show editor\n")
    assert "nano" not in person.says("options show editor")
    person.says("", "options editor nano\noptions save\n")
    assert "nano" in person.says("options show editor")


@pytest.mark.parametrize("line", ["options set edtor vim", "options set wait maybe", "options colorscheme red,blue"])
def test_a_setting_that_means_nothing_is_refused(person: Person, line: str) -> None:
    assert person.types(line)[0] == 2


def test_a_line_of_the_settings_that_means_nothing_is_named(person: Person) -> None:
    path = person.home / ".config" / "haclusterd" / "crm.conf"
    path.parent.mkdir(parents=True)
    path.write_text("edtor = vim\nwait = yes\n")
    said = person.says("options show wait")
    assert "crm.conf:1: there is no setting edtor; did you mean editor?" in said
    assert "yes" in said


def test_the_document_is_shown_in_its_order_when_that_is_set(person: Person) -> None:
    before = person.says("configure show")
    person.says("options sort-elements no")
    assert sorted(before.splitlines()) == sorted(person.says("configure show").splitlines())


def test_a_supposed_node_counts_in_the_plans_of_the_same_session(person: Person) -> None:
    said = person.says("", "cibstatus node n1 unclean\ncibstatus show changed\nsimulate\n")
    assert "node-down n1" in said
    assert "fence" in said
    assert "node-down" not in person.says("cibstatus show changed")


def test_what_cannot_be_supposed_is_refused_and_not_kept(person: Person) -> None:
    status, said = person.types("cibstatus node n9 unclean")
    assert status != 0
    assert "n9" in said


def test_a_supposed_failure_is_about_the_node_where_the_resource_runs(person: Person) -> None:
    said = person.says("cibstatus op monitor web not_running")
    assert "op-fail web:monitor@" in said
    assert said.endswith("=7\n")


def test_a_supposed_state_is_saved_and_can_be_loaded(person: Person) -> None:
    person.says("", "cibstatus node n1 unclean\ncibstatus save supposed.cib\n")
    assert "supposed.cib" in person.says("", "cibstatus load supposed.cib\ncibstatus origin\n")
    assert "n1" in person.says("--cib-file supposed.cib status")
    assert person.types("cibstatus save supposed.cib")[0] == 74


def test_a_script_makes_what_it_shows(person: Person) -> None:
    said = person.says("script run systemd id=proxy unit=haproxy --dry-run")
    assert "+ primitive proxy" in said
    assert person.types("script run systemd id=proxy")[0] == 2
    assert person.types("script run sytemd id=proxy")[1].count("did you mean systemd?") == 1


def test_a_parameter_without_a_value_is_left_out_of_a_script(person: Person) -> None:
    person.says("template new vip virtual-ip params ip=192.0.2.10")
    assert "nic=" not in person.says("template show vip")
    person.says("template new vip2 virtual-ip params ip=192.0.2.10 nic=eth0")
    assert "nic=eth0" in person.says("template show vip2")


def test_a_script_answers_programs_by_lines_of_json(person: Person) -> None:
    *lines, end = person.says("""script json '["list"]'""").splitlines()
    assert end == '"end"'
    assert {json.loads(line)["category"] for line in lines} >= {"Network", "Storage"}
    asked = json.dumps(["verify", "virtual-ip", {"id": "vip", "ip": "192.0.2.10"}])
    assert "primitive vip" in json.loads(person.says(f"script json {shlex.quote(asked)}").splitlines()[0])["text"]
    assert person.types("script json '['")[0] == 65


def test_a_configuration_in_preparation_is_applied_and_deleted(person: Person) -> None:
    person.says("template new proxy systemd params unit=haproxy")
    assert "proxy" in person.says("template list configs")
    assert "+ primitive proxy" in person.says("template apply update proxy --dry-run")
    person.says("template delete proxy")
    assert person.types("template show proxy")[0] == 2


def test_a_view_of_the_past_counts_in_its_session(person: Person) -> None:
    every = person.says("history events").splitlines()
    some = person.says("", "history exclude start\nhistory events\n").splitlines()
    assert any("start" in line for line in every)
    assert not any("start of" in line for line in some)
    assert person.types("history exclude '('")[0] == 2
    assert person.types("history limit soon")[0] == 2


def test_events_of_chosen_nodes_alone_are_shown(person: Person) -> None:
    said = person.says("", "history setnodes n2\nhistory detail 1\nhistory events\n")
    events = [line for line in said.splitlines() if "(n" in line]
    assert events
    assert all("(n2" in line for line in events)


def test_a_session_of_the_past_is_kept_loaded_packed_and_deleted(person: Person) -> None:
    person.says("", "history exclude monitor\nhistory session save outage\n")
    said = person.says("", "history session load outage\nhistory events\n")
    assert "monitor" in said
    assert "outage.tar.gz" in said
    person.says("history session pack outage")
    assert Path("outage.tar.gz").stat().st_mode & 0o777 == 0o600
    person.says("history session delete outage")
    assert person.types("history session load outage")[0] == 105


def test_a_report_is_asked_in_the_place_of_the_cluster(person: Person) -> None:
    person.says("report web.tar.gz")
    live = person.says("history events --resource web").splitlines()
    said = person.says("", "history source web.tar.gz\nhistory events --resource web\n").splitlines()
    assert [line for line in live if line in said]
    assert person.types("history source cib.xml")[0] == 66


def test_a_transition_is_drawn(person: Person) -> None:
    said = person.says("history graph")
    assert said.startswith("digraph transition {")
    assert "->" in said or said.count("[label=") == 1


def test_events_of_several_nodes_and_resources_are_asked_for_at_once(person: Person) -> None:
    every = person.says("history resource db web power")
    assert "monitor of db failed" in every
    assert person.says("history resource 'd.'") == person.says("history resource db")
    assert "monitor of db failed" in person.says("history node n1 'n[23]'")
    assert "monitor of db failed" not in person.says("history log n1 n3")
    assert "monitor of db failed" in person.says("history log n1 n2")
    status, said = person.types("history resource db 'no.*'")
    assert status == 105
    assert "no.*" in said
    assert person.types("history node n9 n2")[0] == 68
    assert person.types("history resource '('")[0] == 2


def test_several_resources_are_asked_of_a_report(person: Person) -> None:
    person.says("report web.tar.gz")
    said = person.says("", "history source web.tar.gz\nhistory resource web 'd.'\nhistory node n1\n")
    assert said.count("monitor of db failed") == 1


@pytest.mark.parametrize(("back", "number"), [("-1", "7"), ("0", "7"), ("live", "7"), ("-2", "6"), ("4.3", "7")])
def test_a_version_is_counted_back_or_is_the_one_of_a_transition(person: Person, back: str, number: str) -> None:
    assert person.says(f"history show {back}") == person.says(f"history show {number}")


def test_versions_that_are_counted_back_are_compared(person: Person) -> None:
    assert person.says("history diff -2 -1") == person.says("history diff 6 7")
    assert person.says("history diff -2 live") == person.says("history diff 6")
    assert person.says("history wdiff 6 4.3") == person.says("history diff 6 7")
    assert "<table" in person.says("history diff -2 -1 html")
    assert person.types("history show -40")[0] == person.types("history show 40")[0] != 0
    assert person.types("history show pe-input-12.bz2")[0] == 2
    assert person.types("history diff 9.9 live")[0] == 105


def test_the_state_of_the_cluster_then_is_shown_and_compared(person: Person) -> None:
    then = json.loads(person.says("-o json history show 4.3 status"))
    assert then["schema"] == "haclusterd.status/1"
    assert then["now"] < json.loads(person.says("-o json history show live status"))["now"]
    said = person.says("history diff 4.2 live status")
    assert said.startswith("--- 4.2")
    assert "+++ live" in said


def test_transitions_are_chosen_by_number_and_range(person: Person) -> None:
    def listed(words: str) -> list[str]:
        return [each["transition"] for each in json.loads(person.says(f"-o json history {words}"))["transitions"]]

    assert listed("peinputs v") == listed("transitions") == ["4.2", "4.3"]
    assert listed("peinputs 3:9") == listed("transitions 3") == listed("transitions -1 v") == ["4.3"]
    assert listed("peinputs 4.3 1:2") == ["4.2", "4.3"]
    assert person.types("history peinputs 7:9")[0] == 105


def test_what_happened_during_a_transition_is_shown_by_event_and_by_kind(person: Person) -> None:
    log = person.says("history transition log 4.2")
    assert "start of db on n2 failed" in log
    assert "cluster demo formed" not in log
    assert person.says("history transition log 4.2 v") == log
    assert person.says("history transition tags 4.2") == "4.2: error, operation-failed\n"
    assert json.loads(person.says("-o json history transition tags 4.2"))["tags"] == ["error", "operation-failed"]
    assert person.says("history transition nograph") == person.says("history transition 0")
    assert person.says("history transition showdot 4.2") == person.says("history graph 4.2")
    assert person.types("history transition log 9.9")[0] == 105
    assert person.types("history transition scores")[0] == 64
    assert person.types("history transition tags 4.2 4.3")[0] == 64


def test_the_state_at_the_beginning_of_a_transition_is_kept_as_a_shadow(person: Person) -> None:
    assert "transition-4.3" in person.says("history transition save")
    person.says("history transition save 4.2 before")
    assert person.types("history transition save 4.2 before")[0] == 108
    assert person.types("history transition save 4.2 a/b")[0] == 2
    listed = person.says("cib list")
    assert "before" in listed
    assert "transition-4.3" in listed
    assert "primitive db" in person.says("", "cib use before\nconfigure show db\n")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Return what puts a program in the place of another one; what it was called with stands in `called`."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()

    def put(name: str, script: str) -> Path:
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/called\n{script}\n')
        path.chmod(0o755)
        return tmp_path / "called"

    return put


def test_daemons_are_started_here_and_on_other_nodes_by_ssh(
    person: Person, programs: Callable[[str, str], Path]
) -> None:
    called = programs("systemctl", "exit 0")
    programs("ssh", "exit 0")
    person.says("cluster start")
    assert called.read_text() == "systemctl start haclusterd-pacer.service haclusterd.service\n"
    called.unlink()
    person.says("cluster enable n2 n3")
    assert sorted(line.split(" -- ")[-1] for line in called.read_text().splitlines()) == [
        "systemctl enable haclusterd-pacer.service haclusterd.service"
    ] * 2


def test_a_stop_that_ends_the_quorum_is_refused(person: Person, programs: Callable[[str, str], Path]) -> None:
    called = programs("ssh", "exit 0")
    status, said = person.types("cluster stop n2 n3")
    assert status == 107
    assert "1 of 3 voters would stay" in said
    assert not called.exists()
    assert person.types("cluster stop n9")[0] == 68


def test_nodes_are_restarted_one_after_the_other(person: Person, programs: Callable[[str, str], Path]) -> None:
    called = programs("ssh", "exit 0")
    person.says("cluster restart n2 n3")
    assert called.read_text().count("systemctl restart haclusterd.service") == 2


def test_a_restart_waits_until_all_that_were_online_are_so_again(person: Person) -> None:
    whole = person.client.call(Request("1", "cluster.members", {}, Options()), lambda _: None)
    answers = iter([Response("", 69), Response("", 69), whole])
    assert services.still_away(lambda: next(answers), frozenset({"n1", "n2", "n3"}), within_s=60) == frozenset()
    assert services.still_away(lambda: whole, frozenset({"n1", "n9"}), within_s=0) == {"n9"}


def test_a_command_for_the_nodes_is_only_shown_when_it_is_tried(
    person: Person, programs: Callable[[str, str], Path]
) -> None:
    called = programs("ssh", "exit 0")
    assert "would run on n2: uptime" in person.says("cluster run uptime n2 --dry-run")
    assert not called.exists()


def test_what_fails_on_a_node_is_named(person: Person, programs: Callable[[str, str], Path]) -> None:
    programs("ssh", "echo no route >&2; exit 255")
    status, said = person.types("cluster run uptime n2")
    assert status == 1
    assert "n2: no route" in said


def test_what_a_program_says_in_lines_is_one_line(person: Person, programs: Callable[[str, str], Path]) -> None:
    programs("systemctl", "printf 'no systemd here\\nno bus\\n' >&2; exit 1")
    status, said = person.types("cluster start")
    assert status == 1
    assert "this node: no systemd here; no bus" in said


def test_a_file_that_differs_is_shown(person: Person, programs: Callable[[str, str], Path], tmp_path: Path) -> None:
    programs("ssh", 'echo "$*" | grep -q n3 && echo other || echo same')
    (tmp_path / "file").write_text("same\n")
    status, _ = person.types("cluster diff file n2")
    assert status == 0


def test_crmsh_is_followed_where_that_is_wanted(person: Person) -> None:
    assert person.types("configure delete web")[0] != 0
    person.says("options compat crmsh")
    person.says("configure delete web -F")
    assert "primitive web" not in person.says("configure show")
    person.says("resource ban db n3")
    assert "cli-ban-db-on-n3" in person.says("configure show")
    assert "role=Started" in person.says("configure show type:location").replace("$", "")


def test_where_crmsh_is_followed_scripts_read_its_sentences(person: Person) -> None:
    person.says("options compat crmsh")
    status, out = person.types("resource status db web")
    assert (status, out) == (0, "resource db is running on: n2\nresource web is running on: n1\n")
    assert "  * db\t(ocf:haclusterd:dummy):\t Started" in person.says("resource list").splitlines()
    assert "Full List of Resources:" in person.says("status").splitlines()
    assert "  * 3 nodes configured" in person.says("status").splitlines()
    status, out = person.types("resource status db nothing")
    assert status == 105
    assert "Resource 'nothing' not found" in out
    assert json.loads(person.says("-o json resource status db"))["schema"] == "haclusterd.resources/1"
    assert json.loads(person.says("-o json status"))["schema"] == "haclusterd.status/1"


def test_a_script_deletes_as_crmsh_does_where_that_is_wanted(person: Person) -> None:
    status, _ = person.types("", "configure\ndelete web\n")
    assert status != 0
    person.says("options compat crmsh")
    person.says("-F", "configure\ndelete web\n")
    assert "primitive web" not in person.says("configure show")
