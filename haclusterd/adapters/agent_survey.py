"""What agents of this machine say of themselves, read by a program that runs no daemon.

Only `meta-data` is asked of an agent, which changes nothing (OCF Resource Agent API 1.1, "meta-data"). An agent that
does not answer in time, or answers with something else, counts as installed with nothing known of it.
"""

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from haclusterd.adapters.agent_metadata import MetadataError, read_agent_metadata
from haclusterd.adapters.agent_tools import missing_tools
from haclusterd.adapters.agents_ocf import FEATURE_SET, METADATA_TIMEOUT_MS, AgentDirectories
from haclusterd.model.agents import AgentFacts
from haclusterd.model.ids import AgentReference

AT_ONCE = 4
"""Agents that are asked at the same time."""


def survey(
    agents: Iterable[AgentReference], directories: AgentDirectories, fence_directories: Sequence[Path]
) -> Mapping[str, AgentFacts]:
    """Return what is known of those of these agents that are installed here, by `str(AgentReference)`."""
    found = [(agent, path) for agent in agents if (path := _find(agent, directories, fence_directories)) is not None]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        facts = pool.map(lambda pair: _ask(pair[0], pair[1], directories), found)
        return {str(agent): known for (agent, _), known in zip(found, facts, strict=True)}


def _find(agent: AgentReference, directories: AgentDirectories, fence_directories: Sequence[Path]) -> Path | None:
    if agent.standard == "ocf":
        return directories.find(agent)
    if agent.standard == "stonith" and agent.type.startswith("fence_") and "/" not in agent.type:
        return next((each / agent.type for each in fence_directories if (each / agent.type).is_file()), None)
    return None


def _ask(agent: AgentReference, path: Path, directories: AgentDirectories) -> AgentFacts:
    """Return an agent's facts; empty ones when it does not tell them."""
    action = "meta-data" if agent.standard == "ocf" else "metadata"
    try:
        answer = subprocess.run(
            [str(path), action] if agent.standard == "ocf" else [str(path), "-o", action],
            env=_environment(agent, directories), stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=METADATA_TIMEOUT_MS / 1000,
        )  # fmt: skip
        facts = read_agent_metadata(answer.stdout.decode(errors="replace"), agent).facts()
        return replace(facts, missing_tools=missing_tools(path, directories.shims))
    except (OSError, subprocess.TimeoutExpired, MetadataError):
        return AgentFacts()


def _environment(agent: AgentReference, directories: AgentDirectories) -> Mapping[str, str]:
    """Return what an agent is given with `meta-data` (agents need OCF_ROOT to find their shell functions)."""
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
