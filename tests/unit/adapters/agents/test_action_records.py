"""Records of running actions: whole or none at every moment, and written again when the run directory was emptied."""

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from haclusterd.adapters.agents.action_records import SPARE_MAX, ActionRecord, ActionRecords, find_process
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.agents.process_table import ORDER_MARK, ORDER_SEAL_MARK, read_arguments, read_marks, read_stat
from haclusterd.model.ids import Incarnation, ResourceId
from haclusterd.model.instants import Instant
from haclusterd.model.records import replace
from tests.unit.adapters.recorded_actions import recorded_in

ROOT = Path(__file__).parents[4]


def record(key: str) -> ActionRecord:
    life = Incarnation("boot", "0123456789abcdef")
    return ActionRecord(
        key, ResourceId("db"), "start", life, "/agent", Instant(1), Instant(2), 7, 8, "not to be guessed"
    )


def test_a_service_that_inherited_the_mark_of_its_agent_is_not_taken_for_the_agent() -> None:
    known = replace(record("inherited"), path="/usr/bin/agent", pid=None, start_time=None)
    # `tail -f FILE...` runs until it is killed, with any arguments that it is given.
    following = ["tail", "--quiet", "-F", "/dev/null"]
    environment = {**os.environ, **known.marks}
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


@pytest.mark.parametrize("is_of_earlier_version", [False, True])
def test_a_process_that_some_user_has_given_an_orders_key_is_not_its_agent(is_of_earlier_version: bool) -> None:
    """An earlier version has given its agents the key alone: what it left is found by that."""
    known = replace(record("1/7/db"), path="/usr/bin/agent", pid=None, start_time=None)
    known = replace(known, seal="") if is_of_earlier_version else known
    environment = {**os.environ, ORDER_MARK: known.key, ORDER_SEAL_MARK: "0" * 32}
    arguments = ["tail", "--quiet", "-F", "/dev/null", known.path, known.action]
    forged = subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while read_marks(forged.pid).get(ORDER_MARK) != known.key or read_arguments(forged.pid)[:1] != ["tail"]:
            assert time.monotonic() < deadline
        assert (find_process(known) is not None) == is_of_earlier_version
    finally:
        forged.kill()
        forged.wait(30)


def test_a_record_keeps_what_nobody_can_guess_to_the_next_daemon_and_shows_it_to_no_other_user(tmp_path: Path) -> None:
    life = Incarnation("boot", "0123456789abcdef")
    written, other = (
        ActionRecord("a", ResourceId("db"), "start", life, "/agent", Instant(1), Instant(2)) for _ in "ab"
    )
    ActionRecords(tmp_path / "actions", ReadyThreads(1)).write(written)
    assert ActionRecords(tmp_path / "actions", ReadyThreads(1)).read_all() == (written,)
    assert written.seal not in repr(written)
    assert len(written.seal) == 32
    assert other.seal != written.seal
    [file] = (tmp_path / "actions").iterdir()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("is_pid_known", [True, False])
def test_an_agent_that_cannot_be_looked_for_is_not_taken_for_none(is_pid_known: bool) -> None:
    start_time = read_stat(os.getpid()).start_time
    pid = os.getpid() if is_pid_known else None
    known = replace(record("hidden"), pid=pid, start_time=start_time if is_pid_known else None)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            find_process(known)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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


def test_forgetting_waits_for_nobody_while_the_file_system_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = ActionRecords(tmp_path / "actions", ReadyThreads(1))
    records.write(record("ended"))
    [path] = recorded_in(tmp_path / "actions")
    # Who opens it for writing waits for a reader.
    next_file = path.with_name(path.name.replace("-1.", "-2."))
    os.mkfifo(next_file)

    def write() -> None:
        with suppress(OSError):  # It is no file.
            records.write(record("stuck"))

    opening, open_file = threading.Event(), os.open

    def opened(path: Path, flags: int, *more: int) -> int:
        if path == next_file:
            opening.set()
        return open_file(path, flags, *more)

    monkeypatch.setattr(os, "open", opened)
    writing = threading.Thread(target=write)
    writing.start()
    assert opening.wait(30)
    records.remove_soon("ended")
    records.remove_soon("unknown")
    with open(next_file, "rb", opener=lambda name, _flags: open_file(name, os.O_RDONLY)):
        writing.join(30)
    next_file.unlink()
    deadline = time.monotonic() + 30
    while recorded_in(tmp_path / "actions"):
        assert time.monotonic() < deadline


def test_the_file_of_an_action_that_has_ended_serves_the_next_one(tmp_path: Path) -> None:
    records = ActionRecords(tmp_path / "actions", ReadyThreads(1))
    long, short = replace(record("long"), path="/x" * 3000), record("short")
    for each in (long, short, long):
        records.write(replace(each, pid=None, start_time=None))
        records.write(each)
        [file] = (tmp_path / "actions").iterdir()
        assert json.loads(file.read_text())["pid"] == each.pid
        records.remove(each.key)
    assert ActionRecords(tmp_path / "actions", ReadyThreads(1)).read_all() == ()
    assert not list((tmp_path / "actions").iterdir()), "a later daemon has no use for a blank file"


