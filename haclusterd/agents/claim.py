"""What the cluster has given to a resource: its devices, and its place in a gang (docs/design/0015-devices.md).

A device is claimed before the start, and named by its UUID: an index would change with a reset.
"""

import os
from collections.abc import Mapping

_META = "OCF_RESKEY_CRM_meta_"


def devices(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the ids of the devices that the resource claims; none where it claims none, or runs under Pacemaker."""
    return environment.get(f"{_META}devices", "").split()


def gang(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what torchrun and programs like it want to know of their gang; empty for who is in none.

    Ranks are those of nodes: a program that runs once for each device makes its own of them.
    """
    nodes = environment.get(f"{_META}gang_nodes", "").split()
    rank = environment.get(f"{_META}gang_rank", "")
    if not nodes or not rank:
        return {}
    size = str(len(nodes))
    return {"RANK": rank, "NODE_RANK": rank, "WORLD_SIZE": size, "NNODES": size, "MASTER_ADDR": nodes[0]}
