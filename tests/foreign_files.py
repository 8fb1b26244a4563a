"""A file with a CIB of Pacemaker, and somebody who types commands of `crm` about it, in this process."""

import io
from difflib import unified_diff
from pathlib import Path

from haclusterd.cli.main import World, run
from haclusterd.cli.offline import OfflineClient, Survey
from haclusterd.cli.session import Streams
from haclusterd.model.requests import Response
from tests.administered_clusters import NOW, ClusterClient, running


class File:
    """A file with a CIB of Pacemaker, and somebody who types commands about it."""

    def __init__(self, path: Path, text: str, survey: Survey | None = None) -> None:
        self.path = path
        self.survey = survey
        path.write_text(text)
        self.before = text
        self.printed = ""

    def type(self, *words: str, compat: str = "", typed: str = "") -> int:
        out = io.StringIO()
        world = World(
            streams=Streams(io.StringIO(typed), out, out),
            environment={"CIB_file": str(self.path), "CRM_COMPAT": compat, "XDG_STATE_HOME": str(self.path.parent)},
            connect=lambda _: ClusterClient(running()),
            open_file=lambda path: OfflineClient(path, "root@n1", lambda: NOW, self.survey),
            setup=lambda _: Response("", 0),
            version=lambda: "0",
        )
        status = run(words, world)
        self.printed = out.getvalue()
        return status

    def difference(self) -> list[str]:
        """Return the changed lines, without the first line of the document."""
        lines = unified_diff(self.before.splitlines(), self.path.read_text().splitlines(), n=0, lineterm="")
        changed = [line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---"))]
        return [line for line in changed if "<cib " not in line]
