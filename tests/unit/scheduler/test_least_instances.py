"""How many instances of a clone must run before what is ordered after it starts (`clone-min`)."""

import pytest

from tests.scheduled_clusters import ScheduledCluster, configured

NODES = ("n1", "n2", "n3")


@pytest.mark.parametrize(
    ("meta", "banned", "starts"),
    [
        ("", 1, True),
        ("", 3, False),
        ("clone-min=2", 1, True),
        ("clone-min=2", 2, False),
        ("clone-min=3", 0, True),
        ("clone-min=3", 1, False),
    ],
)
def test_a_service_waits_for_as_many_instances_as_are_needed(meta: str, banned: int, *, starts: bool) -> None:
    """Without `clone-min` one that runs where it can is enough: "Pacemaker Explained", "Clone Options"."""
    cluster = ScheduledCluster.of(NODES)
    text = "primitive power stonith:fence_dummy\nprimitive web ocf:heartbeat:Dummy\nprimitive db ocf:heartbeat:Dummy\n"
    text += f"clone dbs db meta interleave=true {meta}\norder db-first Mandatory: dbs web\n"
    text += "".join(f"location not-{node} dbs -inf: {node}\n" for node in NODES[:banned])
    cluster.configure(configured(text))
    cluster.settle()
    assert any(resource == "web" for resource, _ in cluster.running) is starts
