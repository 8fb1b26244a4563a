"""Calls of resource agents and fence agents, and how they ended, as values.

The machines ask for calls and judge results; the adapters execute. Both know only these values.
"""

from collections.abc import Mapping

from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.instants import Instant
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.model.records import dataclass, field

REASON_MAX = 500
"""Characters that are kept of what an agent says. A result that fits in no entry of the log could never be recorded: of
a fence agent, the node would be dead, and nothing of it recovered."""


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One action of one agent, with everything it needs."""

    key: str
    """Unique for ever; the order's key, with a counter for runs of a recurring monitor."""
    resource: ResourceId
    """Whose action this is; actions of one resource are run one at a time by the caller."""
    instance: str
    """OCF_RESOURCE_INSTANCE: the id without `:N` for an anonymous clone's instance."""
    agent: AgentReference
    action: str
    """The agent's word for it: start, stop, monitor, meta-data, ..."""
    parameters: Mapping[str, str] = field(repr=False)
    """Instance parameters, for OCF_RESKEY_*; some are secret, so none is ever printed."""
    meta: Mapping[str, str]
    """For OCF_RESKEY_CRM_meta_*, names with `-` or `_`; intervals and timeouts in ms."""
    timeout_ms: int
    incarnation: Incarnation
    check_level: str | None = None
    devices: tuple[str, ...] = ()
    """Ids of the devices that the resource claims here."""
    accelerators: tuple[str, ...] = ()
    """Those of them that are GPUs or instances of GPUs."""


@dataclass(frozen=True, slots=True)
class AgentResult:
    """How one action ended."""

    key: str
    exit_code: int
    """The agent's exit status as it was; 1 when there is none."""
    status: ExecutionStatus
    """DONE when the agent ended by itself (any exit code), else TIMEOUT, NOT_INSTALLED, CANCELLED, ERROR (a signal)."""
    exit_reason: str
    stdout: str
    stderr: str
    queued_ms: int
    executed_ms: int
    still_alive: bool = False
    """The processes were not gone when this was delivered, though SIGKILL was sent. The resource's next action waits
    for them up to 5 s, and is an ERROR if they are still there (uninterruptible sleep)."""
    is_begun: bool = True
    """False: the lease had ended when the agent was to be executed, and it was not."""
    restart_parameters: tuple[str, ...] | None = None
    """Of a successful start: the parameters that the agent cannot take over with `reload-agent`; None: it has none, or
    could not say."""


@dataclass(frozen=True, slots=True)
class AdoptedAction:
    """An action that an earlier incarnation of this boot began, as found in the runtime directory."""

    key: str
    resource: ResourceId
    action: str
    deadline: Instant
    is_running: bool


@dataclass(frozen=True, slots=True)
class FenceCall:
    """One call of one fence agent."""

    key: str
    agent: str
    """The agent's file name, as `fence_ipmilan`."""
    action: str
    """off, on, reboot, status, monitor, list, metadata."""
    parameters: Mapping[str, str] = field(repr=False)
    """Everything for standard input except `action`; the target too, unless `host` is given."""
    timeout_ms: int
    host: str | None = None
    """What the device calls the target; the agent's metadata says under which name it reads that (plug or port)."""
    needs_lease: bool = False
    """Whether it is not begun any more when the lease has ended."""
    device: str = ""
    """The id of the device; empty: it is not known."""


@dataclass(frozen=True, slots=True)
class FenceCallResult:
    """How it ended: exit code 0 is success; for `status` 0 is on and 2 is off; for `monitor` 0 and 2 are healthy."""

    key: str
    exit_code: int
    timed_out: bool
    reason: str
    """The last line of standard error, or what kept the agent from running."""
    output: str
