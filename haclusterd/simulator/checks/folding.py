"""One replica's folding stands for that of all: equal entries on equal CIBs are applied once by equal rules.

`apply` is a pure function, so what it made for the first replica is what it makes for the others; this saves a
simulation most of its work. That it *is* one is looked at now and then: every so many entries, and every snapshot, each
replica does its own work, and the outcome must be equal in value and in bytes to the first one's.
"""

from functools import cached_property

from haclusterd.cib import codec
from haclusterd.cib.changes import Applied
from haclusterd.cib.staging import PutTogether, put_together
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import Term
from haclusterd.model.records import dataclass
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.model.steps import Steps
from haclusterd.runtime.replica import Folding


@dataclass(frozen=True)
class _Folded:
    before: Cib
    entry: bytes
    term: Term
    rules: SafetyRules
    applied: Applied

    @cached_property
    def written(self) -> bytes:
        return codec.encode_cib(self.applied.cib)

    def is_equal(self, cib: Cib) -> bool:
        return self.applied.cib == cib and self.written == codec.encode_cib(cib)


class SharedFolding(Folding):
    """The folding of all replicas of one simulated cluster."""

    OWN_WORK_EVERY = 64
    """At indexes that this divides each replica does its own work."""

    def __init__(self) -> None:
        self._folded: dict[int, _Folded] = {}

    def fold(
        self,
        cib: Cib,
        entry: bytes,
        *,
        index: int,
        term: Term,
        rules: SafetyRules,
        is_in_force: bool = False,
        read_staged: PutTogether = put_together,
    ) -> Applied:
        """See `Folding.fold`."""

        def own_work() -> Applied:
            return super(SharedFolding, self).fold(
                cib, entry, index=index, term=term, rules=rules, is_in_force=is_in_force, read_staged=read_staged
            )

        known = self._folded.get(index)
        is_other = known is None or (known.entry, known.term, known.rules) != (entry, term, rules)
        if known is None or is_other or not _is_same(known.before, cib):
            applied = own_work()
            self._folded.setdefault(index, _Folded(cib, entry, term, rules, applied))
            return applied
        if index % self.OWN_WORK_EVERY == 0:
            applied = own_work()
            return known.applied if known.is_equal(applied.cib) else applied
        return known.applied

    def write(self, cib: Cib) -> bytes:
        """See `Folding.write`."""
        known = self._folded.get(cib.index)
        return known.written if known is not None and known.applied.cib is cib else super().write(cib)

    def read(self, snapshot: bytes) -> Steps[Cib]:
        """See `Folding.read`."""
        cib = yield from super().read(snapshot)
        known = self._folded.get(cib.index)
        return known.applied.cib if known is not None and known.is_equal(cib) else cib


def _is_same(one: Cib, other: Cib) -> bool:
    return one is other or (one.index == 0 and one == other)
