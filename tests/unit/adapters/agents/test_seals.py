"""Which processes are of this node, and which only say so."""

import json
import os
import stat
import time
from pathlib import Path

import pytest

from haclusterd.adapters.agents.copies import copy_agents, last_start
from haclusterd.adapters.agents.seals import SEAL_FILE, Seals
from haclusterd.agents.process_table import SEAL_MARK, is_genuine

LATE = 2**40
"""Ticks since boot: of a process that begins after the key was made."""


def test_each_instance_has_its_own_and_keeps_it_over_restarts(tmp_path: Path) -> None:
    seals = Seals.kept_in(tmp_path)
    assert seals.of("web") == Seals.kept_in(tmp_path).of("web")
    assert seals.of("web") != seals.of("db")
    assert seals.of("web") != Seals.kept_in(tmp_path / "other").of("web")
    assert stat.S_IMODE((tmp_path / SEAL_FILE).stat().st_mode) == 0o600
    assert seals.key.hex() not in seals.of("web")


def test_who_has_no_seal_is_believed_only_if_there_was_none_yet(tmp_path: Path) -> None:
    seal = Seals.kept_in(tmp_path).of("web")
    assert is_genuine({SEAL_MARK: seal}, LATE, seal)
    assert not is_genuine({}, LATE, seal)
    assert not is_genuine({SEAL_MARK: Seals.kept_in(tmp_path).of("db")}, LATE, seal)
    assert is_genuine({}, 1, seal), "a service that an earlier version has started"
    assert is_genuine({}, LATE, ""), "a person calls the agent"


def test_after_a_boot_nothing_was_begun_without_one(tmp_path: Path) -> None:
    before = Seals.kept_in(tmp_path)
    path = tmp_path / SEAL_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "boot": "another"}))
    after = Seals.kept_in(tmp_path)
    assert (after.key, after.since) == (before.key, 0)
    assert not is_genuine({}, 1, after.of("web"))


def sealed_after_a_start_of(share: Path, state: Path) -> Seals:
    """Begin as a daemon does that is installed in `share`."""
    earlier_start = last_start(state)
    copy_agents(share, state)
    return Seals.kept_in(state, earlier_start, last_start(state))


@pytest.fixture
def versions(tmp_path: Path) -> tuple[Path, Path]:
    """Make two versions of the program; the older one knows no seals."""
    for name in ("older", "newer"):
        agents = tmp_path / name / "resource_agents"
        agents.mkdir(parents=True)
        (agents / "exec").write_text(name)
    return tmp_path / "older", tmp_path / "newer"


def test_what_an_earlier_version_has_begun_to_which_a_node_went_back_is_believed(
    versions: tuple[Path, Path], tmp_path: Path
) -> None:
    older, newer = versions
    first = sealed_after_a_start_of(newer, tmp_path)
    assert sealed_after_a_start_of(newer, tmp_path) == first
    copy_agents(older, tmp_path)
    begun_by_older = first.since + 1
    while int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")) <= begun_by_older:
        assert not is_genuine({}, begun_by_older, first.of("web"))
    again = sealed_after_a_start_of(newer, tmp_path)
    assert is_genuine({}, begun_by_older, again.of("web"))
    assert not is_genuine({}, LATE, again.of("web"))
    assert is_genuine({SEAL_MARK: first.of("web")}, LATE, again.of("web")), "the key is the same"
    assert sealed_after_a_start_of(newer, tmp_path) == again


def test_what_an_earlier_version_has_begun_after_a_boot_is_believed(
    versions: tuple[Path, Path], tmp_path: Path
) -> None:
    older, newer = versions
    sealed_after_a_start_of(newer, tmp_path)
    path = tmp_path / SEAL_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "boot": "another"}))
    assert sealed_after_a_start_of(newer, tmp_path).since == 0
    path.write_text(json.dumps({**json.loads(path.read_text()), "boot": "another"}))
    copy_agents(older, tmp_path)
    assert sealed_after_a_start_of(newer, tmp_path).since > 0


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"key": "00", "boot": "b", "since": 1}', '{"key": 1}'])
def test_where_the_key_is_lost_what_began_before_is_believed(tmp_path: Path, content: str) -> None:
    lost = Seals.kept_in(tmp_path).of("web")
    (tmp_path / SEAL_FILE).write_text(content)
    now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 100)
    seal = Seals.kept_in(tmp_path).of("web")
    assert seal != lost
    assert is_genuine({SEAL_MARK: lost}, now - 1, seal)
    assert not is_genuine({SEAL_MARK: lost}, LATE, seal)
