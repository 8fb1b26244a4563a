"""Administrators that change the configuration of whole daemons without end, and write down the answers.

Each change carries a reason that no other has: versions of the configuration, in their order, are the list of words. A
third of the changes is made only if the configuration still is the version that was read; reads are consistent ones.
"""

import json
import random
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from haclusterd.adapters.control.client import ControlClient
from haclusterd.model.requests import Options, Progress, Request, Response

AWAY_PAUSE_S = 0.1


class Administrator(threading.Thread):
    """One client with one thing on its mind at a time; goes to another node when one does not answer."""

    def __init__(self, name: str, sockets: Sequence[Path], record: Path, stopping: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._sockets = list(sockets)
        self._stopping = stopping
        self._chance = random.Random(name)
        self._count = 0
        self._at = self._chance.randrange(len(self._sockets))
        self._client = ControlClient(str(self._sockets[self._at]))
        self._record = record.open("a", buffering=1)
        self.refused: list[str] = []
        """Words that were refused because the configuration had changed: they must have no effect."""
        self.conditions: dict[str, int] = {}
        """Word: the version before it, of changes that were made under that condition."""
        self.outcomes: dict[str, int] = {}
        """What was answered, by its first code, for a person's eyes."""

    def run(self) -> None:
        version = 0
        while not self._stopping.is_set():
            kind = self._chance.random()
            if kind < 0.5:
                self._append()
            elif kind < 0.75:
                self._change_if(version)
            else:
                version = self._look(version)
        self._client.close()
        self._record.close()

    def _append(self) -> None:
        value = str(self._count)
        arguments = {
            "action": "set", "node": "n1", "name": f"w-{self.name}", "value": value, "lifetime": "forever"
        }  # fmt: skip
        self._ask("append", "node.attribute", arguments)

    def _change_if(self, version: int) -> None:
        text = f"node n2 attributes c-{self.name}={self._count}"
        word = self._word
        self.conditions[word] = version
        self._ask("append", "configure.load", {"mode": "update", "version": version, "text": text})

    def _look(self, known: int) -> int:
        answer = self._ask("look", "configure.show", {}, is_consistent=True)
        return int(answer["version"]) if answer is not None else known

    @property
    def _word(self) -> str:
        return f"{self.name}.{self._count}"

    def _ask(
        self, kind: str, verb: str, arguments: Mapping[str, Any], *, is_consistent: bool = False
    ) -> Mapping[str, Any] | None:
        word = self._word
        self._count += 1
        self._note("ask", word, kind, time.monotonic_ns(), word, "")
        options = Options(reason=word if kind == "append" else "", is_consistent=is_consistent)
        response = self._client.call(Request(word, verb, arguments, options), _ignore)
        code = response.reports[0].code if response.reports else ""
        self.outcomes[code] = self.outcomes.get(code, 0) + 1
        if response.exit == 0 and isinstance(response.data, Mapping | None):
            data = response.data or {}
            is_done = True
            self._note("answer", word, time.monotonic_ns(), is_done, str(data.get("version", "")))
            return data
        self._refused(word, code, response)
        return None

    def _refused(self, word: str, code: str, response: Response) -> None:
        if code == "CONFLICT":
            self.refused.append(word)
        elif code in ("NOT_RUNNING", "DISCONNECTED", "NO_QUORUM", "OUTCOME_UNKNOWN"):
            self._client.close()
            self._at = (self._at + 1) % len(self._sockets)
            self._client = ControlClient(str(self._sockets[self._at]))
            self._stopping.wait(AWAY_PAUSE_S)
        elif code != "TRY_AGAIN":
            self.outcomes[f"? {response.reports}"] = 1

    def _note(self, *items: object) -> None:
        self._record.write(json.dumps(items) + "\n")


def _ignore(_: Progress) -> None:
    return None
