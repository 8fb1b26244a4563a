"""Services under stock agents: their death is an event, long before their monitor is due (safety.md §8)."""

import os
import shutil
import signal
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from haclusterd.agents.process_table import list_pids, read_arguments, read_marks, read_stat
from haclusterd.entry_points.free_ports import free_ports
from tests.control_groups import delegated, living_in
from tests.processes.daemons import Scenario, is_watched, kill

pytestmark = [pytest.mark.processes, pytest.mark.slow]

STOCK = Path("/usr/lib/ocf/resource.d/heartbeat")
MONITOR_S = 60
"""How long the death would go unnoticed."""
NOTICED_WITHIN_S = 15.0

NGINX = """daemon on;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ }}
http {{ access_log off; server {{ listen 127.0.0.1:{port}; location / {{ return 200 "here"; }} }} }}
"""
APACHE = """ServerRoot {directory}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {directory}/apache.pid
ErrorLog {directory}/error.log
DocumentRoot {directory}/www
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
"""
APACHE_MODULES = Path("/usr/lib/apache2/modules")


def needs(agent: str, program: str) -> pytest.MarkDecorator:
    found = (STOCK / agent).exists() and shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is not None
    return pytest.mark.skipif(not found or os.geteuid() != 0, reason=f"needs root, {agent} and {program}")


@pytest.fixture
def group() -> Iterator[Path | None]:
    """A delegated control group to live in, where there can be one."""
    try:
        with delegated(f"haclusterd-test-{uuid.uuid4().hex[:8]}") as made, living_in(made):
            yield made
    except OSError:
        yield None


def pids_of(word: str) -> list[int]:
    """Return the processes that have a word in an argument, and their children."""
    found = {pid for pid in list_pids() if any(word in argument for argument in read_arguments(pid))} - {os.getpid()}
    stats = [stat for pid in list_pids() if (stat := read_stat(pid)) is not None and not stat.is_dead]
    return sorted(stat.pid for stat in stats if stat.pid in found or stat.parent in found)


def check_death_is_noticed(
    scenario: Scenario, group: Path | None, primitive: str, word: str, *, keeps_marks: bool
) -> None:
    """Run a stock service, kill its processes, and see it run again long before its monitor is due."""
    scenario.form()
    scenario.configure(
        f"primitive power stonith:fence_local params nodes_dir={scenario.cluster.nodes_directory}",
        f"{primitive} op monitor interval={MONITOR_S}s timeout=20s op start timeout=40s op stop timeout=40s",
    )
    try:
        scenario.until("it to run", lambda: bool(pids_of(word)))
        scenario.settle()
        first = pids_of(word)
        has_marks = any("OCF_RESOURCE_INSTANCE" in read_marks(pid) for pid in first)
        if group is None and not has_marks:
            pytest.skip("it wipes its environment, and there are no control groups here")
        assert has_marks is keeps_marks
        brains = [scenario.brain(name).pid for name in scenario.cluster.names]
        scenario.until("it to be watched", lambda: any(is_watched(brain, first) for brain in brains))
        end(first)
        scenario.until("it to run again", lambda: bool(set(pids_of(word)) - set(first)), NOTICED_WITHIN_S)
        assert any("event.service-died resource=app" in scenario.log(name) for name in scenario.cluster.names)
    finally:
        scenario.close()
        end(pids_of(word))  # What has no environment is known to be a node's by nobody.


def end(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


@needs("nginx", "nginx")
def test_nginx_which_wipes_its_environment(group: Path | None, scenario: Scenario, tmp_path: Path) -> None:
    [port] = free_ports("127.0.0.1", 1)
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(NGINX.format(directory=tmp_path, port=port))
    primitive = f"primitive app ocf:heartbeat:nginx params configfile={configuration} port={port}"
    check_death_is_noticed(scenario, group, primitive, str(configuration), keeps_marks=False)


@needs("apache", "apache2")
def test_apache(group: Path | None, scenario: Scenario, tmp_path: Path) -> None:
    [port] = free_ports("127.0.0.1", 1)
    configuration = tmp_path / "apache.conf"
    configuration.write_text(APACHE.format(directory=tmp_path, port=port, modules=APACHE_MODULES))
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "status.html").write_text("all is well\n")
    primitive = (
        f"primitive app ocf:heartbeat:apache params configfile={configuration} httpd=/usr/sbin/apache2 "
        f"statusurl=http://127.0.0.1:{port}/status.html testregex=well"
    )
    check_death_is_noticed(scenario, group, primitive, str(configuration), keeps_marks=True)
