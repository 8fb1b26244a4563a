"""Alerts in CIB XML, crm text and policy YAML: what each can say, and that all say the same."""

import shutil
import subprocess
from pathlib import Path

import pytest

from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.cib_xml.document import read_configuration, write_configuration
from haclusterd.formats.crm.syntax import Arrangement, assemble, parse_script, show
from haclusterd.formats.policy.yaml import dump_policy, load_policy
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient, AttributeSet, Configuration
from haclusterd.reports.items import has_errors
from tests.written_cibs import cib

CRMSH = r"""
alert alert-1 /srv/pacemaker/pcmk_alert_sample.sh \
    to /var/log/cluster-alerts.log
alert alert-2 /srv/pacemaker/example_alert.sh \
    meta timeout=60s \
    to { /var/log/cluster-alerts.log }
alert alert-3 /srv/pacemaker/example_alert.sh \
    select fencing \
    to { /var/log/fencing-alerts.log }
"""
"""The examples of crmsh's manual."""

EVERYTHING = r"""
alert a /agent description="two words" select attributes { rack "#health" } nodes attributes colour="dark red" x=y \
    meta timeout=5s enabled=false to { "{" description=odd attributes p=1 meta timestamp-format=%s } \
    to plain attributes q=2 \
    to { $id=named "to" }
alert b /agent select attributes
alert c /agent select nodes fencing resources attributes { }
"""


def read(text: str) -> Configuration:
    script = parse_script(text, "text")
    assert not script.reports
    made = assemble(script.statements)
    assert not made.reports
    return made.configuration


def test_examples_of_crmsh() -> None:
    found = read(CRMSH).alerts
    assert found["alert-1"] == Alert(
        "alert-1", "/srv/pacemaker/pcmk_alert_sample.sh",
        recipients=(AlertRecipient("alert-1-recipient", "/var/log/cluster-alerts.log"),),
    )  # fmt: skip
    assert found["alert-2"].meta == (AttributeSet("alert-2-meta_attributes", (("timeout", "60s"),)),)
    assert found["alert-3"].select == (AlertKind.FENCING,)


def test_what_follows_a_recipient_without_braces_is_its_own() -> None:
    (plain,) = read("alert a /x to one meta timeout=5s").alerts.values()
    assert (plain.meta, plain.recipients[0].meta[0].get("timeout")) == ((), "5s")
    (braced,) = read("alert a /x to { one } meta timeout=5s").alerts.values()
    assert (braced.meta[0].get("timeout"), braced.recipients[0].meta) == ("5s", ())


@pytest.mark.parametrize("text", [CRMSH, EVERYTHING])
def test_every_format_says_the_same(text: str) -> None:
    made = read(text)
    assert read(show(made, arrangement=Arrangement.DOCUMENT)) == made
    xml = read_configuration(write_configuration(made), "written.xml")
    assert (xml.reports, xml.configuration) == ((), made)
    policy = load_policy(dump_policy(made), "written.yaml")
    assert not has_errors(policy.reports)
    assert policy.configuration == made


@pytest.mark.parametrize("text", [CRMSH, EVERYTHING])
@pytest.mark.skipif(shutil.which("crm_verify") is None, reason="crm_verify is not installed")
def test_pacemaker_accepts_what_is_written(text: str, tmp_path: Path) -> None:
    file = tmp_path / "cib.xml"
    file.write_text(write_configuration(read("property stonith-enabled=false\n" + text)))
    done = subprocess.run(["crm_verify", "-V", "-x", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_xml_of_pacemaker_comes_back() -> None:
    alerts = (
        '<alerts><alert id="a" path="/p"><instance_attributes id="i"><nvpair id="n" name="k" value="v"/>'
        '</instance_attributes><select><select_nodes/><select_attributes><attribute id="q" name="rack"/>'
        '</select_attributes></select><recipient id="r" value="x"/></alert></alerts>'
    )
    found = read_configuration(cib(more=alerts), "cib.xml")
    assert found.configuration.alerts == {
        "a": Alert("a", "/p", "", (AlertKind.NODES, AlertKind.ATTRIBUTES), ("rack",),
                   (AttributeSet("i", (("k", "v"),)),), (), (AlertRecipient("r", "x"),)),
    }  # fmt: skip
    assert read(show(found.configuration)).alerts == found.configuration.alerts


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("alert a", "EXPECTED"),
        ("alert a /x select", "EXPECTED"),
        ("alert a /x select everything", "EXPECTED"),
        ("alert a /x to", "EXPECTED"),
        ("alert a /x to { one", "EXPECTED"),
        ("alert a /x to one two", "UNEXPECTED"),
        ("alert a /x op monitor", "UNEXPECTED"),
        ("alert 1 /x", "BAD_ID"),
        ('alert a /x select attributes { "a b" }', "BAD_VALUE"),
    ],
)
def test_refused_as_text(text: str, code: str) -> None:
    assert [str(each.code) for each in parse_script(text, "text").reports] == [code]


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("alert a x.sh", "BAD_VALUE", "a: path"),
        ("alert a /x meta colour=red", "UNKNOWN_META", "colour"),
        ("alert a /x meta timeout=0", "BAD_VALUE", "a: timeout"),
        ("alert a /x meta timeout=2h", "BAD_VALUE", "a: timeout"),
        ("alert a /x to one meta enabled=perhaps", "BAD_VALUE", "a-recipient: enabled"),
        ("alert a /x meta incident-interval=soon", "BAD_VALUE", "a: incident-interval"),
        ("alert a /x attributes CRM_alert_kind=x", "BAD_VALUE", "a: CRM_alert_kind"),
        ("alert a /x attributes password=******", "SECRET_HIDDEN", "a: password"),
        ("alert a /x meta rule #uname eq n1 timeout=5s", "NOT_YET", "a: a rule in an alert"),
        ("alert a /x\nprimitive a ocf:haclusterd:dummy", "DUPLICATE_ID", "a"),
    ],
)
def test_refused_as_a_whole(text: str, code: str, named: str) -> None:
    found = [each for each in verify(read(text), members={}, agents=None) if str(each.code) == code]
    assert found
    assert named in found[0].parameters.values()
