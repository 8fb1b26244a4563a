"""Crashes of this daemon, in its runtime directory: a boot clears them."""

import json
import os
from pathlib import Path

from haclusterd.model.instants import Instant
from haclusterd.ports.crashes import CrashRecord

RECORDS_MAX = 20


class CrashFile:
    """`crashes.json` of one runtime directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def recent(self) -> tuple[CrashRecord, ...]:
        """Return the recorded crashes, oldest first; an unreadable file counts as empty."""
        try:
            items = json.loads(self._path.read_text())
            return tuple(
                CrashRecord(Instant(int(at)), int(epoch), bool(was_controller), str(detail))
                for at, epoch, was_controller, detail in items
            )
        except (OSError, ValueError, TypeError):
            return ()

    def add(self, record: CrashRecord) -> None:
        """Record a crash."""
        records = (*self.recent(), record)[-RECORDS_MAX:]
        items = [[item.at, item.epoch, item.was_controller, item.detail] for item in records]
        scratch = self._path.with_suffix(".new")
        scratch.write_text(json.dumps(items))
        os.replace(scratch, self._path)
