"""Booleans are read as Pacemaker reads them: in any case, and as a whole."""

import pytest

from haclusterd.model.rows import read_boolean, read_boolean_or


@pytest.mark.parametrize(
    ("text", "expected"),
    [("TRUE", True), ("On", True), ("yes", True), ("y", True), ("1", True),
     ("False", False), ("off", False), ("No", False), ("n", False), ("0", False)],
)  # fmt: skip
def test_every_word_for_it_in_any_case(text: str, expected: bool) -> None:
    assert read_boolean(text) is expected


@pytest.mark.parametrize("text", [" true", "true ", "", "2", "truth", "yes\n"])
def test_anything_else_is_none_and_spaces_count(text: str) -> None:
    """Seen with crm_simulate 2.1.5 and 3.0.0: `" true"` says nothing, and the default holds."""
    with pytest.raises(ValueError, match="not a boolean"):
        read_boolean(text)
    assert read_boolean_or(text, default=True) is True
    assert read_boolean_or(text, default=False) is False
