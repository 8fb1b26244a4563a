"""A cluster of two nodes that does nothing, for agents on trial: it answers the tools that they call.

The tools are the real ones, and so are the verbs behind them; the state is a file. What an agent writes (promotion
scores, attributes) is kept, what it reads is a cluster in which its resource exists and runs nowhere yet.
"""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from haclusterd.adapters.control.admission import PeerCredentials
from haclusterd.adapters.control.server import Answer, ControlServer, HangUp
from haclusterd.cib.codec import decode_cib, encode_cib
from haclusterd.cli.offline import OfflineClient
from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.ids import AgentReference, NodeName
from haclusterd.model.requests import Request

NODE, OTHER_NODE = "node-a", "node-b"
TIMEOUT_S = 10


class StandInCluster:
    """A control socket in a directory, answered by a thread while the context is open."""

    def __init__(self, directory: Path, agent: AgentReference, resource: str, *, is_promotable: bool) -> None:
        self.socket = directory / "control.sock"
        self._state = directory / "cluster"
        self._state.write_bytes(_state(agent, resource, is_promotable=is_promotable))
        self._client = OfflineClient(str(self._state), "agent")
        self._loop = asyncio.new_event_loop()
        self._server = ControlServer(self.socket, self._handle)
        self._thread = threading.Thread(target=self._loop.run_forever, name="stand-in cluster", daemon=True)

    def __enter__(self) -> "StandInCluster":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(TIMEOUT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.stop()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    def _handle(self, request: Request, _: PeerCredentials, answer: Answer) -> HangUp:
        answer(self._client.call(request, lambda _progress: None))
        return lambda: None

    def attributes(self) -> Mapping[str, str]:
        """Return what the node's attributes are, those until its next boot."""
        cib = decode_cib(self._state.read_bytes())
        return dict(cib.status.nodes[NodeName(NODE)].attributes)


def _state(agent: AgentReference, resource: str, *, is_promotable: bool) -> bytes:
    """Return the state: both nodes online, the resource configured, as a promotable clone where it is one."""
    primitive = (
        f'<primitive id={quoteattr(resource)} class="ocf" provider={quoteattr(agent.provider or "")} '
        f"type={quoteattr(agent.type)}/>"
    )
    promotable = f'<meta_attributes id="m"><nvpair id="p" name="promotable" value="true"/></meta_attributes>{primitive}'
    configured = f'<clone id="of-{resource}">{promotable}</clone>' if is_promotable else primitive
    nodes = "".join(f'<node id="{at}" uname="{name}"/>' for at, name in ((1, NODE), (2, OTHER_NODE)))
    states = "".join(
        f'<node_state id="{at}" uname="{name}" in_ccm="true" crmd="online" join="member" expected="member"/>'
        for at, name in ((1, NODE), (2, OTHER_NODE))
    )
    reading = read_cib(
        '<cib crm_feature_set="3.19.0" validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0" '
        f'have-quorum="1" dc-uuid="1"><configuration><crm_config/><nodes>{nodes}</nodes>'
        f"<resources>{configured}</resources><constraints/></configuration><status>{states}</status></cib>",
        "stand-in",
    )
    return encode_cib(reading.cib)
