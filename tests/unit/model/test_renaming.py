"""What was started by an agent and parameters is known by them again, whatever its name is."""

import pytest

from haclusterd.model.history import ReloadInDoubt, ResourceHistory
from haclusterd.model.renaming import is_run_by
from tests.unit.situations import DB, DUMMY, order


@pytest.mark.parametrize("definition", ["old", "newer", "newest"])
def test_what_a_reload_left_in_doubt_may_run_by_any_of_the_parameters(definition: str) -> None:
    doubts = (ReloadInDoubt({}, "newer"), ReloadInDoubt({}, "newest"))
    assert is_run_by(ResourceHistory(DB, DUMMY, definition="old", reloads=doubts), DUMMY, definition)


def test_by_others_or_another_agent_it_does_not_run() -> None:
    history = ResourceHistory(DB, DUMMY, definition="old", reloads=(ReloadInDoubt({}, "newer"),))
    assert not is_run_by(history, DUMMY, "third")
    assert not is_run_by(history, None, "old")
    assert not is_run_by(order("start"), DUMMY, "newer")
