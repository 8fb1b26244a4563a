"""Load on one node's REST interface: status over many connections, event streams beside it; is the daemon disturbed?

Three real daemons and one real `haclusterd-api`. While it is asked, a node attribute is changed every half second, and
each stream must show exactly what the history has. The node of a service, which is neither the DC nor the one that is
asked, loses its power several times before the load and as often during it (`api_failovers.py`). Ends with one line
`RESULT ...`; exit code 1 when there was an election, an answer that is none, a stream that lost or doubled an event, or
when failovers during the load take longer than `RATIO_MAX` times the calm ones.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import aiohttp

from haclusterd.model.records import dataclass, field
from tests.benchmarks.api_failovers import FAILOVERS, Failovers
from tests.benchmarks.holds import Holds
from tests.processes.daemons import Scenario
from tests.processes.rest_interface import Api, crm, history, started

ASKED = "n1"
CHANGE_EVERY_S = 0.5
CATCH_UP_S = 60.0
RATIO_MAX = 1.1
"""Median of the failovers during the load, divided by that of the calm ones."""


@dataclass
class Load:
    """What is asked, and what came of it."""

    api: Api
    until: float
    """The load lasts until then, and until `has_failed_over`."""
    has_failed_over: bool = False
    answers: Counter[str] = field(default_factory=Counter)
    took_ms: list[float] = field(default_factory=list)
    streams: list[list[str]] = field(default_factory=list)
    """The ids that each stream showed."""
    named: Counter[str] = field(default_factory=Counter)
    last: dict[int, str] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.has_failed_over and time.monotonic() >= self.until

    def session(self) -> aiohttp.ClientSession:
        headers = {"Authorization": f"Bearer {self.api.tokens['admin']}"}
        connector = aiohttp.TCPConnector(limit=0)
        return aiohttp.ClientSession(f"http://127.0.0.1:{self.api.port}", headers=headers, connector=connector)

    async def ask(self, session: aiohttp.ClientSession, every_s: float, first_s: float) -> None:
        """Ask for the status again and again on one connection, at a pace; late is not made good."""
        await asyncio.sleep(first_s)
        due = time.monotonic()
        while not self.is_over:
            began = time.monotonic()
            try:
                async with session.get("/v1/status") as answer:
                    await answer.read()
                    self.answers[str(answer.status)] += 1
            except (aiohttp.ClientError, TimeoutError) as error:
                self.answers[type(error).__name__] += 1
            self.took_ms.append((time.monotonic() - began) * 1000)
            due = max(due + every_s, time.monotonic())
            await asyncio.sleep(max(0, due - time.monotonic()))

    async def follow(self, session: aiohttp.ClientSession, number: int, ended: asyncio.Event) -> None:
        """Read one stream until it is ended; come again with the last id when it breaks."""
        seen: list[str] = []
        self.streams.append(seen)
        while not ended.is_set():
            with suppress(aiohttp.ClientError, TimeoutError):
                headers = {"Last-Event-ID": self.last.get(number, "0")}
                async with session.get("/v1/events", headers=headers, timeout=aiohttp.ClientTimeout(None)) as answer:
                    kind = ""
                    async for raw in answer.content:
                        kind = self._take(raw.decode().rstrip("\n"), number, kind, seen)

    def _take(self, line: str, number: int, kind: str, seen: list[str]) -> str:
        name, _, value = line.partition(": ")
        if name == "id":
            self.last[number] = value
        elif name == "event":
            return value
        elif name == "data" and not kind:
            seen.append(json.loads(value)["id"])
        elif name == "data" and kind != "state":
            self.named[kind] += 1
        return kind if name else ""


async def put(
    load: Load, scenario: Scenario, failovers: Failovers, connections: int, rate: int, streams: int
) -> list[str]:
    """Put the load on, and let the service's node fail in it; return the ids that each stream must have shown."""
    ended = asyncio.Event()
    async with load.session() as session:
        following = [asyncio.create_task(load.follow(session, number, ended)) for number in range(streams)]
        every_s = connections / rate
        asking = [load.ask(session, every_s, every_s * number / connections) for number in range(connections)]
        failing = asyncio.to_thread(fail, load, failovers)
        await asyncio.gather(asyncio.to_thread(change, scenario, load), failing, *asking)
        known = [each["id"] for each in await asyncio.to_thread(history, scenario, failovers.witness)]
        deadline = time.monotonic() + CATCH_UP_S
        while time.monotonic() < deadline and any(each[-1:] != known[-1:] for each in load.streams):
            await asyncio.sleep(0.2)
        ended.set()
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
    return known


