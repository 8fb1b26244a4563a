"""What the modules are asked: one change after the other, and input that they must refuse."""

from collections.abc import Sequence
from typing import Any

from haclusterd.model.records import dataclass, field

SERVICE = "primitive svc ocf:haclusterd:dummy op monitor interval=10s timeout=20s\n"
OTHER = "primitive extra ocf:haclusterd:dummy op monitor interval=10s timeout=20s\n"
POLICY = """\
resources:
  - primitive: ${NAME}
    agent: ocf:haclusterd:dummy
    operations:
      - monitor: {interval: 10s, timeout: 20s}
"""


@dataclass(frozen=True)
class Step:
    """One task: asked in check mode, done, done again, and asked again."""

    module: str
    arguments: dict[str, Any] = field(default_factory=dict)
    changes: bool = True
    """Whether it changes something the first time."""

    @property
    def name(self) -> str:
        shown = {key: value for key, value in self.arguments.items() if key in ("name", "state", "prune", "section")}
        return " ".join((self.module, *map(str, shown.values())))


def steps(power: str) -> Sequence[Step]:
    """Return the changes, in order; power: the statement of a fence device."""
    site = f"{power}\n{SERVICE}"
    return (
        Step("configuration", {"text": site + OTHER, "prune": "site", "wait": "60s"}),
        Step("configuration", {"text": site + OTHER.replace("20s", "30s"), "prune": "site", "wait": "60s"}),
        Step("configuration", {"text": site, "prune": "site", "force": True, "wait": "60s"}),
        Step("configuration", {"text": POLICY, "format": "yaml", "variables": {"NAME": "third"}, "wait": "60s"}),
        Step("configuration", {"text": "# nothing\n"}, changes=False),
        Step("property", {"properties": {"fencing-timeout": "50s", "maintenance-mode": False}}),
        Step("property", {"properties": {"resource-stickiness": 100}, "section": "rsc_defaults"}),
        Step("property", {"properties": {"timeout": "25s"}, "section": "op_defaults"}),
        Step("node", {"name": "n3", "state": "standby", "wait": "60s"}),
        Step("node", {"name": "n3", "state": "online", "wait": "60s"}),
        Step("node", {"name": "n2", "state": "maintenance"}),
        Step("node", {"name": "n2", "state": "ready"}),
        Step("node", {"name": "n1", "state": "online"}, changes=False),
        Step("resource", {"name": "svc", "state": "stopped", "wait": "60s"}),
        Step("resource", {"name": "svc", "state": "started", "wait": "60s"}),
        Step("resource", {"name": "svc", "state": "moved", "node": "n3", "wait": "60s"}),
        Step("resource", {"name": "svc", "state": "moved", "node": "n2", "wait": "60s"}),
        Step("resource", {"name": "svc", "state": "unmanaged"}),
        Step("resource", {"name": "svc", "state": "managed"}),
        Step("resource", {"name": "svc", "state": "maintenance"}),
        Step("resource", {"name": "svc", "state": "no_maintenance"}),
        Step("resource", {"name": "svc", "state": "cleaned"}, changes=False),
        Step("info", {"gather": ["status", "nodes", "resources", "properties", "configuration"]}, changes=False),
        Step("configuration", {"text": power + "\n", "prune": "site", "force": True, "wait": "60s"}),
    )


@dataclass(frozen=True)
class Refused:
    """Input that is refused."""

    module: str
    arguments: dict[str, Any]
    place: str
    """What the message must name: where, or of what."""
    remedy: str
    """What it must advise."""


REFUSED = (
    Refused("configuration", {"text": SERVICE + "property foo-bar=7\n"}, "text:2:10: ", "get_property"),
    Refused("configuration", {"text": "primitive\n"}, "text:1:1: ", "crm help configure"),
    Refused("configuration", {"text": "resources: [1", "format": "yaml"}, "text:1", "("),
    Refused("configuration", {"text": SERVICE, "prune": "no tag"}, "'no tag'", "("),
    Refused("configuration", {"file": "/nonexistent/site.crm"}, "/nonexistent/site.crm", "(name a file"),
    Refused("configuration", {"text": "x", "file": "/y"}, "text|file", "mutually exclusive"),
    Refused("configuration", {}, "text, file", "one of the following is required"),
    Refused("node", {"name": "n9", "state": "standby"}, "'n9'", "n1, n2, n3"),
    Refused("node", {"name": "n1", "state": "off"}, "state", "must be one of: online, standby"),
    Refused("resource", {"name": "nothing", "state": "stopped"}, "'nothing'", "(one of: "),
    Refused("resource", {"name": "power", "state": "promoted"}, "power", "promotable=true"),
    Refused("resource", {"name": "power", "state": "moved"}, "node", "state is moved but all of"),
    Refused("resource", {"name": "power", "state": "stopped", "node": "n1"}, "node: ", "leave node out"),
    Refused("resource", {"name": "power", "state": "moved", "node": "n9"}, "'n9'", "n1, n2, n3"),
    Refused("property", {"properties": {"fencing-timeout": "soon"}}, "fencing-timeout", "30s, 500ms"),
    Refused("property", {"properties": {"no-such": 1}}, "no-such", "get_property"),
    Refused("property", {"properties": {}}, "properties: ", "at least one"),
    Refused("info", {"gather": ["weather"]}, "gather", "one or more of: status"),
    Refused("info", {"crm": "/nonexistent/crm"}, "/nonexistent/crm", "(install haclusterd there"),
    Refused("info", {"socket": "/nonexistent/socket", "url": None, "token": None}, "/nonexistent/socket", "systemctl"),
    Refused("info", {"url": "http://127.0.0.1:1", "token": "x", "socket": None}, "127.0.0.1:1 ", "systemctl status"),
    Refused("info", {"url": "{{ url }}", "token": "wrong", "socket": None}, "token", "crm api token add"),
    Refused("info", {"url": "{{ url }}", "socket": None, "token": None}, "url, token", "required together"),
)
"""Asked by crm, unless they say a URL."""
