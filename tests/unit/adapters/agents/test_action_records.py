"""Records of running actions: written again when the run directory was emptied, and not when the action has ended."""

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

from haclusterd.adapters.agents.action_records import ActionRecord, ActionRecords, find_process
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.agents.process_table import ORDER_MARK, read_arguments, read_marks
from haclusterd.model.ids import Incarnation, ResourceId
from haclusterd.model.instants import Instant
from haclusterd.model.records import replace


def record(key: str) -> ActionRecord:
    life = Incarnation("boot", "0123456789abcdef")
    return ActionRecord(key, ResourceId("db"), "start", life, "/agent", Instant(1), Instant(2), 7, 8)


def test_a_service_that_inherited_the_mark_of_its_agent_is_not_taken_for_the_agent() -> None:
    known = replace(record("inherited"), path="/usr/bin/agent", pid=None, start_time=None)
    # `tail -f FILE...` runs until it is killed, with any arguments that it is given.
    following = ["tail", "--quiet", "-F", "/dev/null"]
    environment = {**os.environ, ORDER_MARK: known.key}
    service = subprocess.Popen(following, env=environment, stderr=subprocess.DEVNULL)
    agent = subprocess.Popen([*following, known.path, known.action], env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not all(read_marks(each.pid).get(ORDER_MARK) == known.key and read_arguments(each.pid)[:1] == ["tail"]
                      for each in (service, agent)):  # fmt: skip
            assert time.monotonic() < deadline
        found = find_process(known)
        assert found is not None
        assert found.pid == agent.pid
    finally:
        for each in (service, agent):
            each.kill()
            each.wait(30)


def test_what_was_taken_away_is_written_again_and_nothing_else(tmp_path: Path) -> None:
    records = ActionRecords(tmp_path / "actions", ReadyThreads(1))
    for key in ("a", "b", "c"):
        records.write(record(key))
    assert records.write_again() == 0
    records.remove("c")
    shutil.rmtree(tmp_path / "actions")
    assert records.write_again() == 2
    assert {each.key for each in ActionRecords(tmp_path / "actions", ReadyThreads(1)).read_all()} == {"a", "b"}


def test_what_an_earlier_daemon_left_is_kept_too(tmp_path: Path) -> None:
    ActionRecords(tmp_path / "actions", ReadyThreads(1)).write(record("a"))
    later = ActionRecords(tmp_path / "actions", ReadyThreads(1))
    later.read_all()
    shutil.rmtree(tmp_path / "actions")
    assert later.write_again() == 1


def test_forgetting_waits_for_nobody_while_the_file_system_does_not_answer(tmp_path: Path) -> None:
    records = ActionRecords(tmp_path / "actions", ReadyThreads(1))
    records.write(record("ended"))
    [path] = (tmp_path / "actions").glob("*.json")
    records.write(record("stuck"))
    [other] = set((tmp_path / "actions").glob("*.json")) - {path}
    os.mkfifo(other.with_suffix(".new"))
    writing = threading.Thread(target=records.write, args=(record("stuck"),))
    writing.start()
    records.remove_soon("ended")
    records.remove_soon("unknown")
    with open(other.with_suffix(".new")) as end:
        end.read()
    writing.join(30)
    deadline = time.monotonic() + 30
    while path.exists():
        assert time.monotonic() < deadline