def fail(load: Load, failovers: Failovers) -> None:
    try:
        failovers.play()
    finally:
        load.has_failed_over = True


def change(scenario: Scenario, load: Load) -> None:
    """Let something happen all the time."""
    number = 0
    while not load.is_over:
        number += 1
        scenario.must("node.attribute", node=ASKED, action="set", name="load", value=str(number), lifetime="reboot")
        time.sleep(CHANGE_EVERY_S)


def run(directory: Path, seconds: int, rate: int, connections: int, streams: int, times: int) -> int:
    scenario = Scenario(directory / "cluster")
    api: Api | None = None
    try:
        scenario.form()
        calm, loaded = (Failovers(scenario, directory, ASKED, times) for _ in range(2))
        calm.configure()
        calm.play()
        api = started(scenario, ASKED, directory)
        api.tokens["admin"] = crm(scenario, ASKED, "api", "token", "add", "load", "--role", "admin")["token"]
        before = int(scenario.status(ASKED)["term"])
        began = time.monotonic()
        load = Load(api, began + seconds)
        known = asyncio.run(put(load, scenario, loaded, connections, rate, streams))
        lasted_s = time.monotonic() - began
        elections = int(scenario.status(ASKED)["term"]) - before
        holds = Holds().with_status(scenario.status(ASKED))
        more = {
            "peak_mib": api.resident_kib() // 1024,
            "api_cpu_ms": cpu_ms(api.process.pid),
            "daemon_cpu_ms": cpu_ms(scenario.brain(ASKED).pid),
            "main_work_ms": holds.main_work_ms,
            "heartbeat_gap_ms": holds.heartbeat_gap_ms,
            "failovers": times,
            "failover_calm_ms": calm.median_ms,
            "failover_load_ms": loaded.median_ms,
        }
    finally:
        if api is not None:
            api.process.terminate()
            api.process.wait(20)
        scenario.close()
    wrong = sum(each != known[: len(each)] or len(each) < len(known) for each in load.streams)
    return report(load, lasted_s, elections, wrong, more)


def cpu_ms(process: int) -> int:
    """Return the processor time of a process since its start."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) * 1000 // os.sysconf("SC_CLK_TCK")


def report(load: Load, lasted_s: float, elections: int, wrong: int, more: dict[str, int]) -> int:
    took = sorted(load.took_ms) or [0.0]
    p99 = took[min(len(took) - 1, len(took) * 99 // 100)]
    others = sum(count for name, count in load.answers.items() if name not in ("200", "503"))
    words = {
        "requests": len(load.took_ms), "rate": round(len(load.took_ms) / lasted_s), "ok": load.answers["200"],
        "busy": load.answers["503"], "others": others, "p50_ms": round(statistics.median(took)),
        "p99_ms": round(p99), "streams": len(load.streams), "events": sum(map(len, load.streams)),
        "wrong_streams": wrong, "missing": load.named["missing"], "elections": elections, **more,
    }  # fmt: skip
    ratio = more["failover_load_ms"] / more["failover_calm_ms"]
    print("RESULT", " ".join(f"{name}={value}" for name, value in words.items()), f"failover_ratio={ratio:.2f}")
    return int(bool(elections or wrong or others or load.named["missing"] or ratio > RATIO_MAX))


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench-api")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--failovers", type=int, default=FAILOVERS, help="how many, calm and during the load each")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="bench-api-"))
    try:
        return run(directory, options.seconds, options.rate, options.connections, options.streams, options.failovers)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
