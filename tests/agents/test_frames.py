"""What the frames of agents in Python and in shell do for every agent that is made with them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHELL = """#!/bin/sh
. "$HACLUSTERD_AGENT_LIBRARY/haclusterd/agents/agent.sh"
ha_agent framed 1.0 "Does little"
ha_param port integer "" "Port" required
ha_param loud boolean no "Whether it is loud"
ha_param patience time 2s "How long" reloadable
ha_timeouts start=20s stop=20s monitor=20s
answered() { : >"$(ha_state end)"; while ha_process_runs "$(ha_state pid)"; do :; done; }
unanswered() { : >"$(ha_state end)"; false; }
agent_start() {
    ha_start_process "$(ha_state pid)" sh -c 'until [ -e "$1" ]; do :; done' sh "$(ha_state end)"
    ha_wait "$OCF_RESKEY_CRM_meta_ask"
}
agent_stop() { ha_stop_process "$(ha_state pid)"; }
agent_monitor() { ha_process_runs "$(ha_state pid)" || return "$HA_NOT_RUNNING"; }
agent_promote() { :; }
ha_main "$@"
"""
PYTHON = f"""#!{sys.executable} -SE
import os, sys
sys.path += [os.environ["HACLUSTERD_AGENT_LIBRARY"]]
from haclusterd.agents.ocf import Agent, Parameter
class Framed(Agent):
    name = "framed"
    parameters = (
        Parameter("port", shortdesc="Port", content="integer", is_required=True),
        Parameter("loud", shortdesc="Loud", content="boolean", default="no"),
        Parameter("patience", shortdesc="How long", content="time", default="2s", is_reloadable=True),
    )
    is_promotable = True
    def stop(self): pass
Framed().main()
"""


def run(place: Path, language: str, action: str, timeout_ms: int = 20_000, **given: str) -> tuple[int, str]:
    """Run an action; return its exit code and what it says."""
    agent = place / language
    agent.write_text({"sh": SHELL, "python": PYTHON}[language])
    agent.chmod(0o755)
    environment = {
        "PATH": "/usr/bin:/bin", "HACLUSTERD_AGENT_LIBRARY": str(ROOT), "HA_RSCTMP": str(place / "state"),
        "OCF_RESKEY_CRM_meta_timeout": str(timeout_ms),
        **{f"OCF_RESKEY_{name}": value for name, value in given.items()},
    }  # fmt: skip
    done = subprocess.run([agent, action], env=environment, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize("language", ["sh", "python"])
@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("port", "", "required parameter 'port' is missing"),
        ("port", "8o80", "port: not an integer: '8o80'"),
        ("loud", "maybe", "loud: not a boolean: 'maybe'"),
        ("patience", "soon", "patience: not a duration: 'soon'"),
        ("patience", "3 weeks", "patience: not a duration: '3 weeks'"),
    ],
)
def test_a_value_of_another_type_is_refused_by_the_declaration_alone(
    tmp_path: Path, language: str, name: str, value: str, problem: str
) -> None:
    given = {"port": "8080", name: value}
    assert run(tmp_path, language, "validate-all", **given) == (6, f"ocf-exit-reason:{problem}\n")
    # A stop is never refused for what is configured: the node would be fenced.
    assert run(tmp_path, language, "stop", **given) == (0, "")


@pytest.mark.parametrize("language", ["sh", "python"])
def test_booleans_in_any_case_and_durations_in_each_unit_are_accepted(tmp_path: Path, language: str) -> None:
    for given in ({"loud": "TRUE"}, {"loud": "No"}, *({"patience": each} for each in ("5", "500ms", "2min", "1h"))):
        assert run(tmp_path, language, "validate-all", port="8080", **given) == (0, "")


@pytest.mark.parametrize("language", ["sh", "python"])
def test_the_usage_names_the_actions_that_the_agent_has(tmp_path: Path, language: str) -> None:
    code, said = run(tmp_path, language, "begin")
    assert code == 3
    words = said.split()[-1].split("|")
    assert {"start", "stop", "monitor", "promote", "reload-agent", "validate-all", "meta-data"} <= set(words)
    assert "notify" not in words


@pytest.mark.parametrize("ask", ["answered", "unanswered"])
def test_a_start_in_shell_fails_when_its_service_has_ended_and_another_answers(tmp_path: Path, ask: str) -> None:
    code, said = run(tmp_path, "sh", "start", port="1", CRM_meta_ask=ask)
    assert (code, said.startswith("ocf-exit-reason:the service ended while starting; ")) == (1, True), said
