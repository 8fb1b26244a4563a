"""`crm_node` and `pacemakerd` as resource agents know them: who belongs to the cluster, who is there, is there quorum.

Options and output are those of Pacemaker's tools as far as the agents of resource-agents use them (crm_node(8)).
`pacemakerd` is here for its version only: stock agents ask `crm_node` for their node's name only when that tells one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from haclusterd.agents.cluster_link import ClusterError, ClusterLink

TYPE_CHECKING = False  # As typing says it; importing that takes longer than all that these tools do.
if TYPE_CHECKING:
    from typing import Any

USAGE = 64
VERSION = "Pacemaker 2.1.5"
"""Whose behaviour the tools of this room have; `OCF_RESKEY_crm_feature_set` of the agents' environment fits it."""
WORDS = {
    "-n": "name", "--name": "name", "-i": "id", "--cluster-id": "id", "-l": "list", "--list": "list",
    "-p": "partition", "--partition": "partition", "-q": "quorum", "--quorum": "quorum",
}  # fmt: skip


def main(tool: str, arguments: Sequence[str]) -> int:
    """Run one of the tools; return its exit code."""
    if tool == "pacemakerd":
        return _version(arguments)
    try:
        asked = [WORDS[argument] for argument in arguments]
    except KeyError as error:
        sys.stderr.write(f"crm_node: option {error} is not supported\n")
        return USAGE
    if not asked:
        sys.stderr.write("crm_node: nothing is asked\n")
        return USAGE
    try:
        status = {} if asked == ["name"] else _ask()
    except ClusterError as error:
        sys.stderr.write(f"crm_node: {error}\n")
        return error.status
    for what in asked:
        sys.stdout.write(_answer(what, status))
    return 0


def _version(arguments: Sequence[str]) -> int:
    if list(arguments) not in (["-$"], ["--version"]):
        sys.stderr.write("pacemakerd: only its version can be asked here\n")
        return USAGE
    sys.stdout.write(f"{VERSION}\nWritten for the tools of haclusterd\n")
    return 0


def _ask() -> Mapping[str, Any]:
    with ClusterLink() as link:
        status = link.ask("status", {})
    assert isinstance(status, dict)
    return status


def _answer(what: str, status: Mapping[str, Any]) -> str:
    name = os.environ.get("OCF_RESKEY_CRM_meta_on_node") or os.environ.get("HACLUSTERD_NODE", "")  # noqa: SIM112
    if what == "name":
        return f"{name}\n"
    if what == "quorum":
        return f"{int(bool(status['quorum']['has']))}\n"
    nodes = [(number, node["name"], node["state"] == "online") for number, node in enumerate(status["nodes"], start=1)]
    if what == "id":
        return "".join(f"{number}\n" for number, each, _ in nodes if each == name)
    if what == "list":
        return "".join(f"{number} {each} {'member' if is_there else 'lost'}\n" for number, each, is_there in nodes)
    return "".join(f"{each} " for _, each, is_there in nodes if is_there) + "\n"
