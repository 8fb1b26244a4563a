"""The configuration's versions, for verbs: read from the history as they are asked for.

A verb is first run without them; the catalogue notes what it looked at, that is read, and the verb is run again.
"""

from collections.abc import Callable
from typing import Any

from haclusterd.cib.codec import CodecError
from haclusterd.commands.context import ListedVersion
from haclusterd.model.configuration import Configuration
from haclusterd.model.json_value import Json
from haclusterd.ports.history import History, VersionAnswer, VersionQuery
from haclusterd.runtime.history_rows import read_version


class VersionCatalogue:
    """Versions as one request sees them; see `commands.context.Versions`."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._is_read = False
        self._is_wanted = False
        self._listed: tuple[ListedVersion, ...] = ()
        self._contents: dict[int, bytes | None] = {}
        """As they are kept: reading a large one takes long, and is left to where the verb runs."""
        self._wanted: set[int] = set()
        self._problem = ""

    def listed(self) -> tuple[ListedVersion, ...]:
        """Return every version that this node knows, oldest first."""
        self._is_wanted = self._is_wanted or not self._is_read
        return self._listed

    def configuration(self, number: int) -> Configuration | None:
        """Return a version's content; None when this node does not have it."""
        if number not in self._contents:
            self._wanted.add(number)
        return self._decoded(number, self._contents.get(number))

    def problem(self) -> str:
        """Return what keeps the history from being whole; empty when nothing does."""
        return self._problem

    @property
    def is_complete(self) -> bool:
        """Whether nothing was looked at that is not known."""
        return not (self._is_wanted or self._wanted)

    def noted(self) -> Json:
        """Return what was looked at and is not known."""
        return {"numbers": sorted(self._wanted), "list": self._is_wanted}

    def note(self, noted: Any) -> None:
        """Take what `noted` returned in an image of this process."""
        self._wanted, self._is_wanted = set(noted["numbers"]), noted["list"]

    def read(self, done: Callable[[], None]) -> None:
        """Read what was looked at; call `done` when it is known."""
        wanted, self._wanted = tuple(sorted(self._wanted)), set()
        self._is_wanted = False

        def known(answer: VersionAnswer) -> None:
            self._is_read = True
            self._problem = answer.problem
            self._listed = tuple(
                ListedVersion(each.number, each.at, each.author, each.reason, each.digest) for each in answer.versions
            )
            for number in wanted:
                self._contents[number] = answer.contents.get(number)
            done()

        self._history.versions(VersionQuery(wanted), known)

    def _decoded(self, number: int, content: bytes | None) -> Configuration | None:
        if content is None:
            return None
        try:
            return read_version(content)
        except CodecError as error:
            self._problem = f"version {number} cannot be read: {error}"
            return None
