"""Line by line: levels, waiting changes, leaving; as a person types it and as a script has it."""

import io
from collections.abc import Callable

import pytest

from haclusterd.cli.interpreter import Interpreter, LeftInterpreterError, in_columns, run_script
from haclusterd.cli.render.terminal import Screen
from haclusterd.cli.session import Session, Streams
from haclusterd.cli.shadow_files import Shadows
from haclusterd.model.ids import ResourceId
from haclusterd.model.requests import Progress, Request, Response
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


def test_a_forced_commit_asks_nothing() -> None:
    terminal = Terminal(running(), is_script=True)
    assert terminal.type("configure", "delete --cascade web", "commit") == [0, 0, 107]
    assert terminal.type("commit force") == [0]
    assert not terminal.has("web")


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


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("primitive x ocf:haclusterd:dummy \\", "the last line ends in a backslash, and the rest of the statement is"),
        ("primitive x 'ocf:haclusterd:dummy", "a quotation mark is not closed"),
    ],
)
def test_a_statement_that_does_not_end_is_named(line: str, problem: str) -> None:
    terminal = Terminal(running())
    assert terminal.type("configure", line) == [0, 64]
    assert problem in terminal.err.getvalue()


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


def test_the_end_of_input_is_no_answer() -> None:
    terminal = Terminal(running())
    terminal.type("configure", f"primitive x ocf:haclusterd:dummy {ON_IT}")
    with pytest.raises(EOFError):
        terminal.type("up")
    assert (terminal.level, terminal.has("x"), len(terminal.session.pending)) == ("configure", False, 1)


@pytest.mark.parametrize("line", ["resource stop db", "cib use live", "configure load update -", "configure edit"])
@pytest.mark.parametrize(("answer", "waits"), [("s\n", 1), ("n\n", 0)])
def test_nothing_is_committed_by_the_way(
    line: str, answer: str, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.delenv("VISUAL", raising=False)
    terminal = Terminal(running(), answer)
    terminal.session.shadows = Shadows("/nowhere", lambda _: terminal.client, terminal.client)
    terminal.type(f"configure primitive x ocf:haclusterd:dummy {ON_IT}", line)
    assert "not committed" in terminal.err.getvalue()
    assert (terminal.has("x"), len(terminal.session.pending)) == (False, waits)


@pytest.mark.parametrize("line", ["status", "resource status", "verify", "options show", "history events"])
def test_looking_does_not_ask_about_waiting_changes(line: str) -> None:
    terminal = Terminal(running())
    terminal.type(f"configure primitive x ocf:haclusterd:dummy {ON_IT}", line)
    assert "not committed" not in terminal.err.getvalue()
    assert len(terminal.session.pending) == 1


class Interrupting:
    """A client whose caller is interrupted by ^C when it asks this verb."""

    def __init__(self, client: ClusterClient, verb: str) -> None:
        self.client, self.verb = client, verb

    def describe(self) -> str:
        return self.client.describe()

    def call(self, request: Request, progress: Callable[[Progress], None]) -> Response:
        if request.verb == self.verb:
            raise KeyboardInterrupt
        return self.client.call(request, progress)


def test_a_statement_that_is_interrupted_does_not_wait() -> None:
    terminal = Terminal(running())
    terminal.type("configure", f"primitive x ocf:haclusterd:dummy {ON_IT}")
    terminal.session.client = Interrupting(terminal.client, "configure.script")
    with pytest.raises(KeyboardInterrupt):
        terminal.type(f"primitive y ocf:haclusterd:dummy {ON_IT}")
    assert [statement.split()[1] for _, statement in terminal.session.pending] == ["x"]


def test_paths_of_levels() -> None:
    terminal = Terminal(running())
    found = []
    for path in ("configure/ra", "..", "../node", "/", "/resource/", "../configure/cib/cibstatus", "/"):
        assert terminal.type(f"cd {path}") == [0]
        found.append("/".join(level.name for level in terminal.interpreter.levels))
    assert found == [
        "/configure/ra", "/configure", "/node", "", "/resource", "/configure/cib/cibstatus", ""
    ]  # fmt: skip
    assert terminal.type("cd configure/nothing") == [64]
    assert "there is no level nothing" in terminal.err.getvalue()


def test_what_is_here_in_columns_for_a_person_and_in_one_line_for_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal(running())
    terminal.type("ls")
    lines = terminal.out.getvalue().splitlines()
    assert {"configure", "status", "why"} <= set(" ".join(lines).split())
    assert max(map(len, lines)) <= 40
    script = Terminal(running(), is_script=True)
    script.type("cd maintenance", "ls")
    assert script.out.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("words", "width", "lines"),
    [([], 20, []), (["a", "b", "c"], 6, ["a  c", "b"]), (["a-long-word", "b"], 5, ["a-long-word", "b"])],
)
def test_columns(words: list[str], width: int, lines: list[str]) -> None:
    assert in_columns(words, width) == lines


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
