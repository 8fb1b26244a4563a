"""How a new machine is given its token: typed, read, or, with a warning, on the command line."""

import io
from pathlib import Path

import pytest

from haclusterd.entry_points.crm_join import join
from haclusterd.model.json_value import Json


def codes(arguments: dict[str, Json], typed: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    return [each.code for each in join({"output": str(directory / "n2"), **arguments}).reports]


@pytest.mark.parametrize(
    ("arguments", "typed", "expected"),
    [
        ({"token": "hacl1-x"}, "", ["TOKEN_SEEN", "BAD_ARGUMENT"]),
        ({"token": "-"}, "hacl1-x\n", ["BAD_ARGUMENT"]),
        ({}, "hacl1-x\n", ["BAD_ARGUMENT"]),
        ({}, "", ["MISSING_ARGUMENT"]),
    ],
)
def test_a_token_on_the_command_line_is_warned_of_and_read_from_a_file_if_it_is_left_out(
    arguments: dict[str, Json], typed: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert codes(arguments, typed, tmp_path, monkeypatch) == expected


def test_a_person_is_asked_for_the_token_which_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    asked: list[str] = []
    monkeypatch.setattr("getpass.getpass", lambda prompt: asked.append(prompt) or "hacl1-x")
    monkeypatch.setattr("sys.stdin", Terminal())
    assert [each.code for each in join({"output": str(tmp_path / "n2")}).reports] == ["BAD_ARGUMENT"]
    assert len(asked) == 1
