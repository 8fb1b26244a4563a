"""`crm migrate check`: read a CIB of Pacemaker, ask this machine's agents about themselves, and judge both."""

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.agents.surroundings import AgentDirectories
from haclusterd.adapters.agents.survey import survey
from haclusterd.adapters.agents.unit_files import UnitFiles
from haclusterd.adapters.machine.installation import (
    agent_search_path,
    share_directory,
)
from haclusterd.commands.migration_check import check_migration, named_agents
from haclusterd.entry_points.crm_setup import answer, read_text
from haclusterd.formats.cib_xml.tree import MAX_LENGTH
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report

QUERY = ("cibadmin", "--query")
QUERY_TIMEOUT_S = 60
LIVE = "the running Pacemaker"
NEWLINE = b"\n"
_HOW_TO_SAVE = "on a node of the Pacemaker cluster: cibadmin --query > cib.xml; then: crm migrate check cib.xml"


def check(arguments: Mapping[str, Json]) -> Response:
    """Judge a file, standard input being `-`, or what Pacemaker's own tool on this machine says (`--live`)."""
    name, is_live = read_text(arguments, "file"), arguments.get("live") is True
    if bool(name) is is_live:
        problem = "name a file or --live, not both" if name else "name a file, or --live"
        return answer([report(Code.BAD_ARGUMENT, name="FILE", problem=problem, remedy=_HOW_TO_SAVE)])
    text = _queried() if is_live else _read(name)
    if isinstance(text, ReportItem):
        return answer([text])
    source = LIVE if is_live else name
    share = share_directory()
    directories = AgentDirectories(shipped=share / "resource_agents", search=agent_search_path(), shims=share / "shims")
    fence_directories = FenceDirectories.installed(share)
    agents = survey(named_agents(text, source), directories, fence_directories, UnitFiles())
    outcome = check_migration(text, source, agents, WallTime(time.time_ns() // 1_000_000))
    if outcome.is_refused:
        return answer(list(outcome.reports))
    return Response("", outcome.exit_status or 0, (), outcome.data)


def _read(name: str) -> str | ReportItem:
    try:
        with Path("/dev/stdin" if name == "-" else name).open("rb") as file:
            data = file.read(MAX_LENGTH + 1)
    except OSError as error:
        return report(Code.NO_INPUT, file=name, problem=error.strerror or str(error), remedy=_HOW_TO_SAVE)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        at = f"line {data.count(NEWLINE, 0, error.start) + 1}, byte {error.start - data.rfind(NEWLINE, 0, error.start)}"
        problem = f"{at}: 0x{data[error.start]:02x} is no UTF-8 text"
        return report(Code.NO_INPUT, file=name, problem=problem, remedy="save it as UTF-8: iconv -f LATIN1 -t UTF-8")


def _queried() -> str | ReportItem:
    """Ask Pacemaker's own tool for the CIB of the cluster that this machine belongs to."""
    try:
        asked = subprocess.run(
            QUERY, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=QUERY_TIMEOUT_S
        )
    except FileNotFoundError:
        problem = "it is not installed here"
        return report(Code.NO_INPUT, file=QUERY[0], problem=problem, remedy=_HOW_TO_SAVE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return report(Code.NO_INPUT, file=QUERY[0], problem=str(error), remedy=_HOW_TO_SAVE)
    if asked.returncode:
        words = asked.stderr.decode(errors="replace").strip().splitlines()
        problem = words[-1] if words else f"it ended with {asked.returncode}"
        return report(Code.NO_INPUT, file=" ".join(QUERY), problem=problem, remedy=_HOW_TO_SAVE)
    return asked.stdout.decode(errors="replace")
