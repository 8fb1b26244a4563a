"""The facts of this machine's agents, read without a daemon.

Only `meta-data` is called, which changes nothing (OCF Resource Agent API 1.1, "meta-data"). An agent that does not
answer in time, or not with meta-data, counts as installed, with no facts.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.agents.fence_plugins import QUESTIONS, plugin_environment, plugin_metadata
from haclusterd.adapters.agents.metadata import MetadataError, read_agent_metadata
from haclusterd.adapters.agents.ocf import METADATA_LIMIT, METADATA_TIMEOUT_MS
from haclusterd.adapters.agents.surroundings import FEATURE_SET, AgentDirectories
from haclusterd.adapters.agents.tools import missing_tools
from haclusterd.adapters.agents.unit_files import UnitFiles
from haclusterd.model.agents import AgentFacts
from haclusterd.model.fence_parameters import is_plugin
from haclusterd.model.ids import UNITS, AgentReference
from haclusterd.model.records import replace

AT_ONCE = 4
"""Number of agents that are asked at the same time."""
LOOK_AGAIN_S = 0.1
END_LOOK_S = 0.005
INTERPRETER_BYTES = 256
"""How much of a program's first line the kernel reads for its interpreter (BINPRM_BUF_SIZE)."""


def survey(
    agents: Iterable[AgentReference],
    directories: AgentDirectories,
    fence_directories: FenceDirectories,
    unit_files: UnitFiles,
) -> Mapping[str, AgentFacts]:
    """Return the facts of those of these agents that are installed here, by `str(AgentReference)`."""
    wanted = tuple(agents)
    found = [
        (agent, path)
        for agent in wanted
        if (path := _find(agent, directories, fence_directories)) is not None and os.access(path, os.X_OK)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        facts = pool.map(lambda pair: _ask(pair[0], pair[1], directories), found)
        known = {str(agent): facts for (agent, _), facts in zip(found, facts, strict=True)}
    return known | {str(agent): AgentFacts() for agent in wanted if _is_service(agent, directories, unit_files)}


def _find(agent: AgentReference, directories: AgentDirectories, fence_directories: FenceDirectories) -> Path | None:
    if agent.standard == "ocf":
        return directories.find(agent)
    return fence_directories.find(agent.type) if agent.standard == "stonith" else None


def _is_service(agent: AgentReference, directories: AgentDirectories, unit_files: UnitFiles) -> bool:
    """Return whether an agent without parameters exists: a program of its class, a unit file, or either of them."""
    if agent.standard not in UNITS:
        return False
    if agent.standard in ("service", "systemd") and unit_files.exists(agent.type):
        return True
    script = directories.find(replace(agent, standard="lsb") if agent.standard == "service" else agent)
    return script is not None and os.access(script, os.X_OK)


def find_agent(
    agent: AgentReference, directories: AgentDirectories, fence_directories: FenceDirectories
) -> Path | None:
    """Return an agent's program; None when there is none, or none that can be executed."""
    path = _find(agent, directories, fence_directories)
    return path if path is not None and os.access(path, os.X_OK) else None


def why_not_executed(path: Path, error: OSError) -> str:
    """Say why a program cannot be executed, and what to do; of a missing interpreter the system says less."""
    if isinstance(error, PermissionError) and path.is_file() and not os.access(path, os.X_OK):
        return f"it is not executable: chmod 755 {path}"
    if isinstance(error, TimeoutError):
        return str(error)
    try:
        with path.open("rb") as file:
            first = file.readline(INTERPRETER_BYTES).decode(errors="replace").rstrip("\n")
    except OSError:
        return error.strerror or str(error)
    if not first.startswith("#!"):
        return "its first line names no interpreter, as #!/bin/sh does"
    if first.endswith("\r"):
        return "its lines end as on Windows, so the kernel finds no interpreter of that name"
    if isinstance(error, FileNotFoundError):
        return f"its interpreter {first[2:].strip()} is not on this machine"
    return error.strerror or str(error)


def metadata_text(agent: AgentReference, path: Path, directories: AgentDirectories) -> str:
    """Return an agent's output for `meta-data`. Raises OSError, also where it hangs and has said nothing."""
    if agent.standard == "stonith" and is_plugin(agent.type):
        return _plugin_metadata(agent, path, directories)
    command = [str(path), "meta-data"] if agent.standard == "ocf" else [str(path), "-o", "metadata"]
    printed, code = _answer(command, environment_of(agent, directories))
    if code is None and not printed.strip():
        raise TimeoutError(f"it does not end, and printed nothing in {METADATA_TIMEOUT_MS // 1000} s")
    return printed


def _plugin_metadata(agent: AgentReference, path: Path, directories: AgentDirectories) -> str:
    """Return metadata of a plugin of cluster-glue; one that does not end in time is asked nothing more."""
    answers: dict[str, str] = {}
    environment = plugin_environment(agent.type, environment_of(agent, directories), FenceDirectories(()))
    for question in QUESTIONS:
        printed, code = _answer([str(path), question], environment)
        if code is None:
            break
        if code == 0:
            answers[question] = printed
    return plugin_metadata(agent.type, answers)


def validated(
    agent: AgentReference, path: Path, parameters: Mapping[str, str], directories: AgentDirectories
) -> tuple[str, int | None]:
    """Have an OCF agent judge parameters (`validate-all`); return its output and its exit code. Raises OSError.

    None: it did not end in time, or printed more than METADATA_LIMIT.
    """
    given = {f"OCF_RESKEY_{name}": value for name, value in parameters.items()}
    return _answer([str(path), "validate-all"], {**environment_of(agent, directories), **given}, subprocess.STDOUT)


def _ask(agent: AgentReference, path: Path, directories: AgentDirectories) -> AgentFacts:
    """Return an agent's facts; empty ones when it gives none."""
    tools = missing_tools(path, directories.shims) if agent.standard == "ocf" else ()
    try:
        metadata = read_agent_metadata(metadata_text(agent, path, directories), agent)
        return replace(metadata, missing_tools=tools).facts()
    except (OSError, MetadataError):
        return AgentFacts()


def _answer(
    command: Sequence[str], environment: Mapping[str, str], errors: int = subprocess.DEVNULL
) -> tuple[str, int | None]:
    """Return a program's output, at most METADATA_LIMIT bytes, and its exit code; its process group ends with it."""
    deadline = time.monotonic() + METADATA_TIMEOUT_MS / 1000
    answer = b""
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
        start_new_session=True,
    ) as asked:  # fmt: skip
        assert asked.stdout is not None
        try:
            while len(answer) < METADATA_LIMIT and time.monotonic() < deadline:
                has_ended = asked.poll() is not None
                if not select.select([asked.stdout], [], [], LOOK_AGAIN_S)[0]:
                    if has_ended:  # A process that it left behind holds the pipe.
                        break
                    continue
                part = os.read(asked.stdout.fileno(), METADATA_LIMIT)
                if not part:
                    break
                answer += part
            # It may print without end: once it has printed too much, the rest is ignored.
            while asked.poll() is None and len(answer) < METADATA_LIMIT and time.monotonic() < deadline:
                time.sleep(END_LOOK_S)
            code = asked.poll()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(asked.pid, signal.SIGKILL)
    return answer.decode(errors="replace"), code


def environment_of(agent: AgentReference, directories: AgentDirectories) -> Mapping[str, str]:
    """Return an agent's environment for `meta-data` (agents need OCF_ROOT to find their shell functions)."""
    return {
        "PATH": f"{directories.shims}:{os.environ.get('PATH', os.defpath)}",
        "LANG": "C.UTF-8",
        "OCF_ROOT": str(directories.ocf_root),
        "OCF_RA_VERSION_MAJOR": "1",
        "OCF_RA_VERSION_MINOR": "1",
        "OCF_RESOURCE_INSTANCE": "survey",
        "OCF_RESOURCE_TYPE": agent.type,
        "OCF_RESOURCE_PROVIDER": agent.provider or "",
        "OCF_RESKEY_crm_feature_set": FEATURE_SET,
        "HA_SBIN_DIR": str(directories.shims),
    }
