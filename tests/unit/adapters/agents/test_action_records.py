"""Records of running actions: written again when the run directory was emptied, and not when the action has ended."""

import os
import shutil
import threading
import time
from pathlib import Path

from haclusterd.adapters.agents.action_records import ActionRecord, ActionRecords
from haclusterd.model.ids import Incarnation, ResourceId
from haclusterd.model.instants import Instant


def record(key: str) -> ActionRecord:
    life = Incarnation("boot", "0123456789abcdef")
    return ActionRecord(key, ResourceId("db"), "start", life, "/agent", Instant(1), Instant(2), 7, 8)


def test_what_was_taken_away_is_written_again_and_nothing_else(tmp_path: Path) -> None:
    records = ActionRecords(tmp_path / "actions")
    for key in ("a", "b", "c"):
        records.write(record(key))
    assert records.write_again() == 0
    records.remove("c")
    shutil.rmtree(tmp_path / "actions")
    assert records.write_again() == 2
    assert {each.key for each in ActionRecords(tmp_path / "actions").read_all()} == {"a", "b"}


def test_what_an_earlier_daemon_left_is_kept_too(tmp_path: Path) -> None:
    ActionRecords(tmp_path / "actions").write(record("a"))
    later = ActionRecords(tmp_path / "actions")
    later.read_all()
    shutil.rmtree(tmp_path / "actions")
    assert later.write_again() == 1


def test_forgetting_waits_for_nobody_while_the_file_system_does_not_answer(tmp_path: Path) -> None:
    records = ActionRecords(tmp_path / "actions")
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
