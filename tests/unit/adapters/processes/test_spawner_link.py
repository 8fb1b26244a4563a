"""Programs begin as children of this process, when it has said so, or not at all."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.processes.spawner_link import LOSSES_MAX, Spawner, SpawnerUnusableError
from haclusterd.agents.process_table import read_stat

Seen = list[tuple[int, bool]]


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    spawner = Spawner()
    yield spawner
    spawner.close()


def spawn(spawner: Spawner, *arguments: object, forked: Callable[[int, bool], None], group: Path | None = None) -> None:
    with open(os.devnull, "r+b", buffering=0) as null:
        standard = (null.fileno(),) * 3
        spawner.spawn(tuple(map(str, arguments)), {"A": "=1"}, standard, group, forked)


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def lose(spawner: Spawner) -> None:
    assert spawner._pid is not None
    os.kill(spawner._pid, signal.SIGKILL)
    os.waitid(os.P_PID, spawner._pid, os.WEXITED | os.WNOWAIT)


def test_it_is_a_child_of_this_process(spawner: Spawner) -> None:
    seen: Seen = []
    spawn(spawner, "/bin/sh", "-c", '[ "$A" = "=1" ] && exit 5', forked=lambda *each: seen.append(each))
    [(pid, _)] = seen
    stat = read_stat(pid)
    assert stat is not None
    assert stat.parent == os.getpid()
    assert exit_code(pid) == 5


def test_nothing_is_executed_before_forked_has_returned(spawner: Spawner, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    seen: Seen = []

    def forked(pid: int, is_in_group: bool) -> None:
        seen.append((pid, is_in_group))
        raise OSError(28, "not written down")

    with pytest.raises(OSError, match="not written down"):
        spawn(spawner, "/usr/bin/touch", touched, forked=forked)
    assert exit_code(seen[0][0]) == 127
    assert not touched.exists()


def test_what_is_killed_before_it_is_executed_is_executed_by_nobody(spawner: Spawner, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    seen: Seen = []

    def forked(pid: int, is_in_group: bool) -> None:
        seen.append((pid, is_in_group))
        os.kill(pid, signal.SIGKILL)

    spawn(spawner, "/usr/bin/touch", touched, forked=forked)
    assert exit_code(seen[0][0]) == -signal.SIGKILL
    assert not touched.exists()


def test_a_spawner_that_ended_is_replaced(spawner: Spawner) -> None:
    for _ in range(LOSSES_MAX + 1):
        seen: Seen = []
        lose(spawner)
        with pytest.raises(SpawnerUnusableError):
            spawn(spawner, "/bin/true", forked=lambda *each, seen=seen: seen.append(each))
        assert seen == []
        spawn(spawner, "/bin/true", forked=lambda *each, seen=seen: seen.append(each))
        assert exit_code(seen[0][0]) == 0


def test_one_that_ends_again_and_again_is_done_without(spawner: Spawner) -> None:
    for _ in range(LOSSES_MAX):
        lose(spawner)
        with pytest.raises(SpawnerUnusableError):
            spawn(spawner, "/bin/true", forked=lambda *_: None)
        if spawner._losses < LOSSES_MAX:
            spawner._connected()
    with pytest.raises(SpawnerUnusableError, match="there is none"):
        spawn(spawner, "/bin/true", forked=lambda *_: None)


def test_a_group_that_cannot_be_entered_is_reported(spawner: Spawner, tmp_path: Path) -> None:
    seen: Seen = []
    spawn(spawner, "/bin/true", forked=lambda *each: seen.append(each), group=tmp_path)
    [(pid, is_in_group)] = seen
    assert not is_in_group
    assert exit_code(pid) == 0


@pytest.mark.parametrize(("arguments", "environment"), [(("/bin/true", "\0"), {}), (("/bin/true",), {"a=b": "c"})])
def test_arguments_that_no_program_can_get_are_an_error(
    spawner: Spawner, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"null byte|variable name"):
        spawner.spawn(arguments, environment, (0, 1, 2), None, lambda *_: None)
