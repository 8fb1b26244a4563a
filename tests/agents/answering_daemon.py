"""A control socket that answers as a daemon does, on a cluster whose nodes do nothing by themselves."""

import asyncio
import threading
from pathlib import Path

from haclusterd.adapters.control.admission import PeerCredentials
from haclusterd.adapters.control.server import Answer, ControlServer
from haclusterd.model.requests import Request
from tests.administered_clusters import ClusterClient, formed


class AnsweringDaemon:
    """The daemon's server and its verbs, in a thread; what is written is applied at once."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "control.sock"
        self.cluster = formed()
        self._client = ClusterClient(self.cluster)
        self._loop = asyncio.new_event_loop()
        self._server = ControlServer(self.socket, self._handle)
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> "AnsweringDaemon":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.stop()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    def _handle(self, request: Request, _: PeerCredentials, answer: Answer) -> None:
        answer(self._client.call(request, lambda _progress: None))

    def attributes(self, node: str = "n1") -> dict[str, str]:
        return dict(self.cluster.node(node).attributes)

    def writes(self) -> int:
        """How many requests would have been entries of the log."""
        return len(self._client.requests)
