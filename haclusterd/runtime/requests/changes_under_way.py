"""This node's changes of the configuration that are proposed and not yet committed.

A change is made against one version of the configuration. If each waited for the one before it, a daemon would commit
only as many per second as its disk and the network have round trips; if all were made against the committed version,
one would be accepted and the others refused. So each is made against the one before it, as if that were committed.

Invariant: a change that was made against another fits only that very one (`expected_request`): if that is not
accepted, all later ones are refused and decided again. Verbs that do not propose exactly one change are answered from
committed versions only.

Deciding a change of a large configuration takes long, and is done in the background. Only one such decision is under
way at a time: for another one, the configuration would have changed by the time it is done.
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
"""Maximum number of changes under way: half of a proposer's window, so that orders and results have room."""


class ChangesUnderWay:
    """The chain of changes, and the requests that wait for it to become shorter, or to end."""

    def __init__(self) -> None:
        self._chain: dict[str, None] = {}
        self._versions: set[tuple[int, RequestId]] = set()
        """The versions that may be the committed one while the chain holds: its base, and each change in it."""
        self._newest: tuple[Configuration, ConfigurationVersion] | None = None
        self._waiting: deque[tuple[bool, Callable[[], None]]] = deque()
        self._is_deciding = False

    def must_wait(self, *, is_long: bool) -> bool:
        """Return whether a new change has to queue; `is_long`: deciding it takes long."""
        return bool(self._waiting) or len(self._chain) >= CHAIN_MAX or (is_long and self._is_deciding)

    def wait(self, go_on: Callable[[], None], *, for_end: bool = False) -> None:
        """Call `go_on` once there is room in the chain (`for_end`: nothing under way), and no decision either."""
        self._waiting.append((for_end, go_on))

    def deciding(self, *, is_deciding: bool) -> None:
        """Note that a long decision has started or ended."""
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
        """Note the result of a change; if it was not accepted, all changes made against it will be refused."""
        if key not in self._chain:
            return
        del self._chain[key]
        if not is_made or not self._chain:
            self._break()

    def go_on(self) -> None:
        """Call the waiting requests for which there is room now."""
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
