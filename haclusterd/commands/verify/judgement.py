"""What the checks of a configuration share: what is judged, and what was found."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from haclusterd.model.agents import AgentFacts
from haclusterd.model.cluster import Member
from haclusterd.model.configuration import AttributeSet, Configuration
from haclusterd.model.ids import NodeName
from haclusterd.model.properties import Row, live_objection, objection
from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, report_with
from haclusterd.reports.places import Places
from haclusterd.reports.suggestions import nearest

GUESSES_MAX = 20
"""Looking for the nearest of ten thousand names takes milliseconds."""


@dataclass(slots=True)
class Judgement:
    """One configuration under judgement."""

    configuration: Configuration
    members: Mapping[NodeName, Member]
    agents: Mapping[str, AgentFacts] | None
    places: Places
    reports: list[ReportItem] = field(default_factory=list)
    is_foreign: bool = False
    """It is a cluster of Pacemaker, which obeys more than this version does."""
    keeps_unknown: bool = False
    """Names that mean nothing are warned of and kept: a file of Pacemaker's may have them, and so its text."""
    secrets: Collection[str] | None = None
    """Names of the secrets that there are; None: not known."""

    def note(
        self,
        code: Code,
        path: tuple[str, ...],
        /,
        *,
        remedy: str | None = None,
        severity: Severity | None = None,
        **parameters: object,
    ) -> None:
        """Report a fault of what is at `path`."""
        place = self.places.find(*path)
        self.reports.append(report_with(code, parameters, place=place, remedy=remedy, severity=severity))

    def unknown(
        self, code: Code, path: tuple[str, ...], /, *, remedy: str | None, **parameters: object
    ) -> None:
        """Report a name that means nothing."""
        self.note(code, path, remedy=remedy, severity=Severity.WARNING if self.keeps_unknown else None, **parameters)

    def written(self, *paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return the first of some paths that is in the text: what it meets may have been there before."""
        return next((path for path in paths if self.places.find(*path) is not None), paths[0])

    def check_value(self, row: Row, value: str, name: str, path: tuple[str, ...]) -> None:
        """Report a value that does not fit its row in a table, or that a running cluster does not obey."""
        problem = objection(row, value) if self.is_foreign else live_objection(row, value)
        if problem is not None:
            remedy = f"{row.name}: {row.doc} Default: {row.default}" if row.default else f"{row.name}: {row.doc}"
            remedy = f"leave it out; {remedy}" if row.live == () and objection(row, value) is None else remedy
            is_warning = row.is_harmless and objection(row, value) is None
            severity = Severity.WARNING if is_warning else None
            self.note(Code.BAD_VALUE, path, remedy=remedy, severity=severity, name=name, problem=problem)

    def nearest(self, word: str, known: Iterable[str]) -> str | None:
        """Return the known name most like a word; None when there are so many faults that no guess would be read."""
        return nearest(word, known) if len(self.reports) < GUESSES_MAX else None

    def nodes(self) -> tuple[NodeName, ...]:
        """Return the nodes that may run resources, by name: the members, or what is configured when none are known."""
        if self.members:
            return tuple(sorted(name for name, member in self.members.items() if not member.is_witness))
        return tuple(sorted(self.configuration.nodes))


def pairs(sets: tuple[AttributeSet, ...]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of all blocks, in the order of the text."""
    return ((name, value) for block in sets for name, value in block.pairs)
