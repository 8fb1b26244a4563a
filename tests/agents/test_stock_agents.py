"""Stock agents publish with this cluster's tools, unchanged; skipped where none is installed."""

import subprocess
from pathlib import Path

import pytest

from tests.agents.answering_daemon import AnsweringDaemon

STOCK = Path("/usr/lib/ocf/resource.d/pacemaker")
TOOLS = Path(__file__).parents[2] / "shims"

pytestmark = pytest.mark.skipif(not (STOCK / "HealthCPU").exists(), reason="no stock agents are installed")


def run(daemon: AnsweringDaemon, directory: Path, agent: str, action: str, **parameters: str) -> int:
    environment = {
        "PATH": f"{TOOLS}:/usr/sbin:/usr/bin:/sbin:/bin",
        "HA_SBIN_DIR": str(TOOLS),
        "HA_RSCTMP": str(directory),
        "HA_LOGFACILITY": "none",
        "HA_logfacility": "none",
        "HA_use_logd": "no",
        "OCF_ROOT": "/usr/lib/ocf",
        "OCF_RESOURCE_INSTANCE": "stock",
        "OCF_RESOURCE_TYPE": agent,
        "OCF_RESOURCE_PROVIDER": "pacemaker",
        "OCF_RESKEY_CRM_meta_on_node": "n2",
        "OCF_RESKEY_CRM_meta_timeout": "20000",
        "OCF_RESKEY_crm_feature_set": "3.19.0",
        "HACLUSTERD_NODE": "n2",
        "HACLUSTERD_SOCKET": str(daemon.socket),
        **{f"OCF_RESKEY_{name}": value for name, value in parameters.items()},
    }
    done = subprocess.run(
        [STOCK / agent, action], env=environment, capture_output=True, text=True, timeout=60, check=False, cwd="/"
    )
    return done.returncode


def test_health_of_processors(daemon: AnsweringDaemon, tmp_path: Path) -> None:
    limits = {"yellow_limit": "-2", "red_limit": "-1", "state": str(tmp_path / "state")}
    assert run(daemon, tmp_path, "HealthCPU", "start", **limits) == 0
    assert run(daemon, tmp_path, "HealthCPU", "monitor", **limits) == 0
    assert daemon.attributes("n2") == {"#health-cpu": "green"}
    sick = {**limits, "yellow_limit": "101", "red_limit": "101"}
    assert run(daemon, tmp_path, "HealthCPU", "monitor", **sick) == 0
    assert daemon.attributes("n2") == {"#health-cpu": "red"}


def test_an_attribute_while_a_resource_runs(daemon: AnsweringDaemon, tmp_path: Path) -> None:
    given = {"name": "site", "active_value": "here", "inactive_value": "away", "state": str(tmp_path / "state")}
    assert run(daemon, tmp_path, "attribute", "start", **given) == 0
    assert daemon.attributes("n2") == {"site": "here"}
    assert run(daemon, tmp_path, "attribute", "monitor", **given) == 0
    assert run(daemon, tmp_path, "attribute", "stop", **given) == 0
    assert daemon.attributes("n2") == {"site": "away"}


def test_a_promotable_resource(daemon: AnsweringDaemon, tmp_path: Path) -> None:
    given = {"state": str(tmp_path / "state"), "CRM_meta_promotable": "true", "CRM_meta_master_max": "1"}
    assert run(daemon, tmp_path, "Stateful", "start", **given) == 0
    assert daemon.attributes("n2") == {"master-stock": "5"}
    assert run(daemon, tmp_path, "Stateful", "promote", **given) == 0
    assert run(daemon, tmp_path, "Stateful", "monitor", **given) == 8
    assert daemon.attributes("n2") == {"master-stock": "10"}
    assert run(daemon, tmp_path, "Stateful", "demote", **given) == 0
    assert daemon.attributes("n2") == {"master-stock": "5"}
    assert run(daemon, tmp_path, "Stateful", "stop", **given) == 0
    assert daemon.attributes("n2") == {}
