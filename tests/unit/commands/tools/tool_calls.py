"""Calls of Pacemaker's tools on clusters that are made for a test."""

import shlex

from haclusterd.model.json_value import Json
from haclusterd.model.requests import Request
from tests.administered_clusters import Cluster, ClusterClient


def arguments(line: str, text: str = "") -> dict[str, Json]:
    tool, *words = shlex.split(line)
    return {"tool": tool, "words": words, "node": "n1", "instance": "db:0", **({"text": text} if text else {})}


def run(cluster: Cluster, line: str, text: str = "") -> tuple[int, str, str]:
    """Call a tool and apply what it proposes; return its exit status and what it prints."""
    answer = ClusterClient(cluster).call(Request("1", "tool.run", arguments(line, text)), lambda _: None)
    if not isinstance(answer.data, dict):
        return answer.exit, "", "; ".join(each.message for each in answer.reports if each.severity == "error")
    return answer.exit, str(answer.data["out"]), str(answer.data["err"])
