"""Samples of what was released stay as they were written."""

from pathlib import Path

import pytest

from haclusterd.cib.codec import FEATURE_LEVEL
from tests.upgrade.frozen_samples import FROZEN, HERE, digest_of, write


@pytest.mark.parametrize("name", FROZEN)
def test_a_frozen_sample_is_as_it_was_written(name: str) -> None:
    assert digest_of(name) == FROZEN[name]


def test_all_samples_but_those_of_the_newest_level_are_frozen() -> None:
    found = {str(path.relative_to(HERE)) for path in (*HERE.glob("codec_*/*"), *HERE.glob("messages/*"))}
    assert {name for name in found - set(FROZEN) if not name.startswith(f"codec_{FEATURE_LEVEL}/")} == set()


@pytest.mark.parametrize("name", FROZEN)
def test_a_frozen_sample_is_not_written(name: str) -> None:
    with pytest.raises(PermissionError, match="is frozen"):
        write(HERE / name, b"")
    assert digest_of(name) == FROZEN[name]


def test_the_switch_of_golden_files_writes_no_samples() -> None:
    """Both are set by hand; somebody who accepts new answers may not accept another format with them."""
    sources = [path.read_text() for path in HERE.glob("*.py") if path != Path(__file__)]
    assert not [text for text in sources if 'environ.get("REWRITE")' in text]