def test_a_bounded_number_of_blank_files_is_kept(tmp_path: Path) -> None:
    records = ActionRecords(tmp_path / "actions", ReadyThreads(1))
    descriptors = len(os.listdir("/proc/self/fd"))
    for number in range(2 * SPARE_MAX):
        records.write(record(f"r{number}"))
    for number in range(2 * SPARE_MAX):
        records.remove(f"r{number}")
    assert len(list((tmp_path / "actions").iterdir())) == SPARE_MAX
    assert len(os.listdir("/proc/self/fd")) == descriptors + SPARE_MAX


def test_what_was_taken_away_holds_no_record_any_more(tmp_path: Path) -> None:
    records = ActionRecords(tmp_path / "actions", ReadyThreads(1))
    records.write(record("a"))
    records.write(record("b"))
    records.remove("b")
    shutil.rmtree(tmp_path / "actions")
    records.write(record("c"))
    records.write(replace(record("a"), pid=9))
    found = ActionRecords(tmp_path / "actions", ReadyThreads(1)).read_all()
    assert {(each.key, each.pid) for each in found} == {("a", 9), ("c", 7)}


WRITER = """
import os
from pathlib import Path

import pytest
from haclusterd.adapters.agents.action_records import ActionRecords
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.model.records import replace
from tests.unit.adapters.agents.test_action_records import record

left, write, length = int(os.environ["CALLS"]), os.pwrite, len


def counted(descriptor, data, offset):
    global left
    if not left:
        os._exit(0)
    left -= 1
    return write(descriptor, data, offset)


os.pwrite = counted
records = ActionRecords(Path(os.environ["DIRECTORY"]), ReadyThreads(1))
for key in ("first", "second"):
    records.write(replace(record(key), pid=None, start_time=None))
    print("exec", key, flush=True)
    records.write(record(key))
    print("recorded", key, flush=True)
    if key == "first":
        records.remove(key)
        print("removed", key, flush=True)
os._exit(1)
"""


def test_a_daemon_that_is_killed_between_any_two_writes_leaves_what_was_begun_and_nothing_else(tmp_path: Path) -> None:
    calls, has_ended = 0, False
    while not has_ended:
        directory = tmp_path / str(calls)
        environment = {**os.environ, "CALLS": str(calls), "DIRECTORY": str(directory)}
        writer = subprocess.run(
            [sys.executable, "-c", WRITER], env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
        )
        said, calls, has_ended = writer.stdout.splitlines(), calls + 1, writer.returncode == 1
        begun = {line.split()[1] for line in said if line.startswith("exec")}
        found = {each.key: each for each in ActionRecords(directory, ReadyThreads(1)).read_all()}
        assert begun - {"first"} <= found.keys()
        assert "first" in found or "first" not in begun or "recorded first" in said
        assert "removed first" not in said or "first" not in found
        for each in found.values():
            assert each in {record(each.key), replace(record(each.key), pid=None, start_time=None)}
            assert f"recorded {each.key}" not in said or each == record(each.key)
    assert calls > 8


def test_a_record_of_an_earlier_daemon_gives_way_to_one_with_its_key(tmp_path: Path) -> None:
    ActionRecords(tmp_path / "actions", ReadyThreads(1)).write(record("a"))
    later = ActionRecords(tmp_path / "actions", ReadyThreads(1))
    later.read_all()
    later.write(replace(record("a"), pid=9))
    assert [each.pid for each in ActionRecords(tmp_path / "actions", ReadyThreads(1)).read_all()] == [9]
    later.remove("a")
    assert not recorded_in(tmp_path / "actions")


def test_what_the_program_wrote_before_its_files_were_kept_is_read(tmp_path: Path) -> None:
    file = tmp_path / "0123456789abcdef0123456789abcdef.json"
    file.write_text(
        '{"key": "n1/3.4", "resource": "db", "action": "start", "incarnation": "boot:0123456789abcdef", '
        '"path": "/agent", "begun": 1, "deadline": 2, "pid": 7, "start_time": 8}'
    )
    records = ActionRecords(tmp_path, ReadyThreads(1))
    assert records.read_all() == (replace(record("n1/3.4"), seal=""),)
    records.remove("n1/3.4")
    assert not file.exists()


def test_a_record_that_cannot_be_read_is_kept_and_nothing_begins_before_it_can(tmp_path: Path) -> None:
    ActionRecords(tmp_path, ReadyThreads(1)).write(record("a"))
    [file] = tmp_path.iterdir()
    beside = tmp_path / "beside.json"
    beside.symlink_to(beside)
    with pytest.raises(OSError, match="whose agent may be running: make it readable, or end that agent") as caught:
        ActionRecords(tmp_path, ReadyThreads(1)).read_all()
    assert (caught.value.errno, caught.value.filename) == (errno.ELOOP, str(beside))
    assert set(tmp_path.iterdir()) == {file, beside}
    beside.unlink()
    assert ActionRecords(tmp_path, ReadyThreads(1)).read_all() == (record("a"),)


@pytest.mark.parametrize("damage", [b"", b" ", b"{}", b'{"pid": 7, ', b"\xff\xfe"])
def test_what_was_never_whole_is_removed(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "damaged.json").write_bytes(damage)
    (tmp_path / "directory.json").mkdir()
    assert ActionRecords(tmp_path, ReadyThreads(1)).read_all() == ()
    assert [each.name for each in tmp_path.iterdir()] == ["directory.json"]
