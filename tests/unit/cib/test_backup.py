"""A backup comes back as it was, holds no status, and is never read when it is damaged."""

import pytest

from haclusterd.cib.backup import Backup, BackupDamagedError, read_backup, state_of, write_backup
from haclusterd.commands.configure.view import masked
from haclusterd.commands.context import Context
from haclusterd.commands.node.backup import backup, hidden_parameters, without_hidden
from haclusterd.model.cluster import ConfigurationVersion, Status
from haclusterd.model.instants import WallTime
from haclusterd.verbs.arguments import Arguments
from tests.administered_clusters import NOW, configured, running

ROOM = 1_000_000
SECRET = "primitive fence stonith:fence_ipmilan params ip=10.0.0.1 password=hunter2 op monitor interval=60s"


def made() -> Backup:
    cib = running().cib
    earlier = tuple(
        (ConfigurationVersion(number, "root@n1", WallTime(number), ""), configured(f"property batch-limit={number}"))
        for number in (3, 5)
    )
    return Backup(NOW, state_of(cib, cib.configuration), earlier, ("fence password",))


def test_it_comes_back_as_it_was() -> None:
    assert read_backup(write_backup(made(), ROOM)) == made()


def test_it_holds_nothing_of_the_status() -> None:
    state = made().state
    assert state.status == Status()
    assert not state.requests


def test_equal_states_make_equal_backups() -> None:
    assert write_backup(made(), ROOM) == write_backup(made(), ROOM)


@pytest.mark.parametrize(("room", "kept"), [(ROOM, [3, 5]), (4000, [3, 5]), (2600, [5]), (0, [])])
def test_the_oldest_versions_are_left_out_first(room: int, kept: list[int]) -> None:
    whole = made()
    sizes = [len(line) + 1 for line in write_backup(whole, ROOM).splitlines()]
    fixed = sizes[0] + sizes[1] + 200
    limit = {ROOM: ROOM, 4000: fixed + sizes[2] + sizes[3], 2600: fixed + sizes[3], 0: 0}[room]
    back = read_backup(write_backup(whole, limit))
    assert [version.epoch for version, _ in back.earlier] == kept
    assert back.state == whole.state


def test_every_damage_is_found_with_its_line() -> None:
    text = write_backup(made(), ROOM)
    lines = text.splitlines(keepends=True)
    for position in range(0, len(text) - 1, 37):
        other = "0" if text[position] != "0" else "1"
        if text[position] in " \n":
            continue
        line = text.count("\n", 0, position) + 1
        with pytest.raises(BackupDamagedError) as caught:
            read_backup(text[:position] + other + text[position + 1 :])
        assert caught.value.line == line, position
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("kept", "line", "problem"),
    [
        ((), 1, "the file is empty"),
        ((0, 1), 3, "the end of the file is missing"),
        ((0, 1, 2, 3), 5, "the end of the file is missing"),
        ((0, 1, 2, 4), 4, "4 lines expected before the end"),
        ((0, 2, 3, 4), 4, "4 lines expected before the end"),
        ((1, 2, 3, 4), 1, "this is no backup of a cluster"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(kept: tuple[int, ...], line: int, problem: str) -> None:
    lines = write_backup(made(), ROOM).splitlines(keepends=True)
    with pytest.raises(BackupDamagedError) as caught:
        read_backup("".join(lines[each] for each in kept))
    assert (caught.value.line, caught.value.problem) == (line, problem)


@pytest.mark.parametrize("text", ["no backup at all\n", "\0\xff\ud800", '{"part":"haclusterd backup"}\n'])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(BackupDamagedError):
        read_backup(text)


def test_secrets_are_left_out_unless_asked_for() -> None:
    cluster = running()
    cluster.configure(SECRET)
    context = Context(cluster.cib, NOW, "root@n1")
    for is_whole in (False, True):
        outcome = backup(context, Arguments({"secrets": is_whole}))
        assert isinstance(outcome.data, dict)
        back = read_backup(str(outcome.data["text"]))
        assert (back.state.configuration == cluster.cib.configuration) is is_whole
        assert back.hidden == (() if is_whole else ("fence password",))
        assert [each.parameters for each in outcome.reports] == [{"what": each} for each in back.hidden]


def test_what_was_hidden_is_taken_out_before_it_is_loaded() -> None:
    shown = masked(configured(SECRET), None)
    assert hidden_parameters(shown) == ("fence password",)
    assert without_hidden(shown) == configured(SECRET.replace(" password=hunter2", ""))
