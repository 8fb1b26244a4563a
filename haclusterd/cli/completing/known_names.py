"""Where completion gets names from: the cluster or file that answers, changes that wait, and this machine's agents.

What was asked counts until `forget`, so a line costs one question of each kind. Nothing is shown, also when nobody
answers.
"""

import re
from collections.abc import Sequence

from haclusterd.cli.render.fields import Fields, fields, text, texts
from haclusterd.cli.session import Session
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Options, Request

_PRIMITIVE = re.compile(r"^(?:primitive|rsc_template) (\S+) (\S+)", re.MULTILINE)
_RESOURCES = ("primitive", "group", "clone", "ms", "master", "bundle")
_OBJECTS = (*_RESOURCES, "rsc_template", "tag", "location", "colocation", "order", "rsc_ticket")
_PLAIN = Options()


class KnownNames:
    """Asks for one session; see `completion.Source`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._named: dict[str, Sequence[str]] = {}
        self._agents: dict[str, str] = {}
        self._described: dict[str, Fields] = {}

    def forget(self) -> None:
        """Ask again: what there is may have changed. What an agent says of itself stays."""
        self._named.clear()
        self._agents.clear()

    def names(self, kind: str) -> Sequence[str]:
        """Return the names of one kind."""
        if kind not in self._named:
            found = texts(self._ask("cluster.names", {"kind": kind}), kind)
            if kind == "agent":
                found = found or self._agents_here()
            self._named[kind] = [*found, *(name for name in self._waiting(kind) if name not in found)]
        return self._named[kind]

    def description(self, agent: str) -> Fields:
        """Return what an agent says of itself."""
        if agent not in self._described:
            self._described[agent] = self._tool("ra info", {"agent": agent})
        return self._described[agent]

    def agent_of(self, resource: str) -> str:
        """Return the agent of a primitive or template, also of one that waits for a commit."""
        if resource not in self._agents:
            asked: dict[str, Json] = {"ids": [resource]}
            shown = text(self._ask("configure.show", asked), "text") + "\n" + self._session.pending_text()
            found = next((each[2] for each in _PRIMITIVE.finditer(shown) if each[1] == resource), "")
            self._agents[resource] = ""
            self._agents[resource] = self.agent_of(found[1:]) if found.startswith("@") else found
        return self._agents[resource]

    def _waiting(self, kind: str) -> Sequence[str]:
        """Return the names in changes that wait for a commit."""
        keywords = {"resource": _RESOURCES, "object": _OBJECTS}.get(kind, ())
        words = [statement.split(None, 2) for _, statement in self._session.pending]
        return [each[1].removesuffix(":") for each in words if len(each) > 1 and each[0] in keywords]

    def _ask(self, verb: str, arguments: dict[str, Json]) -> Fields:
        """Ask without a word to the person: the cursor is in the middle of a line."""
        return fields(self._session.client.call(Request("names", verb, arguments, _PLAIN), lambda _: None).data)

    def _tool(self, name: str, arguments: dict[str, Json]) -> Fields:
        tool = self._session.tools.get(name)
        return fields(tool(arguments).data) if tool is not None else {}

    def _agents_here(self) -> list[str]:
        """Return the agents of this machine: who answers does not know of any, as with a file."""
        found = [
            f"ocf:{provider}:{name}"
            for provider in texts(self._tool("ra classes", {}), "providers")
            for name in texts(self._tool("ra list", {"class": "ocf", "provider": provider}), "types")
        ]
        return [*found, *(f"stonith:{name}" for name in texts(self._tool("ra list", {"class": "stonith"}), "types"))]
