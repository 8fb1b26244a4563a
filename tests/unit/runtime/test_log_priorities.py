"""How urgent lines are, and that the page for people says the same."""

from pathlib import Path

import pytest

from haclusterd.model.change_kinds import ChangeKind
from haclusterd.ports.event_log import Priority
from haclusterd.runtime.log_priorities import priority_of

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "read-the-log.md"
WORDS = {"error": Priority.ERROR, "warning": Priority.WARNING, "notice": Priority.NOTICE}


def test_what_costs_a_node_or_a_service_is_an_error() -> None:
    assert priority_of(ChangeKind.NODE_LOST) == Priority.ERROR
    assert priority_of(ChangeKind.OPERATION_FAILED) == Priority.ERROR
    assert priority_of(ChangeKind.NODE_LOST, is_replayed=True) == Priority.DEBUG


@pytest.mark.parametrize("word", WORDS)
def test_the_page_says_the_same(word: str) -> None:
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {word} |"))
    listed = {kind for kind in ChangeKind if f"`cib.{kind}`" in row}
    assert listed == {kind for kind in ChangeKind if priority_of(kind) == WORDS[word]}
