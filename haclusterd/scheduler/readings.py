"""Values of attributes as Pacemaker reads them: what is invalid counts as unset, never as an error."""

from haclusterd.model import durations, scores
from haclusterd.model.properties import read_boolean


def boolean(text: str | None, default: bool) -> bool:
    """Read a boolean."""
    if text is None:
        return default
    try:
        return read_boolean(text)
    except ValueError:
        return default


def score(text: str | None, default: int) -> int:
    """Read a score."""
    if text is None:
        return default
    try:
        return scores.parse(text)
    except ValueError:
        return default


def duration_ms(text: str | None, default: int) -> int:
    """Read a duration in ms."""
    if text is None:
        return default
    try:
        return durations.parse(text)
    except ValueError:
        return default
