"""Inventories from Pacemaker's CIBs as texts, for tests of what the scheduler unpacks."""

from haclusterd.model.cluster import Cib
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.settings import Settings, unpack_settings
from haclusterd.scheduler.unpack.nodes import unpack_nodes
from haclusterd.scheduler.unpack.resources import unpack_resources
from tests.written_cibs import cib, read

NOW = WallTime(1_767_268_800_000)


def unpacked(cib_value: Cib, now: WallTime = NOW) -> tuple[Inventory, Settings]:
    settings = unpack_settings(cib_value.configuration, now, ScheduleOptions(is_pacemaker_compatible=True))
    return unpack_resources(cib_value, unpack_nodes(cib_value, settings), settings), settings


def inventory_of(resources: str, *, properties: str = "", more: str = "", nodes: str | None = None) -> Inventory:
    """Unpack resources of two nodes, n1 and n2, or of others."""
    given = {} if nodes is None else {"nodes": nodes}
    return unpacked(read(cib(resources=resources, properties=properties, more=more, **given)).cib)[0]


def found(inventory: Inventory, name: str) -> Resource:
    return inventory.by_id[ResourceId(name)]


def primitive(name: str, inside: str = "", agent: str = "ocf:pacemaker:Dummy", more: str = "") -> str:
    standard, provider, kind = (agent if agent.count(":") == 2 else agent.replace(":", "::")).split(":")
    given = f' provider="{provider}"' if provider else ""
    return f'<primitive id="{name}" class="{standard}"{given} type="{kind}" {more}>{inside}</primitive>'


def block(kind: str, name: str, rule: str = "", score: str = "", **pairs: str) -> str:
    given = f' score="{score}"' if score else ""
    words = "".join(f'<nvpair id="{name}-{key}" name="{key}" value="{value}"/>' for key, value in pairs.items())
    return f'<{kind} id="{name}"{given}>{rule}{words}</{kind}>'


def meta(name: str, **pairs: str) -> str:
    return block("meta_attributes", f"{name}-meta", **pairs)
