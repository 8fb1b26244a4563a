"""What faults set for a while is taken back, wherever it is kept."""

import pytest

from haclusterd.model.configuration import effective
from haclusterd.model.ids import ResourceId
from haclusterd.simulator.faults.settings import setting
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.scenario import Cluster


@pytest.mark.parametrize(("owner", "kept_at"), [("db", "db"), ("pg", "pgs"), ("pgs", "pgs")])
def test_a_meta_attribute_is_taken_back_also_from_the_clone_that_keeps_it(owner: str, kept_at: str) -> None:
    cluster = Cluster().form()
    cluster.configure(configurations.promotable(cluster.names))
    cluster.until(cluster.is_settled, 20_000, "settled")

    def is_kept() -> bool:
        return "requires" in effective(cluster.cib.configuration.resources[ResourceId(kept_at)].meta)

    end = setting(cluster.world.chance("drawn"), owner, "meta", "requires", "quorum").begin(cluster)
    cluster.until(is_kept, 10_000, "it is kept there")
    assert end is not None
    end()
    cluster.until(lambda: not is_kept(), 10_000, "it is taken back")
    cluster.until(cluster.is_settled, 20_000, "settled")
