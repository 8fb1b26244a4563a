"""`crm ra`: what this machine's agents are, in the words of crmsh; agents that print nonsense or hang are named."""

from pathlib import Path

import pytest

from haclusterd.adapters.agents import survey as agent_survey
from haclusterd.cli.render.answers import render_data
from haclusterd.cli.render.terminal import Screen
from haclusterd.entry_points.crm_agent import COMMANDS as TRIALS
from haclusterd.entry_points.crm_agents import COMMANDS
from tests.unit.adapters.agents.plugin_stand_in import stand_in

AGENT = """#!/bin/sh
case $1 in
meta-data) cat <<END
<?xml version="1.0"?>
<resource-agent name="web"><version>1.1</version><longdesc lang="en">
  Serves pages &amp; more.

  Slowly.
</longdesc><shortdesc lang="en">A web server</shortdesc><parameters>
<parameter name="port" required="1" unique="1"><longdesc>Where it listens.</longdesc><shortdesc>TCP port</shortdesc>
<content type="integer" default=""/></parameter>
<parameter name="mode"><shortdesc>How</shortdesc><content type="select" default="fast"><option value="fast"/>
<option value="safe"/></content></parameter></parameters>
<actions><action name="start" timeout="20s"/><action name="monitor" timeout="10s" interval="5s"/></actions>
</resource-agent>
END
;;
validate-all) [ "$OCF_RESKEY_port" = 80 ] && exit 0; echo "ocf-exit-reason:port $OCF_RESKEY_port is taken" >&2; exit 6;;
esac
"""
BROKEN = {"silent": "exit 0", "odd": "echo '<a>'", "slow": "sleep 60 & wait"}


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two providers with an agent each, and agents that are broken."""
    broken = {f"other/{name}": f"#!/bin/sh\n{text}\n" for name, text in BROKEN.items()}
    programs = {"acme/web": AGENT, "other/web": AGENT, **broken}
    for name, text in programs.items():
        path = tmp_path / "ocf" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "ocf" / "other" / "notes.txt").write_text("no agent")
    plugin = tmp_path / "plugins" / "acme"
    plugin.parent.mkdir()
    plugin.write_text(stand_in(tmp_path / "log"))
    plugin.chmod(0o755)
    monkeypatch.setenv("STONITH_PLUGIN_PATH", str(plugin.parent))
    monkeypatch.setenv("OCF_RA_PATH", str(tmp_path / "ocf"))


def printed(command: str, **arguments: object) -> str:
    """Return what a command shows, and of a refusal its message."""
    response = COMMANDS[command](arguments)
    reports = [f"{each.message}" for each in response.reports]
    assert bool(response.exit) is any(each.severity == "error" for each in response.reports)
    return "\n".join([*reports, *render_data(Screen(), response.data)])


def test_classes_and_lists() -> None:
    assert "ocf / acme haclusterd other" in printed("classes").splitlines()
    assert printed("list", **{"class": "ocf", "provider": "acme"}) == "web"
    assert printed("list", **{"class": "ocf", "provider": "other"}).split() == ["odd", "silent", "slow", "web"]
    assert "http-service" in printed("list", **{"class": "ocf"})
    assert "fence_local" in printed("list", **{"class": "stonith"})
    assert "PROVIDER" in printed("list", **{"class": "ocf", "provider": "acem"})
    assert "has none" in printed("list", **{"class": "systemd", "provider": "acme"})
    assert printed("providers", type="web").split() == ["acme", "other"]
    assert "no agent nothing" in printed("providers", type="nothing")


def test_what_an_agent_tells_of_itself() -> None:
    assert printed("info", agent="ocf:acme:web") == "\n".join([
        "A web server (ocf:acme:web)", "", "Serves pages & more.", "", "Slowly.", "",
        "Parameters (*: required, []: default):", "",
        "port* (integer): TCP port", "    Where it listens.", "",
        "mode (select: fast, safe, [fast]): How", "",
        "Operations' defaults (advisory minimum):", "",
        "    start         timeout=20s", "    monitor       timeout=10s interval=5s",
    ])  # fmt: skip
    assert printed("info", agent="web").startswith("A web server (ocf:acme:web)")
    assert "(stonith:fence_local)" in printed("info", agent="stonith:fence_local")


def test_external_plugins_of_cluster_glue_are_agents_of_class_stonith() -> None:
    assert [name for name in printed("list", **{"class": "stonith"}).split() if "/" in name] == ["external/acme"]
    for name in ("stonith:external/acme", "external/acme"):
        shown = printed("info", agent=name).splitlines()
        assert shown[:5] == ["Stand-in & device (stonith:external/acme)", "", "It switches", "nothing.", ""]
        assert "hostlist* (string): Hosts" in shown
        assert "reset_rc (string):" in [line.strip() for line in shown]
    assert "did you mean stonith:external/acme?" in [
        each.remedy for each in COMMANDS["info"]({"agent": "stonith:external/acmee"}).reports
    ]


def test_only_agents_of_class_ocf_are_tried() -> None:
    for agent in ("stonith:fence_local", "stonith:external/acme"):
        [refusal] = TRIALS["info"]({"agent": agent}).reports
        assert "only agents of class ocf" in refusal.message


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("ocf:other:silent", "it printed nothing"), ("ocf:other:odd", "not XML"),
        ("ocf:acme:wbe", "there is no agent ocf:acme:wbe"), ("nothing", "there is no agent nothing"),
        ("ocf:../acme:web", "there is no agent"), ("a:b:c:d", "CLASS:PROVIDER:TYPE"),
        ("systemd:sshd", "units and init scripts take no parameters"),
    ],
)  # fmt: skip
def test_an_agent_that_is_not_there_or_says_nothing_is_named(agent: str, expected: str) -> None:
    assert expected in printed("info", agent=agent)


def test_parameters_are_judged_by_the_agent() -> None:
    assert "finds no fault" in printed("validate", agent="ocf:acme:web", parameters=["port=80"])
    output = printed("validate", agent="ocf:acme:web", parameters=["port=81"])
    assert "exit code 6 (not configured)" in output
    assert "port 81 is taken" in output
    assert "write NAME=VALUE" in printed("validate", agent="ocf:acme:web", parameters=["port"])
    assert "class ocf" in printed("validate", agent="stonith:fence_local")


def test_an_agent_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_survey, "METADATA_TIMEOUT_MS", 300)
    assert "it does not end, and printed nothing" in printed("info", agent="ocf:other:slow")
    assert "did not end in time" in printed("validate", agent="ocf:other:slow")
