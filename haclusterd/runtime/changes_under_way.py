"""This node's changes of the configuration that are proposed and not yet committed.

A change is made against one version of the configuration. If each waited for the one before it, a daemon would commit
as many in a second as its disk and the network have round trips; if all were made against the committed version, one of
them would be made and the others refused. So each is made against the one before it, which is taken for committed.

Invariant: a change that was made against another fits nothing but that very one (`expected_request`): when it does not
come to be, all behind it are refused and decided upon again. What a verb answers without proposing exactly one change
rests on committed versions only.

Deciding a change of a large configuration takes long, and is done beside the main loop. One such at a time, and while
it lasts no other such is begun: each would find the configuration changed when it is decided.
"""

from collections import deque
from collections.abc import Callable

from haclusterd.cib.commands import ChangeConfiguration
from haclusterd.cib.edits import apply_edits
from haclusterd.model.cluster import Cib, ConfigurationVersion
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import RequestId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace

CHAIN_MAX = 32
"""Changes under way at once: half of what a proposer has in flight, so that orders and results have room."""


class ChangesUnderWay:
    """The chain of changes, and who waits for it to become shorter, or to end."""

    def __init__(self) -> None:
        self._chain: dict[str, None] = {}
        self._versions: set[tuple[int, RequestId]] = set()
        """What the committed version may be while the chain holds: its base, and each change of it."""
        self._newest: tuple[Configuration, ConfigurationVersion] | None = None
        self._waiting: deque[tuple[bool, Callable[[], None]]] = deque()
        self._is_deciding = False

    def must_wait(self, *, is_long: bool) -> bool:
        """Tell whether a new change has to queue; `is_long`: deciding it takes long."""
        return bool(self._waiting) or len(self._chain) >= CHAIN_MAX or (is_long and self._is_deciding)

    def wait(self, go_on: Callable[[], None], *, for_end: bool = False) -> None:
        """Call `go_on` when there is room in the chain, or only when nothing is under way; nobody decides then."""
        self._waiting.append((for_end, go_on))

    def deciding(self, *, is_deciding: bool) -> None:
        """Note that a long decision begins, or has ended."""
        self._is_deciding = is_deciding

    def base(self, cib: Cib) -> Cib:
        """Return the CIB against which the next change is made: `cib` itself when nothing is under way."""
        if self._newest is not None and _name(cib.version) not in self._versions:
            self._break()
        if self._newest is None:
            return cib
        configuration, version = self._newest
        return replace(cib, configuration=configuration, version=version)

    def proposed(self, key: str, base: Cib, command: ChangeConfiguration, request: RequestId, at: WallTime) -> None:
        """Note a change that was made against `base` and proposed."""
        version = ConfigurationVersion(base.version.epoch + 1, command.author, at, command.reason, request)
        self._newest = (apply_edits(base.configuration, command.edits), version)
        self._versions |= {_name(base.version), _name(version)}
        self._chain[key] = None

    def ended(self, key: str, *, is_made: bool) -> None:
        """Note what became of a change; whatever was made against one that is not made will be refused."""
        if key not in self._chain:
            return
        del self._chain[key]
        if not is_made or not self._chain:
            self._break()

    def go_on(self) -> None:
        """Let those go on for whom there is room now."""
        while self._waiting and self._may_go_on(for_end=self._waiting[0][0]):
            self._waiting.popleft()[1]()

    def _may_go_on(self, *, for_end: bool) -> bool:
        return not self._is_deciding and (not self._chain or (not for_end and len(self._chain) < CHAIN_MAX))

    def _break(self) -> None:
        self._chain.clear()
        self._versions.clear()
        self._newest = None


def _name(version: ConfigurationVersion) -> tuple[int, RequestId]:
    return version.epoch, version.request
