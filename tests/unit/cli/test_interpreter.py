"""Line by line: levels, waiting changes, leaving; as a person types it and as a script has it."""

import io

import pytest

from haclusterd.cli.interpreter import Interpreter, LeftInterpreterError, run_script
from haclusterd.cli.render.terminal import Screen
from haclusterd.cli.session import Session, Streams
from haclusterd.model.ids import ResourceId
from tests.administered_clusters import Cluster, ClusterClient, running

ON_IT = "op monitor interval=10s"


class Person(io.StringIO):
    """Somebody at a terminal, with answers."""

    def isatty(self) -> bool:
        return True


class Terminal:
    """A session with a cluster, typed into."""

    def __init__(self, cluster: Cluster, answers: str = "", *, is_script: bool = False) -> None:
        self.cluster = cluster
        self.out, self.err = Person(), Person()
        self.client = ClusterClient(cluster)
        streams = Streams(Person(answers), self.out, self.err)
        self.session = Session(self.client, streams, Screen(), Screen())
        self.interpreter = Interpreter(self.session, is_script=is_script)

    def type(self, *lines: str) -> list[int]:
        """Type lines; return their statuses."""
        return [self.interpreter.execute(line, number) for number, line in enumerate(lines, 1)]

    def has(self, resource: str) -> bool:
        return ResourceId(resource) in self.cluster.cib.configuration.resources

    @property
    def level(self) -> str:
        return self.interpreter.level.name


def test_changes_wait_for_the_commit() -> None:
    terminal = Terminal(running())
    assert terminal.type("configure", f"primitive x ocf:haclusterd:dummy {ON_IT}") == [0, 0]
    assert not terminal.has("x")
    assert terminal.type("commit") == [0]
    assert terminal.has("x")
    assert terminal.session.pending == []


def test_several_changes_are_one_version() -> None:
    terminal = Terminal(running())
    before = terminal.cluster.cib.version.epoch
    terminal.type("configure", f"primitive x ocf:haclusterd:dummy {ON_IT}", "location l x 5: n1", "delete db-likes-n2")
    terminal.type("commit")
    assert terminal.cluster.cib.version.epoch == before + 1


def test_a_person_sees_at_once_what_is_wrong() -> None:
    terminal = Terminal(running())
    assert terminal.type("configure", "primitive 9x ocf:haclusterd:dummy") == [0, 65]
    assert "cannot be an id" in terminal.err.getvalue()
    assert terminal.session.pending == []


def test_what_a_later_line_may_correct_is_kept() -> None:
    terminal = Terminal(running())
    assert terminal.type("configure", "location l later 5: n1") == [0, 0]
    assert "there is no resource later" in terminal.err.getvalue()
    assert terminal.type(f"primitive later ocf:haclusterd:dummy {ON_IT}", "commit") == [0, 0]


def test_a_deletion_that_is_refused_does_not_wait() -> None:
    terminal = Terminal(running())
    assert terminal.type("configure", "location l later 5: n1", "delete nope", "delete site") == [0, 0, 78, 78]
    assert [statement for _, statement in terminal.session.pending] == ["location l later 5: n1"]
    assert "remove it" not in terminal.err.getvalue()


@pytest.mark.parametrize(("answer", "waits"), [("n\n", []), ("y\n", ["delete db --cascade --force"])])
def test_a_deletion_of_what_runs_is_asked_at_once(answer: str, waits: list[str]) -> None:
    terminal = Terminal(running(), answer)
    assert terminal.type("configure", "delete db --cascade")[1] == (107 if not waits else 0)
    assert [statement for _, statement in terminal.session.pending] == waits
    assert terminal.type("commit") == [0]
    assert terminal.has("db") is not bool(waits)


def test_show_and_verify_see_what_waits() -> None:
    terminal = Terminal(running())
    terminal.type("configure", f"primitive x ocf:haclusterd:dummy {ON_IT}", "show x", "verify")
    assert "primitive x ocf:haclusterd:dummy" in terminal.out.getvalue()
    assert [request.arguments.get("pending") for request in terminal.client.requests[-2:]] == [
        f"\nprimitive x ocf:haclusterd:dummy {ON_IT}"
    ] * 2


def test_discard_drops_what_waits() -> None:
    terminal = Terminal(running())
    terminal.type("configure", f"primitive x ocf:haclusterd:dummy {ON_IT}", "discard", "commit")
    assert not terminal.has("x")


def test_diff_changes_nothing() -> None:
    terminal = Terminal(running())
    terminal.type("configure", f"primitive x ocf:haclusterd:dummy {ON_IT}", "diff")
    assert "+ primitive x" in terminal.out.getvalue()
    assert "start x on" in terminal.out.getvalue()
    assert not terminal.has("x")


@pytest.mark.parametrize(
    ("answer", "level", "is_made", "waits"),
    [("y\n", "", True, 0), ("n\n", "", False, 0), ("s\n", "configure", False, 1)],
)
def test_leaving_asks(answer: str, level: str, is_made: bool, waits: int) -> None:
    terminal = Terminal(running(), answer)
    terminal.type("configure", f"primitive x ocf:haclusterd:dummy {ON_IT}", "up")
    assert (terminal.level, terminal.has("x"), len(terminal.session.pending)) == (level, is_made, waits)


def test_quitting_asks_too() -> None:
    terminal = Terminal(running(), "s\nn\n")
    assert terminal.type("configure", f"primitive x ocf:haclusterd:dummy {ON_IT}", "quit") == [0, 0, 1]
    with pytest.raises(LeftInterpreterError):
        terminal.type("quit")


def test_what_is_unsafe_is_asked() -> None:
    terminal = Terminal(running(), "no\nyes\n")
    assert terminal.type("node fence n2", "node fence n2") == [107, 0]
    assert [request.options.force for request in terminal.client.requests] == [False, False, True]


def test_levels() -> None:
    terminal = Terminal(running())
    terminal.type("resource")
    assert terminal.level == "resource"
    assert terminal.type("status", "up", "node", "..", "help", "ls", "# nothing", "") == [0] * 8
    assert terminal.level == ""
    assert terminal.type("move web", "resource why web", 'status "') == [64, 0, 64]


def test_options_count_for_their_line_only() -> None:
    terminal = Terminal(running())
    assert terminal.type("resource stop db -n", "resource", "stop db --reason tired", "status --help") == [0] * 4
    assert [(request.options.dry_run, request.options.reason) for request in terminal.client.requests] == [
        (True, ""), (False, "tired")
    ]  # fmt: skip


def test_a_script_tells_where_it_stopped_and_has_changed_nothing() -> None:
    terminal = Terminal(running())
    text = f"configure\nprimitive x ocf:haclusterd:dummy {ON_IT}\nlocation l x five: n1\n"
    assert run_script(terminal.session, text, "web.crm") == 2
    assert "web.crm:3" in terminal.err.getvalue()
    assert not terminal.has("x")


def test_a_script_commits_before_it_does_anything_else() -> None:
    terminal = Terminal(running())
    text = f"configure primitive x ocf:haclusterd:dummy \\\n  {ON_IT}\nresource stop x\nconfigure delete x -f\n"
    assert run_script(terminal.session, text, "web.crm") == 0
    verbs = [request.verb for request in terminal.client.requests]
    assert verbs == ["configure.script", "resource.stop", "configure.script"]
    assert not terminal.has("x")
