"""Every policy that is shipped can be loaded as it is, says when to use it, and survives being written and read."""

import re
from pathlib import Path

import pytest

from haclusterd.formats.policy.yaml import dump_policy, load_policy

POLICIES = sorted((Path(__file__).parents[2] / "policies").glob("*.yaml"))


def test_there_are_policies() -> None:
    assert {path.name for path in POLICIES} >= {"demo.yaml", "cluster-defaults.yaml"}


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.name)
def test_a_policy_loads(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# "), "a policy begins with when to use it"
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "/filled/in")
    policy = load_policy(text, path.name, variables)
    assert [str(report) for report in policy.reports] == []
    assert policy.configuration is not None
    again = load_policy(dump_policy(policy.configuration), path.name)
    assert again.configuration == policy.configuration
