"""Agents as users write them: `ocf:heartbeat:IPaddr2`, `systemd:nginx`, and short forms without class or provider.

A name with a path in it can be kept and shown, because old configurations have such names (`lsb:/opt/app/init`). No
adapter looks outside the directories of agents, so that it is never found.
"""

import re
from collections.abc import Collection

from haclusterd.model.ids import RUN_HERE, AgentReference

DEFAULT_PROVIDERS = ("heartbeat", "pacemaker", "haclusterd")
"""Where an agent without a provider is looked for; the first counts when it is in none (cli.md §4.4)."""

STANDARDS = (*RUN_HERE, "upstart", "nagios")
"""The classes that a configuration can name; no node runs the last two."""

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*\Z")
_FENCE_TYPE = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.@-]*/)?[A-Za-z0-9_][A-Za-z0-9_.@-]*\Z")
"""`external/ssh`: a subdirectory that Pacemaker's users know."""
_TYPE = re.compile(r"/?[A-Za-z0-9_][A-Za-z0-9_.@-]*(/[A-Za-z0-9_][A-Za-z0-9_.@-]*)*\Z")


def read_agent(text: str, known_agents: Collection[AgentReference] = ()) -> AgentReference:
    """Read `class:provider:type`, `class:type` or `type`; raise ValueError otherwise."""
    parts = text.split(":")
    standard = parts[0].lower() if len(parts) > 1 else "ocf"
    if standard not in STANDARDS:
        raise ValueError(f"unknown class of agents {parts[0]!r}: one of {', '.join(STANDARDS)}")
    if len(parts) > (3 if standard == "ocf" else 2):
        raise ValueError(f"too many parts in {text!r}")
    of_type = _FENCE_TYPE if standard == "stonith" else _TYPE
    for number, part in enumerate(parts, 1):
        if not (of_type if number == len(parts) else _PART).match(part):
            raise ValueError(f"{text!r} is not the name of an agent (write it like ocf:heartbeat:IPaddr2)")
    if standard != "ocf":
        return AgentReference(standard, None, parts[1])
    return AgentReference("ocf", parts[1] if len(parts) == 3 else _provider(parts[-1], known_agents), parts[-1])


def _provider(agent_type: str, known_agents: Collection[AgentReference]) -> str:
    having = {agent.provider for agent in known_agents if agent.standard == "ocf" and agent.type == agent_type}
    others = sorted(provider for provider in having if provider)
    return next((name for name in (*DEFAULT_PROVIDERS, *others) if name in having), DEFAULT_PROVIDERS[0])
