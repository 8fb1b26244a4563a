"""What a load leaves of a node's work."""

import pytest

from haclusterd.model.machine_load import MachineLoad, actions_left


@pytest.mark.parametrize(
    ("percent", "limit", "expected"),
    [(79, 0, 0), (80, 0, 8), (95, 0, 8), (96, 0, 4), (127, 0, 4), (128, 0, 1), (500, 0, 1), (80, 3, 1), (80, 40, 20)],
)
def test_the_higher_the_load_the_less_is_done_at_once(percent: int, limit: int, expected: int) -> None:
    assert actions_left(MachineLoad(8, percent), 80, limit) == expected
