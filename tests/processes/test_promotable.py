"""Clones, promotion, notifications, live migration and reloads with real daemons and real agents."""

import signal
from pathlib import Path

import pytest

from haclusterd.model.records import dataclass
from tests.processes.daemons import Scenario, kill

pytestmark = [pytest.mark.processes, pytest.mark.slow]

PROMOTABLE = (
    "primitive db ocf:haclusterd:stateful params scores='n1:10 n2:20 n3:5' state={state} record={record} "
    "op monitor interval=1s role=Promoted timeout=10s op monitor interval=1100ms role=Unpromoted timeout=10s",
    "clone db-clone db meta promotable=true notify=true",
    "primitive ip ocf:haclusterd:dummy params state={directory}/ip record={record}",
    "colocation ip-with-primary inf: ip db-clone:Promoted",
    "order promote-then-ip Mandatory: db-clone:promote ip:start",
)


@dataclass(frozen=True, slots=True)
class Line:
    """One action, as the agent recorded it."""

    at_ms: int
    node: str
    instance: str
    action: str
    code: int
    occasion: tuple[str, ...]


def recorded(file: Path) -> list[Line]:
    lines = []
    for text in file.read_text().splitlines() if file.exists() else ():
        at, node, instance, action, code, *occasion = text.split()
        lines.append(Line(int(at), node, instance, action, int(code), tuple(occasion)))
    return sorted(lines, key=lambda line: line.at_ms)


def with_database(scenario: Scenario, tmp_path: Path) -> Path:
    record = tmp_path / "record"
    words = {"record": record, "directory": tmp_path, "state": "''"}
    scenario.configure(*(line.format(**words) for line in PROMOTABLE))
    return record


def roles(scenario: Scenario, resource: str = "db") -> dict[str, str]:
    rows = scenario.must("resource.status", resources=[resource])["resources"]
    return {each["node"]: each["role"] for row in rows for each in row["instances"] if each.get("node")}


def promoted(scenario: Scenario) -> list[str]:
    return [node for node, role in roles(scenario).items() if role == "Promoted"]


def check_never_two_promoted(lines: list[Line], lost: dict[str, int]) -> None:
    """Replay the record: a promote succeeds only when no other node is promoted (or was lost before)."""
    holders: set[str] = set()
    for line in lines:
        if line.instance != "db":
            continue
        holders -= {node for node, at in lost.items() if at <= line.at_ms}
        if line.action == "promote" and line.code == 0:
            holders.add(line.node)
            assert len(holders) == 1, (line, holders)
        elif line.action in ("demote", "stop"):
            holders.discard(line.node)


def test_the_primary_dies_and_another_is_promoted(running: Scenario, tmp_path: Path) -> None:
    record = with_database(running, tmp_path)
    running.until("n2, which wants it most, to be promoted", lambda: promoted(running) == ["n2"])
    running.until("the address with it", lambda: list(roles(running, "ip")) == ["n2"])
    running.settle()
    assert sorted(roles(running)) == ["n1", "n2", "n3"]

    at_ms = max(line.at_ms for line in recorded(record)) + 1
    for process in (running.brain("n2"), running.pacer("n2")):
        kill(process.pid, signal.SIGKILL)
    running.until("another to be promoted", lambda: promoted(running) in (["n1"], ["n3"]))
    assert promoted(running) == ["n1"]
    running.until("the address to follow", lambda: list(roles(running, "ip")) == ["n1"])
    lines = recorded(record)
    check_never_two_promoted(lines, {"n2": at_ms})

    pre = [
        line for line in lines if line.action == "notify" and line.occasion[0] == "pre-promote" and line.node == "n3"
    ]
    assert pre, "nobody notified n3 that n1 is about to be promoted"
    assert "promote_uname=n1" in pre[-1].occasion


def test_a_move_of_the_primary_demotes_before_it_promotes(running: Scenario, tmp_path: Path) -> None:
    record = with_database(running, tmp_path)
    running.until("n2 to be promoted", lambda: promoted(running) == ["n2"])
    running.settle()
    running.must("node.standby", node="n2")
    running.until("n1 to be promoted", lambda: promoted(running) == ["n1"])
    running.until("n2 to be empty", lambda: "n2" not in roles(running))
    running.settle()
    running.must("node.online", node="n2")
    running.until("n2 to follow again", lambda: roles(running).get("n2") == "Unpromoted")
    running.settle()
    assert promoted(running) == ["n1"]
    check_never_two_promoted(recorded(record), {})


def test_a_failed_primary_is_recovered(running: Scenario, tmp_path: Path) -> None:
    record = with_database(running, tmp_path)
    running.until("n2 to be promoted", lambda: promoted(running) == ["n2"])
    running.settle()
    count = len([line for line in recorded(record) if line.action == "promote"])
    state = next(running.cluster.directory.glob("**/n2/**/stateful-db.state"))
    state.unlink()
    running.until("a new promotion", lambda: len([1 for line in recorded(record) if line.action == "promote"]) > count)
    running.until("one primary again", lambda: len(promoted(running)) == 1)
    running.settle()
    assert sorted(roles(running)) == ["n1", "n2", "n3"]


def test_a_migratable_resource_is_migrated_without_a_stop(running: Scenario, tmp_path: Path) -> None:
    record = tmp_path / "record"
    running.configure(
        f"primitive vm ocf:haclusterd:stateful params scores='' record={record} meta allow-migrate=true "
        "op monitor interval=1s timeout=10s",
    )
    running.until("the machine to run", lambda: len(roles(running, "vm")) == 1)
    running.settle()
    [source] = roles(running, "vm")
    target = next(name for name in ("n1", "n2", "n3") if name != source)
    running.must("resource.move", resource="vm", node=target)
    running.until("it to be there", lambda: list(roles(running, "vm")) == [target])
    running.settle()
    done = [(line.node, line.action) for line in recorded(record) if line.instance == "vm"]
    assert done[-3:] == [(source, "migrate_to"), (target, "migrate_from"), (source, "stop")]
    assert (target, "start") not in done


def test_a_parameter_that_is_reloadable_restarts_nothing(running: Scenario, tmp_path: Path) -> None:
    record = tmp_path / "record"
    line = f"primitive app ocf:haclusterd:stateful params scores='' record={record} fake={{}} op monitor interval=1s"
    running.configure(line.format("one"))
    running.until("it to run", lambda: len(roles(running, "app")) == 1)
    running.settle()
    text = f"{line.format('two')}\n"
    running.must("configure.load", mode="update", text=text, source="test")
    running.until("a reload", lambda: any(each.action == "reload-agent" for each in recorded(record)))
    running.settle()
    actions = [each.action for each in recorded(record) if each.instance == "app"]
    assert actions.count("start") == 1
    assert "stop" not in actions


def test_an_anonymous_clone_runs_everywhere_and_one_copy_recovers_alone(running: Scenario, tmp_path: Path) -> None:
    record = tmp_path / "record"
    running.configure(
        f"primitive agent ocf:haclusterd:dummy params record={record} op monitor interval=500ms",
        "clone agents agent",
    )
    running.until("three copies", lambda: sorted(roles(running, "agent")) == ["n1", "n2", "n3"])
    running.settle()
    before = [line for line in recorded(record) if line.action == "start"]
    next(running.cluster.directory.glob("**/n2/**/dummy-agent.state")).unlink()
    running.until("a restart", lambda: len([1 for line in recorded(record) if line.action == "start"]) > len(before))
    running.settle()
    again = [line.node for line in recorded(record) if line.action == "start"][len(before) :]
    assert again == ["n2"]
