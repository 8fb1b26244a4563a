"""What happened, for verbs: read from the history as it is asked for.

A verb is first run without it; the catalogue notes what it looked at, that is read, and the verb is run again. Where
the verb is run apart from the main loop, what it looked at travels to it as JSON.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from haclusterd.cib.changes import Change, ChangeKind
from haclusterd.commands.context import Event, Recollection
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.remembered import Comparison, HistoryQuery, HistoryRow
from haclusterd.ports.history import History, HistoryAnswer
from haclusterd.runtime.history_rows import read_detail


class PastCatalogue:
    """The past as one request sees it; see `commands.context.Past`."""

    def __init__(self, history: History, peers: tuple[NodeName, ...]) -> None:
        """`peers` are the other nodes whose histories can be compared with this one's."""
        self._history = history
        self._peers = peers
        self._found: dict[HistoryQuery, HistoryAnswer] = {}
        self._wanted: list[HistoryQuery] = []
        self._comparison: Comparison | None = None
        self._is_comparison_wanted = False

    def recall(self, query: HistoryQuery) -> Recollection:
        """Return the newest events that fit."""
        found = self._found.get(query)
        if found is not None:
            return Recollection(tuple(map(_event, found.rows)), found.left_out, found.problem)
        if query not in self._wanted:
            self._wanted.append(query)
        return Recollection()

    def compared(self) -> Comparison:
        """Return what each node's history holds."""
        self._is_comparison_wanted = self._is_comparison_wanted or self._comparison is None
        return self._comparison or Comparison(())

    @property
    def is_complete(self) -> bool:
        """Whether nothing was looked at that is not known."""
        return not (self._wanted or self._is_comparison_wanted)

    def noted(self) -> Json:
        """Return what was looked at and is not known."""
        return {"queries": [asdict(query) for query in self._wanted], "comparison": self._is_comparison_wanted}

    def note(self, noted: Any) -> None:
        """Take what `noted` returned in an image of this process."""
        fields = ("resources", "kinds")
        self._wanted = [
            HistoryQuery(**{**query, **{name: tuple(query[name]) for name in fields}}) for query in noted["queries"]
        ]
        self._is_comparison_wanted = noted["comparison"]

    def read(self, done: Callable[[], None]) -> None:
        """Read one thing of what was looked at; call `done` when it is known."""
        if self._is_comparison_wanted:
            self._is_comparison_wanted = False

            def compared(comparison: Comparison) -> None:
                self._comparison = comparison
                done()

            self._history.compare(self._peers, compared)
            return
        query = self._wanted.pop(0)

        def known(answer: HistoryAnswer) -> None:
            self._found[query] = answer
            done()

        self._history.query(query, known)


def _event(row: HistoryRow) -> Event:
    detail = read_detail(row.detail_json)
    change = Change(_kind(row.kind), row.node, row.resource, row.text)
    words = (detail.get(name, "") for name in ("author", "reason", "order"))
    return Event(row.index, row.at, change, *words)


def _kind(text: str) -> ChangeKind:
    """Read a kind from the history, which another version of this program may have written."""
    try:
        return ChangeKind(text)
    except ValueError:
        return ChangeKind.HISTORY_GAP
