"""Past events and versions of the configuration, for verbs: read from the history when they are asked for.

A verb is first run without them; the catalogue notes what it looked up, that is read, and the verb is run again. If
the verb runs in another process, what it looked up is passed as JSON.
"""

from collections.abc import Callable
from typing import Any

from haclusterd.cib.changes import FACT_NAMES, Change, ChangeKind, Facts
from haclusterd.cib.codec import CodecError
from haclusterd.commands.context import Event, Followed, ListedVersion, Recollection
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.records import asdict
from haclusterd.model.remembered import (
    Comparison,
    FollowAnswer,
    FollowQuery,
    HistoryQuery,
    HistoryRow,
    Position,
)
from haclusterd.ports.history import History, HistoryAnswer, VersionAnswer, VersionQuery
from haclusterd.runtime.history_rows import read_detail, read_version
from haclusterd.runtime.requests.event_followers import EventFollowers


class PastCatalogue:
    """The past as one request sees it; see `commands.context.Past`."""

    def __init__(
        self, history: History, followers: EventFollowers, peers: tuple[NodeName, ...], caller: str
    ) -> None:
        """`peers` are the nodes whose histories can be compared with this one's; `caller` is who asks."""
        self._history = history
        self._followers = followers
        self._peers = peers
        self._caller = caller
        self._found: dict[HistoryQuery, HistoryAnswer] = {}
        self._wanted: list[HistoryQuery] = []
        self._comparison: Comparison | None = None
        self._is_comparison_wanted = False
        self._follow_wanted: tuple[FollowQuery, int] | None = None
        self._followed: FollowAnswer | None = None
        self._leave: Callable[[], None] = _nothing

    def recall(self, query: HistoryQuery) -> Recollection:
        """Return the newest events that match."""
        found = self._found.get(query)
        if found is not None:
            return Recollection(tuple(map(event_of, found.rows)), found.left_out, found.problem, found.end)
        if query not in self._wanted:
            self._wanted.append(query)
        return Recollection()

    def follow(self, query: FollowQuery, wait_ms: int) -> Followed:
        """Return what follows a position; a request can follow one position only."""
        found = self._followed
        if found is None:
            self._follow_wanted = query, wait_ms
            return Followed((), query.after or Position(0))
        return Followed(
            tuple((each.position, event_of(each.row)) for each in found.rows),
            found.next,
            found.missing,
            found.has_more,
            found.is_behind,
            found.problem,
            found.is_refused,
        )

    def compared(self) -> Comparison:
        """Return what each node's history holds."""
        self._is_comparison_wanted = self._is_comparison_wanted or self._comparison is None
        return self._comparison or Comparison(())

    @property
    def is_complete(self) -> bool:
        """Whether everything that was looked up is known."""
        return not (self._wanted or self._is_comparison_wanted or self._follow_wanted)

    def noted(self) -> Json:
        """Return, as JSON, what was looked up and is not known."""
        follow = self._follow_wanted
        return {
            "queries": [asdict(query) for query in self._wanted],
            "comparison": self._is_comparison_wanted,
            "follow": None if follow is None else {**asdict(follow[0]), "wait_ms": follow[1]},
        }

    def note(self, noted: Any) -> None:
        """Take what `noted` returned in a forked image of this process."""
        fields = ("resources", "kinds")
        self._wanted = [
            HistoryQuery(**{**query, **{name: tuple(query[name]) for name in ("nodes", *fields)}})
            for query in noted["queries"]
        ]
        self._is_comparison_wanted = noted["comparison"]
        if noted["follow"] is not None:
            query = {**noted["follow"], **{name: tuple(noted["follow"][name]) for name in fields}}
            query["after"] = None if query["after"] is None else Position(**query["after"])
            wait_ms = query.pop("wait_ms")
            self._follow_wanted = FollowQuery(**query), wait_ms

    def read(self, done: Callable[[], None]) -> None:
        """Read one of the things that were looked up; call `done` when it is known."""
        if self._follow_wanted is not None:
            self._follow(*self._follow_wanted, done)
            return
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

    def _follow(self, query: FollowQuery, wait_ms: int, done: Callable[[], None]) -> None:
        self._follow_wanted = None

        def followed(answer: FollowAnswer) -> None:
            self._followed = answer
            done()

        self._leave = self._followers.follow(query, wait_ms, self._caller, followed)

    def leave(self) -> None:
        """Stop waiting for events."""
        self._leave()


def _nothing() -> None:
    return None


def event_of(row: HistoryRow) -> Event:
    """Parse a row of the history."""
    detail = read_detail(row.detail_json)
    facts = Facts(**{name: detail[name] for name in FACT_NAMES if name in detail})
    change = Change(_kind(row.kind), row.node, row.resource, row.text, facts, detail.get("incident", ""))
    words = (detail.get(name, "") for name in ("author", "reason", "order"))
    return Event(row.index, row.at, change, *words)


def _kind(text: str) -> ChangeKind:
    """Parse a kind in the history, which another version of this program may have written."""
    try:
        return ChangeKind(text)
    except ValueError:
        return ChangeKind.HISTORY_GAP


class VersionCatalogue:
    """Versions as one request sees them; see `commands.context.Versions`."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._is_read = False
        self._is_wanted = False
        self._listed: tuple[ListedVersion, ...] = ()
        self._contents: dict[int, bytes | None] = {}
        """In encoded form: parsing a large one takes long, and is left to the process that runs the verb."""
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
        """Return why the history is incomplete; empty when it is complete."""
        return self._problem

    @property
    def is_complete(self) -> bool:
        """Whether everything that was looked up is known."""
        return not (self._is_wanted or self._wanted)

    def noted(self) -> Json:
        """Return, as JSON, what was looked up and is not known."""
        return {"numbers": sorted(self._wanted), "list": self._is_wanted}

    def note(self, noted: Any) -> None:
        """Take what `noted` returned in a forked image of this process."""
        self._wanted, self._is_wanted = set(noted["numbers"]), noted["list"]

    def read(self, done: Callable[[], None]) -> None:
        """Read what was looked up; call `done` when it is known."""
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
