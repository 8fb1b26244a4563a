"""A call of one of Pacemaker's tools on a file, answered by this process: no daemon, no cluster.

The tools themselves import next to nothing (`haclusterd.agents.cluster_tool`), and pass such a call on to `crm`. A file
that CIB_file names is asked and changed as `crm --cib-file` does it; crm_simulate reads the one that its call names.
"""

from collections.abc import Mapping, Sequence

from haclusterd.agents.cluster_tool import ToolError, print_answer, texts
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.without_cluster import ask_without_cluster
from haclusterd.commands.tools import tools
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Options, Request, Response


def main(tool: str, words: Sequence[str], environment: Mapping[str, str], author: str) -> int:
    """Answer a call of a tool in somebody's name (`user@host`), and return its exit status."""
    try:
        response = _asked(tool, words, environment, author)
        errors = [each.message for each in response.errors]
        return print_answer(tool, words, response.data, errors, response.exit)
    except ToolError as problem:
        return print_answer(tool, words, {"out": "", "err": f"{tool}: {problem}\n"}, [], problem.status)


def _asked(tool: str, words: Sequence[str], environment: Mapping[str, str], author: str) -> Response:
    (verb,) = tools.VERBS
    arguments: dict[str, Json] = {"tool": tool, "words": list(words), **dict(texts(tool, words))}
    arguments |= {"instance": instance} if (instance := environment.get("OCF_RESOURCE_INSTANCE")) else {}
    file = environment.get("CIB_file")
    if not file:
        return ask_without_cluster(verb, arguments, Options())
    return OfflineClient(file, author).call(Request("", verb.name, arguments), lambda _: None)
