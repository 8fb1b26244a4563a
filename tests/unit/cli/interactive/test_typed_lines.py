"""What was typed, kept for later shells."""

from pathlib import Path

import pytest

from haclusterd.cli.interactive.typed_lines import LENGTH, TypedLines, history_file


def test_lines_come_back_as_they_were_typed(tmp_path: Path) -> None:
    path = tmp_path / "new" / "crm_history"
    lines = TypedLines(path)
    assert lines.read() == []
    for typed in ("configure", "property \\\nnode-timeout=3s", "", " resource param db set password x", "up", "up"):
        lines.append(typed)
    assert TypedLines(path).read() == ["configure", "property  node-timeout=3s", "up"]


def test_only_the_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "new" / "crm_history"
    TypedLines(path).append("configure")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    path.chmod(0o644)
    TypedLines(path).append("up")
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "crm_history"
    path.write_text("".join(f"line {number}\n" for number in range(2 * LENGTH)))
    kept = TypedLines(path).read()
    assert (len(kept), kept[-1]) == (LENGTH, f"line {2 * LENGTH - 1}")
    assert path.read_text().splitlines() == kept
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "crm_history"
    path.write_bytes(b"status\nb\xff\n")
    assert TypedLines(path).read() == ["status", "b\ufffd"]
    inside_a_file = TypedLines(path / "crm_history")
    inside_a_file.append("status")
    assert inside_a_file.read() == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({"XDG_STATE_HOME": "/s"}, "/s/haclusterd/crm_history"), ({}, "/h/.local/state/haclusterd/crm_history")],
)
def test_where_they_are_kept(environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/h")
    assert history_file(environment) == Path(expected)


def test_a_full_disk_keeps_nobody_from_typing(tmp_path: Path, full_disk: None) -> None:
    lines = TypedLines(tmp_path / "lines")
    lines.append("status")
    assert lines.read() == []
