"""All ports of a node's runtime, in one value."""

from haclusterd.model.records import dataclass
from haclusterd.ports.agents import AgentRunner
from haclusterd.ports.alerts import AlertAgents
from haclusterd.ports.background import Background
from haclusterd.ports.clock import Clock, Entropy
from haclusterd.ports.crashes import CrashRecords
from haclusterd.ports.devices import DeviceWatch
from haclusterd.ports.event_log import EventLog
from haclusterd.ports.fencing import FenceAgents
from haclusterd.ports.history import History
from haclusterd.ports.loop_stalls import LoopStalls
from haclusterd.ports.machine_load import LoadMeter
from haclusterd.ports.pacer import Pacer
from haclusterd.ports.peer_messages import PeerMessages
from haclusterd.ports.planner import Planner
from haclusterd.ports.secrets import SecretKeeper
from haclusterd.ports.store import Store


@dataclass(frozen=True, slots=True)
class NodePorts:
    """The ports of one daemon."""

    clock: Clock
    entropy: Entropy
    store: Store
    pacer: Pacer
    peer_messages: PeerMessages
    agents: AgentRunner
    fence_agents: FenceAgents
    log: EventLog
    history: History
    planner: Planner
    loop_stalls: LoopStalls
    background: Background
    crashes: CrashRecords
    alerts: AlertAgents
    load: LoadMeter
    devices: DeviceWatch
    secrets: SecretKeeper
