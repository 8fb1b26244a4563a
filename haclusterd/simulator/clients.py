"""Clients at the control sockets: they write, read with `--consistent`, and remember their answers.

Each works through the real control service of some node, for as long as that node's daemon lives. Their answers are
judged at the end by what the log says (`linearizability`): nothing acknowledged is missing or appears twice, and all
answers fit one order. A client that never got its answer knows nothing, and claims nothing.
"""

import random
from collections.abc import Mapping
from typing import cast

from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import effective
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, replace
from haclusterd.model.requests import Options, Progress, Request, Response
from haclusterd.protocol.control import EncodedResponse
from haclusterd.reports.codes import Code
from haclusterd.runtime.requests.request_services import Caller
from haclusterd.simulator.brain import BrainProcess
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.checks.linearizability import Append, Kind, Operation, judge_log, judge_register
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

CALLER = Caller("client")
PAUSE_MS = (200, 6_000)
REGISTERS = ("amber", "blue", "green")
"""Attributes of the first node, in the configuration."""
NOTHING_DONE = frozenset({Code.CONFLICT.value, Code.REFUSED.value, Code.TRY_AGAIN.value})
"""Answers after which a client may be sure that nothing was written."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What came of the clients' work."""

    acknowledged: int = 0
    reads: int = 0
    undecided: int = 0
    """Registers with too many unanswered writes to judge."""


class Clients:
    """All clients of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._chance: random.Random = cluster.world.chance("clients")
        self._asked: dict[int, tuple[str, Operation]] = {}
        """By number: the register, and what was asked of it."""
        self._count = 0
        self._is_over = False

    def begin(self) -> None:
        """Begin to work."""
        self._ask()
        span_ms = self._chance.randint(*PAUSE_MS)
        if not self._is_over:
            self._cluster.world.after(span_ms * MS, self.begin)

    def stop(self) -> None:
        """Ask nothing more."""
        self._is_over = True

    def judge(self) -> Tally:
        """Compare the clients' answers with the log; raises ViolationError."""
        acknowledged = reads = undecided = 0
        for register in REGISTERS:
            operations = [operation for name, operation in self._asked.values() if name == register]
            self._judge_writes(register, operations)
            verdict = judge_register(operations)
            if not verdict.is_linearizable:
                raise ViolationError("AnswersFitOneOrder", f"{register}: no order explains {verdict.culprit}")
            undecided += verdict.is_undecided
            answered = [operation.kind for operation in operations if operation.answered_at is not None]
            acknowledged += answered.count(Kind.WRITE)
            reads += answered.count(Kind.READ)
        return Tally(acknowledged, reads, undecided)

    def _judge_writes(self, register: str, operations: list[Operation]) -> None:
        appends = [
            Append(operation.value, operation.asked_at, operation.answered_at)
            for operation in operations
            if operation.kind is Kind.WRITE
        ]
        verdict = judge_log(appends, self._history(register))
        if not verdict.is_good:
            raise ViolationError("AcknowledgedIsKept", f"{register}: {verdict}")

    def _history(self, register: str) -> list[str]:
        """Return the values that the register had, in the order of the log."""
        history: list[str] = []
        cibs = self._cluster.checkers.log.cibs
        configuration = None
        for index in sorted(cibs):
            if cibs[index].configuration is configuration:
                continue
            configuration = cibs[index].configuration
            value = _value(cibs[index], self._cluster.names[0], register)
            if value and (not history or history[-1] != value):
                history.append(value)
        return history

    def _ask(self) -> None:
        chance, node = self._chance, self._chance.choice(self._cluster.names)
        register, is_write = chance.choice(REGISTERS), chance.random() < 0.5
        process = self._cluster.hosts[node].brain.process
        if self._is_over or not isinstance(process, BrainProcess) or not process.main_life.is_running:
            return
        self._count += 1
        number, now = self._count, self._cluster.world.now_us
        kind = Kind.WRITE if is_write else Kind.READ
        self._asked[number] = register, Operation(node, kind, now, value=f"{number}" if is_write else "")

        def ask() -> None:
            process.control.handle(self._request(number), CALLER, _Taker(self, number))

        process.main_life.after(0, ask)

    def _request(self, number: int) -> Request:
        register, operation = self._asked[number]
        arguments: dict[str, Json] = {"node": self._cluster.names[0], "name": register, "lifetime": "forever"}
        if operation.kind is Kind.WRITE:
            written: dict[str, Json] = {**arguments, "action": "set", "value": operation.value}
            return Request(str(number), "node.attribute", written, Options(reason="a client"))
        return Request(str(number), "node.attributes", arguments, Options(is_consistent=True))

    def answered(self, number: int, response: Response) -> None:
        """A client got its answer."""
        register, operation = self._asked[number]
        now = self._cluster.world.now_us
        codes = {report.code for report in response.reports}
        if response.exit == 0:
            value = operation.value if operation.kind is Kind.WRITE else _shown(response, register)
            self._asked[number] = register, replace(operation, answered_at=now, value=value)
        elif operation.kind is Kind.READ or codes & NOTHING_DONE:
            del self._asked[number]


@dataclass(frozen=True, slots=True)
class _Taker:
    """Takes the answer to one question."""

    clients: Clients
    number: int

    def __call__(self, answer: Progress | Response | EncodedResponse) -> None:
        if not isinstance(answer, Progress):
            response = answer.decoded() if isinstance(answer, EncodedResponse) else answer
            self.clients.answered(self.number, response)


def _value(cib: Cib, node: NodeName, register: str) -> str:
    entry = cib.configuration.nodes.get(node)
    return "" if entry is None else effective(entry.attributes).get(register, "")


def _shown(response: Response, register: str) -> str:
    data = cast(Mapping[str, list[Mapping[str, Mapping[str, str]]]], response.data)
    return data["nodes"][0]["forever"].get(register, "")
