"""What a person typed in the shell, kept for later shells in a file that only they read.

It is plain text, a statement a line. A line that begins with a space is not kept, so a password can be left out.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

LENGTH = 2000
"""How many lines are kept."""
_TRIMMED_AT = LENGTH + LENGTH // 4


def history_file(environment: Mapping[str, str]) -> Path:
    """Return where a person's lines are kept."""
    base = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "haclusterd" / "crm_history"


class TypedLines:
    """The lines in one file; where it cannot be read or written there is no history, and nothing fails."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._newest = ""

    def read(self) -> list[str]:
        """Return the kept lines, the oldest first."""
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        if len(lines) > _TRIMMED_AT:
            self._replace(lines[-LENGTH:])
        self._newest = lines[-1] if lines else ""
        return lines[-LENGTH:]

    def append(self, line: str) -> None:
        """Keep a line; one that continues after a backslash becomes one line."""
        kept = " ".join(line.replace("\\\n", " ").split("\n")).rstrip()
        if not kept or kept[0].isspace() or kept == self._newest:
            return
        self._newest = kept
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with open(handle, "w", encoding="utf-8", errors="replace") as file:
                if os.fstat(handle).st_mode & 0o077:
                    os.fchmod(handle, 0o600)
                file.write(kept + "\n")
        except OSError:
            return

    def _replace(self, lines: list[str]) -> None:
        """Put fewer lines in the place of the file, as a whole."""
        try:
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
            with open(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write("".join(f"{line}\n" for line in lines))
            os.replace(name, self._path)
        except OSError:
            return
