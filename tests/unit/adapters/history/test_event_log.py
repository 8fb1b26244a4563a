"""One line for each event, whatever it holds and however it is read."""

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from haclusterd.adapters.history import event_log
from haclusterd.adapters.history.event_log import REDACTED, StreamEventLog, line_as_json, line_as_text, make_line
from haclusterd.ports.event_log import EventLog, FieldValue, Priority


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"node": "n1", "index": 7, "is_dc": True}, "node=n1 index=7 is_dc=true"),
        ({"reason": "n2 was lost"}, 'reason="n2 was lost"'),
        ({"reason": 'said "no"\n<0>forged line'}, r'reason="said \"no\"\n<0>forged line"'),
        ({"reason": "\x1b[31mred\u2028"}, r'reason="\u001b[31mred\u2028"'),
        ({"reason": "grüß"}, 'reason="grüß"'),
        ({"reason": "caf\udce9"}, r'reason="caf\udce9"'),
        ({"reason": ""}, 'reason=""'),
        ({"term": None, "leader": "n1"}, "leader=n1"),
        ({"parameters": {"port": "80", "passwd": "x"}}, f"parameters.port=80 parameters.passwd={REDACTED}"),
        ({"parameters": {}}, ""),
    ],
)
def test_fields_are_spelled_on_one_line(fields: dict[str, FieldValue], text: str) -> None:
    line = make_line(0, "effect.run", Priority.INFO, fields)
    assert line_as_text(line, for_journal=True) == f"<6>effect.run {text}".rstrip()


@pytest.mark.parametrize(
    "name", ["password", "passwd", "PASSWORD", "login_passwd", "private_key", "ssh-key", "token", "api_token", "secret"]
)
def test_secrets_are_not_written(name: str) -> None:
    for fields in ({name: "hunter2"}, {"parameters": {name: "hunter2"}}):
        line = make_line(0, "x", Priority.INFO, fields)
        assert "hunter2" not in line_as_text(line, for_journal=False) + line_as_json(line)


@pytest.mark.parametrize("name", ["key", "bypass", "tokens_left", "monkey", "keyboard"])
def test_what_is_no_secret_is_written(name: str) -> None:
    assert line_as_text(make_line(0, "x", Priority.INFO, {name: "1"}), for_journal=True) == f"<6>x {name}=1"


def test_a_very_long_value_is_cut() -> None:
    assert len(line_as_text(make_line(0, "x", Priority.INFO, {"output": "a" * 100_000}), for_journal=True)) < 2100


def test_a_terminal_gets_the_time_and_a_program_gets_json(tmp_path: Path) -> None:
    stream = io.StringIO()
    log: EventLog = StreamEventLog(stream, for_journal=False, wall=lambda: 1_007, json_file=tmp_path / "log")
    log.write("node.lost", priority=Priority.WARNING, node="n2", ages={"n1": "2100"})
    log.write("node.fenced", node="n2")
    assert log.flush(10_000)
    first, second = stream.getvalue().splitlines()
    assert first.endswith("01.007 node.lost node=n2 ages.n1=2100")
    assert second.endswith("node.fenced node=n2")
    assert [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()] == [
        {"at": 1007, "kind": "node.lost", "priority": 4, "node": "n2", "ages.n1": "2100"},
        {"at": 1007, "kind": "node.fenced", "priority": 6, "node": "n2"},
    ]


class StuckStream(io.StringIO):
    """A pipe that nobody reads until `released`."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.released = threading.Event()

    def write(self, text: str) -> int:
        self.begun.set()
        self.released.wait(60)
        return super().write(text)


def test_a_stuck_reader_delays_nobody_and_missing_lines_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "LINES_QUEUED_MAX", 5)
    stream = StuckStream()
    log = StreamEventLog(stream, for_journal=True, wall=lambda: 0)
    log.write("tick", number=0)
    assert stream.begun.wait(10)
    for number in range(1, 100):
        log.write("tick", number=number)
    assert not log.flush(1)
    stream.released.set()
    assert log.flush(10_000)
    kept = [f"<6>tick number={number}" for number in range(6)]
    assert stream.getvalue().splitlines() == [*kept, "<4>log.lines-dropped count=94"]


def test_a_closed_stream_and_a_missing_directory_are_survived(tmp_path: Path) -> None:
    stream = io.StringIO()
    stream.close()
    log = StreamEventLog(stream, for_journal=True, wall=lambda: 0, json_file=tmp_path / "gone" / "log")
    log.write("tick")
    assert log.flush(10_000)
    log.write("tock")
    assert log.flush(10_000)


@pytest.mark.parametrize(("journal", "start"), [("8:1", "<5>hello"), (None, "")])
def test_the_standard_log_has_the_format_that_its_reader_wants(journal: str | None, start: str) -> None:
    program = (
        "from haclusterd.adapters.history.event_log import *; log = standard_event_log();"
        "log.write('hello', priority=Priority.NOTICE, caf='\\udce9'); log.flush(10_000)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JOURNAL_STREAM"}
    if journal:
        environment["JOURNAL_STREAM"] = journal
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.startswith(start)
    assert done.stderr.endswith('hello caf="\\udce9"\n')
