"""`crm gpu explain`, `lint` and `simulate-fail`: this machine's table of faults, and a failure that is only shown."""

import json
from pathlib import Path

import pytest

from haclusterd.adapters.devices import machine_faults
from haclusterd.agents import gpu_fault_table as table
from haclusterd.agents.cluster_link import SOCKET_VARIABLE
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response

DEVICE = "GPU-00000000-0000-0000-0000-000000000001"


def shown(response: Response, key: str) -> list[dict[str, Json]]:
    data = response.data
    assert isinstance(data, dict)
    found = data[key]
    assert isinstance(found, list | tuple)
    return [dict(each) for each in found if isinstance(each, dict)]


def codes(response: Response) -> list[str]:
    return [each.code for each in response.reports]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine_faults, "DIRECTORY", tmp_path)
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "control.sock"))
    return tmp_path


def test_every_class_of_faults_is_in_the_table_and_is_explained() -> None:
    faults = shown(machine_faults.explain({}), "faults")
    known = table.load()
    assert {fault.number for fault in known.faults.values()} == set(range(1, 51))
    assert len(faults) == len(known.faults) + len(known.xids)
    assert all(each["text"] and each["signal"] for each in faults if not str(each["name"]).startswith("xid-"))


@pytest.mark.parametrize(
    ("code", "name", "severity"),
    [("hang", "hang", "unknown"), ("xid-79", "xid-79", "failed"), ("79", "xid-79", "failed"),
     ("Xid 31", "xid-31", "application"), ("xid-9999", "xid-9999", "degraded"), ("lost:", "lost", "failed")],
)  # fmt: skip
def test_a_reason_is_explained(code: str, name: str, severity: str) -> None:
    (fault,) = shown(machine_faults.explain({"code": code}), "faults")
    assert (fault["name"], fault["severity"]) == (name, severity)


def test_an_unknown_reason_is_refused() -> None:
    assert codes(machine_faults.explain({"code": "hamg"})) == ["UNKNOWN_FAULT"]


def test_an_administrators_table_is_explained_and_a_bad_one_is_named(directory: Path) -> None:
    (directory / "gpu-faults.toml").write_text('[fault.hang]\nseverity = "failed"\n')
    (fault,) = shown(machine_faults.explain({"code": "hang"}), "faults")
    assert (fault["severity"], fault["source"]) == ("failed", str(directory / "gpu-faults.toml"))
    (directory / "gpu-faults.toml").write_text("[fault.hang]\nseverity = 7\n")
    response = machine_faults.explain({"code": "hang"})
    assert codes(response) == ["BAD_FAULT_TABLE"]
    assert shown(response, "faults")[0]["severity"] == "unknown"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[fault.hang\n", 1, "not TOML"),
        ("x = 1\n", 1, "'x' is none of: format, fault, xid"),
        ("format = 2\n", 1, "this program reads 1"),
        ("fault = 3\n", 1, "expected a table of rows"),
        ('[fault.hamg]\nseverity = "drain"\n', 1, "no such fault"),
        ('\n[fault.hang]\nseverity = "bad"\n', 2, "'bad' is none of: failed, drain"),
        ("[fault.hang]\nraise-after = 0\n", 1, "expected a number of looks, 1 to"),
        ("[fault.hang]\nraise-after = true\n", 1, "expected a number of looks"),
        ("[fault.hang]\nclear-after = -1\n", 1, "expected a number of looks, 0 to"),
        ('[fault.hang]\ntext = ""\n', 1, "expected a text"),
        ('[fault.hang]\nclass = 3\n', 1, "'class' is not a key that can be set here"),
        ('[fault.hang]\nrung = "fly"\n', 1, "'fly' is none of: none, restart"),
        ('[xid]\nabc = { severity = "drain" }\n', 2, "an Xid is a number"),
        ('[xid]\n5000 = { text = "x" }\n', 2, "a new row needs severity"),
        ("[xid]\n79 = 3\n", 2, "expected keys"),
        ('[xid]\n79 = { severity = "x" }\n', 2, "'x' is none of"),
        ("[xid]\n79 = { after = 0 }\n", 2, "expected a number of errors"),
        ("[xid]\n79 = { pid = 1 }\n", 2, "'pid' is none of: severity, action, text, after"),
    ],
)
def test_what_is_wrong_with_a_table_has_its_line(directory: Path, text: str, line: int, words: str) -> None:
    path = directory / "mine.toml"
    path.write_text(text)
    response = machine_faults.lint({"file": str(path)})
    (problem,) = shown(response, "problems")
    assert (response.exit, problem["line"]) == (1, line)
    assert words in str(problem["message"])


