"""A CIB of an older schema says the same to us as what Pacemaker's own upgrade makes of it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from haclusterd.formats.cib_xml.document import read_configuration
from haclusterd.model.configuration import Configuration, effective
from haclusterd.model.properties import ClusterProperties
from tests.written_cibs import cib, pair

CIBADMIN = shutil.which("cibadmin")

OLD = cib(
    properties=pair("default-resource-stickiness", "7") + pair("default-action-timeout", "8s")
    + pair("is-managed-default", "true") + pair("stonith-action", "poweroff") + pair("no_quorum_policy", "ignore")
    + pair("crmd-integration-timeout", "3min") + pair("stonith-enabled", "true"),
    nodes='<node id="1" uname="n1" type="normal"/><node id="2" uname="n2" type="ping"/>',
    resources='<primitive id="f" class="stonith" type="fence_x"><instance_attributes id="fi">'
    f'{pair("pcmk_reboot_cmd", "off")}{pair("pcmk_list_cmd", "x")}</instance_attributes></primitive>'
    '<primitive id="a" class="ocf" provider="pacemaker" type="Dummy"><operations>'
    '<op id="m" name="monitor" interval="10" requires="nothing"/><op id="s" name="start" interval="0" '
    'requires="quorum"/><op id="p" name="promote" interval="0" requires="fencing"/></operations></primitive>'
    f'<master id="ms"><meta_attributes id="mm">{pair("master-max", "2")}</meta_attributes>'
    '<primitive id="b" class="ocf" provider="pacemaker" type="Stateful"><operations><op id="bs" name="start" '
    f'interval="0"><meta_attributes id="bsm">{pair("requires", "quorum")}</meta_attributes></op></operations>'
    '</primitive></master><primitive id="c" class="ocf" provider="pacemaker" type="Dummy"><meta_attributes id="cm">'
    '<nvpair id="cr" name="requires" value="nothing"/></meta_attributes><operations>'
    '<op id="cs" name="start" interval="0" requires="quorum"/></operations></primitive>',
    root='validate-with="pacemaker-2.10" epoch="1" num_updates="0" admin_epoch="0" have-quorum="1" dc-uuid="1"',
)  # fmt: skip


def values_in(text: str) -> dict[str, dict[str, str]]:
    """Return every name with its value, by where it is said."""
    held: Configuration = read_configuration(text, "cib.xml").configuration
    found = {
        "properties": ClusterProperties(held).written,
        "resource defaults": effective(held.resource_defaults),
        "operation defaults": effective(held.operation_defaults),
    }
    for resource in held.resources.values():
        found[f"{resource.id} meta"] = effective(resource.meta)
        found[f"{resource.id} parameters"] = effective(resource.parameters)
    return found


@pytest.mark.skipif(CIBADMIN is None, reason="cibadmin is not installed")
def test_an_old_cib_is_read_as_pacemaker_upgrades_it(tmp_path: Path) -> None:
    assert CIBADMIN is not None
    path = tmp_path / "cib.xml"
    path.write_text(OLD)
    environment = {**os.environ, "CIB_file": str(path)}
    command = [CIBADMIN, "--upgrade", "--force"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "pacemaker-2.10" not in path.read_text()
    assert values_in(OLD) == values_in(path.read_text())
