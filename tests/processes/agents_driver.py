"""A daemon reduced to its agents, for test_agents_adoption: begins one action, then waits to be killed or re-executed.

Usage: agents_driver.py DIRECTORY SCRIPT TIMEOUT_MS [adopt]. Prints JSON lines. SIGHUP: execv itself, to adopt.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.model.ids import Incarnation
from tests.unit.adapters.scripted_agents import ScriptedAgents


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


async def main(directory: Path, script: str, timeout_ms: int, *, is_adopting: bool) -> None:
    loop = asyncio.get_running_loop()
    token = "00000000000000bb" if is_adopting else "00000000000000aa"
    agents = ScriptedAgents(BoottimeClock(loop), directory, Incarnation("boot-1", token))
    loop.add_signal_handler(signal.SIGHUP, lambda: os.execv(sys.executable, [sys.executable, *sys.argv, "adopt"]))
    adopted = agents.runner.adopt(lambda key: say(ended=key))
    say(adopted=[(action.key, action.is_running) for action in adopted], pid=os.getpid())
    if not is_adopting:
        agents.begin(agents.call(script, "start", timeout_ms=timeout_ms))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), is_adopting="adopt" in sys.argv[4:]))