def test_a_good_table_has_no_objections_and_all_problems_are_said_at_once(directory: Path) -> None:
    path = directory / "mine.toml"
    rows = '[fault.hang]\nseverity = "drain"\nclear-after = 0\n[xid]\n4242 = { severity = "drain" }\n'
    path.write_text(f'format = 1\n{rows}')
    response = machine_faults.lint({"file": str(path)})
    assert (response.exit, shown(response, "problems")) == (0, [])
    loaded = table.load(str(path))
    assert (loaded.faults["hang"].level, loaded.faults["hang"].clear_after) == (table.DRAIN, table.STICKY)
    assert loaded.xid(4242).severity == "drain"
    assert loaded.faults["lost"].severity == "failed", "what is not written stays"
    path.write_text("[fault.hang]\nrung = 1\nscope = 2\n[fault.nothing]\n")
    assert len(shown(machine_faults.lint({"file": str(path)}), "problems")) == 3
    path.write_bytes(b"# \xff\n")
    assert machine_faults.lint({"file": str(path)}).exit == 1
    assert codes(machine_faults.lint({"file": str(directory / "none")})) == ["NO_INPUT"]


def test_a_node_without_a_table_of_its_own_has_nothing_to_check(directory: Path) -> None:
    response = machine_faults.lint({})
    assert (response.exit, codes(response)) == (0, ["NOTHING_TO_DO"])
    (directory / "gpu-faults.toml").write_text("[fault.hang]\nrung = 1\n")
    assert machine_faults.lint({}).exit == 1


def test_the_programs_own_table_has_no_objections_of_its_own() -> None:
    assert table.lint(Path(table.OWN).read_text()) == [], "a copy of the whole can be begun with"
    own = table.load()
    for fault in own.faults.values():
        assert fault.severity in table.SEVERITIES, fault.name
        assert fault.scope in table.SCOPES, fault.name
        assert fault.rung in table.RUNGS, fault.name
    assert all(row.severity in table.SEVERITIES and row.action in table.ACTIONS for row in own.xids.values())


def test_a_failure_is_simulated_for_a_while_and_ended(directory: Path) -> None:
    response = machine_faults.simulate_fail({"device": DEVICE, "state": "drain", "duration": "2min"})
    (device,) = shown(response, "devices")
    assert (device["device"], device["state"]) == (DEVICE, "drain")
    assert 110 <= int(str(device["seconds_left"])) <= 120
    assert set(json.loads((directory / "gpu-simulated.json").read_text())) == {DEVICE}
    assert len(shown(machine_faults.simulate_fail({}), "devices")) == 1
    assert shown(machine_faults.simulate_fail({"device": DEVICE, "end": True}), "devices") == []
    assert json.loads((directory / "gpu-simulated.json").read_text()) == {}


@pytest.mark.parametrize(
    "wrong",
    [{"device": "n1:0000:1a:00.0"}, {"device": "n1"}, {"state": "ok"}, {"duration": "x"}, {"duration": "2d"},
     {"duration": "1ms"}],
)
def test_what_cannot_be_simulated_is_refused(wrong: dict[str, Json], directory: Path) -> None:
    assert codes(machine_faults.simulate_fail({"device": DEVICE, **wrong})) == ["BAD_ARGUMENT"]
    assert not (directory / "gpu-simulated.json").exists()


def test_without_a_daemon_there_is_nothing_to_simulate_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "nowhere" / "control.sock"))
    assert codes(machine_faults.simulate_fail({"device": DEVICE})) == ["INPUT_OUTPUT"]
