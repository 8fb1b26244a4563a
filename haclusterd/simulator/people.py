"""An administrator at the control sockets: a verb is asked of one node after another until one has carried it out.

What people do reaches a simulated cluster as it reaches a real one: through the verbs, their checks and the daemon that
answers. A daemon that dies in the middle leaves what it has done.
"""

from collections.abc import Callable, Mapping
from functools import partial

from haclusterd.model.json_value import Json
from haclusterd.model.requests import Options, Request, Response
from haclusterd.protocol.control import EncodedResponse
from haclusterd.reports.codes import Code
from haclusterd.runtime.requests.request_services import Caller
from haclusterd.simulator.brain import BrainProcess
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

CALLER = Caller("administrator")
ANSWER_TIMEOUT_MS = 6_000
"""After so long without an answer the next node is asked: longer than a daemon waits for a leader, so that one that
lives has answered."""
PAUSE_MS = 500
TRIES = 24
AGAIN = frozenset({Code.CONFLICT.value, Code.TRY_AGAIN.value})
"""Answers after which the same is asked once more."""

class Person:
    """Somebody who wants one thing done."""

    def __init__(
        self,
        cluster: Cluster,
        verb: str,
        arguments: Mapping[str, Json],
        *,
        waits: bool = False,
        answered: Callable[[bool], None] | None = None,
    ) -> None:
        """`waits`: the daemon that is asked waits for the outcome; `answered` is called once, with whether it is done.
        """
        self._tell = answered
        self._cluster = cluster
        self._verb = verb
        self._arguments = dict(arguments)
        self._options = Options(wait_ms=None if waits else 0, force=True, reason="the swarm")
        self._tries = 0
        self._is_over = False
        self._clusters = cluster.clusters

    def begin(self) -> None:
        """Ask the next node that has a daemon at work; of a cluster that continues the one they knew nothing is asked.

        What was to be changed there is no longer right: nobody knows yet what runs (safety.md §10).
        """
        if self._is_over or self._cluster.clusters != self._clusters:
            return
        self._tries += 1
        if self._tries > TRIES:
            self._is_over = True
            return
        names = self._cluster.names
        name = names[self._tries % len(names)]
        process = self._cluster.hosts[name].brain.process
        if not isinstance(process, BrainProcess) or not process.main_life.is_running:
            self._cluster.world.after(PAUSE_MS * MS, self.begin)
            return
        number = self._tries
        request = Request(f"{self._verb}-{number}", self._verb, self._arguments, self._options)
        process.main_life.after(0, partial(self._ask, process, request, number))
        self._cluster.world.after(ANSWER_TIMEOUT_MS * MS, lambda: self._ask_another(number))

    def _ask(self, process: BrainProcess, request: Request, number: int) -> None:
        process.control.handle(request, CALLER, self._taker(number))

    def _ask_another(self, number: int) -> None:
        if number == self._tries:
            self.begin()

    def _taker(self, number: int) -> Callable[[object], None]:
        def take(answer: object) -> None:
            response = answer.decoded() if isinstance(answer, EncodedResponse) else answer
            if isinstance(response, Response) and number == self._tries:
                self._answered(response)

        return take

    def _answered(self, answer: Response) -> None:
        codes = {report.code for report in answer.reports}
        if answer.exit and codes & AGAIN:
            self._cluster.world.after(PAUSE_MS * MS, self.begin)
            self._tries += 1
            return
        self._is_over = True
        code_names = ", ".join(sorted(codes))
        self._cluster.world.record(f"administrator {self._verb} {self._arguments} ends {answer.exit} {code_names}")
        self._cluster.coverage.count("verb", self._verb if not answer.exit else f"{self._verb} refused")
        if self._tell is not None:
            self._tell(not answer.exit)


def ask(
    cluster: Cluster,
    verb: str,
    arguments: Mapping[str, Json],
    *,
    waits: bool = False,
    answered: Callable[[bool], None] | None = None,
) -> None:
    """Have something done, whatever node can do it; return at once; `waits` and `answered` as `Person` has them."""
    Person(cluster, verb, arguments, waits=waits, answered=answered).begin()
