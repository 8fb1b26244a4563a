"""A CIB of Pacemaker in a file, changed by commands: what a change does not touch stays as it is written."""

from pathlib import Path

import pytest

from haclusterd.formats.cib_xml.document import read_cib
from tests.foreign_files import File

DOCUMENT = """\
<?xml version="1.0"?>
<!-- of the site in Bonn -->
<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" epoch="41" num_updates="7" admin_epoch="0">
  <configuration>
    <crm_config>
      <cluster_property_set id="cib-bootstrap-options">
        <nvpair id="my-own-id" name="stonith-enabled" value="false"/>
        <nvpair id="cib-bootstrap-options-dc-version" name="dc-version" value="2.1.5-a3f44794f94"/>
      </cluster_property_set>
    </crm_config>
    <nodes>
      <node id="1" uname="n1"/>
      <node id="2" uname="n2"/>
    </nodes>
    <resources>
      <!-- the web site -->
      <group id="site">
        <primitive id="ip" class="ocf" provider="heartbeat" type="IPaddr2">
          <instance_attributes id="ip-attributes">
            <nvpair id="ip-address" name="ip" value="192.0.2.10"/>
          </instance_attributes>
          <operations id="ip-operations">
            <op id="ip-watch" name="monitor" interval="10s" timeout="20s"/>
          </operations>
        </primitive>
        <primitive id="web" class="ocf" provider="heartbeat" type="nginx"/>
      </group>
      <primitive id="db" class="ocf" provider="heartbeat" type="Dummy">
        <operations id-ref="ip-operations"/>
      </primitive>
    </resources>
    <constraints>
      <rsc_location id="near" rsc="db"><rule id="near-rule" score="5">
        <expression id="near-e" attribute="#uname" operation="eq" value="n1"/></rule></rsc_location>
    </constraints>
    <acls>
      <acl_role id="looker"><acl_permission id="look" kind="read" xpath="/cib"/></acl_role>
    </acls>
  </configuration>
  <status>
    <node_state id="1" uname="n1" in_ccm="true" crmd="online" join="member" expected="member" crm-debug-origin="x">
      <lrm id="1">
        <lrm_resources>
          <lrm_resource id="db" class="ocf" provider="heartbeat" type="Dummy">
            <lrm_rsc_op id="db_last_0" operation="start" call-id="5" rc-code="0" op-status="0" interval="0"/>
          </lrm_resource>
        </lrm_resources>
      </lrm>
    </node_state>
  </status>
</cib>
"""


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / "cib.xml", DOCUMENT)


def lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


@pytest.mark.parametrize(
    ("command", "difference"),
    [
        (
            "configure set ip.ip 192.0.2.11",
            """
-            <nvpair id="ip-address" name="ip" value="192.0.2.10"/>
+            <nvpair id="ip-address" name="ip" value="192.0.2.11"/>""",
        ),
        (
            "configure property maintenance-mode=true",
            """
+        <nvpair id="cib-bootstrap-options-maintenance-mode" name="maintenance-mode" value="true"/>""",
        ),
        (
            "resource stop web",
            """
-        <primitive id="web" class="ocf" provider="heartbeat" type="nginx"/>
+        <primitive id="web" class="ocf" provider="heartbeat" type="nginx">
+          <meta_attributes id="web-meta_attributes">
+            <nvpair id="web-meta_attributes-target-role" name="target-role" value="Stopped"/>
+          </meta_attributes>
+        </primitive>""",
        ),
        (
            "configure delete near",
            """
-      <rsc_location id="near" rsc="db"><rule id="near-rule" score="5">
-        <expression id="near-e" attribute="#uname" operation="eq" value="n1"/></rule></rsc_location>""",
        ),
        (
            "configure modgroup site remove web",
            """
-        <primitive id="web" class="ocf" provider="heartbeat" type="nginx"/>
+      <primitive id="web" class="ocf" provider="heartbeat" type="nginx"/>""",
        ),
        (
            "node attribute n2 set rack 4",
            """
-      <node id="2" uname="n2"/>
+      <node id="2" uname="n2">
+        <instance_attributes id="nodes-n2-instance_attributes">
+          <nvpair id="nodes-n2-instance_attributes-rack" name="rack" value="4"/>
+        </instance_attributes>
+      </node>""",
        ),
        (
            "configure order first Mandatory: site db",
            """
+      <rsc_order id="first" first="site" then="db" kind="Mandatory"/>""",
        ),
        (
            "node standby n2 reboot",
            """
+    <node_state id="2" uname="n2">
+      <transient_attributes id="2">
+        <instance_attributes id="status-2">
+          <nvpair id="status-2-standby" name="standby" value="on"/>
+        </instance_attributes>
+      </transient_attributes>
+    </node_state>""",
        ),
    ],
)
def test_a_change_is_put_into_the_document(file: File, command: str, difference: str) -> None:
    assert file.type("--force", *command.split()) == 0, file.printed
    found = file.difference()
    if command.startswith(("configure order", "configure delete")):
        found = [line for line in found if "constraints" not in line]
    assert found == lines(difference)
    assert 'epoch="42" num_updates="0"' in file.path.read_text()


def test_the_versions_that_are_named_are_those_of_the_document(file: File) -> None:
    assert file.type("resource", "param", "db", "set", "state", "/run/db") == 0, file.printed
    assert "version 41 -> 42" in file.printed
    assert file.type("resource", "param", "db", "set", "state", "/run/other") == 0, file.printed
    assert "version 42 -> 43" in file.printed
    assert 'epoch="43"' in file.path.read_text()


@pytest.mark.parametrize("epoch", ["", "-1", "x", "1e3", "9" * 400])
def test_an_epoch_that_is_no_number_is_version_0(epoch: str) -> None:
    reading = read_cib(f'<cib epoch="{epoch}"><configuration/></cib>', "cib.xml")
    assert reading.cib.version.epoch == 0


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("Sun Nov 22 20:00:00 2026", 1_795_377_600), ("Thu Jan  1 11:55:00 1970", 42_900), ("", 0), ("yesterday", 0),
        ("Thu Foo  1 11:55:00 1970", 0), ("Thu Jan 99 11:55:00 1970", 0),
    ],
)  # fmt: skip
def test_who_changed_it_last_is_read(written: str, seconds: int) -> None:
    text = f'<cib cib-last-written="{written}" update-user="root" update-origin="n1"><configuration/></cib>'
    version = read_cib(text, "cib.xml").cib.version
    assert (version.author, version.at) == ("root@n1", seconds * 1000)


def test_references_stay_where_something_else_changes(file: File) -> None:
    assert file.type("resource", "param", "db", "set", "state", "/run/db") == 0, file.printed
    assert file.type("--force", "configure", "rename", "db", "store") == 0, file.printed
    assert '<operations id-ref="ip-operations"/>' in file.path.read_text()
    assert file.type("configure", "show", "ip", "store") == 0
    assert file.printed.count("op monitor") == 2


def test_a_refused_change_and_a_preview_leave_the_file_alone(file: File) -> None:
    assert file.type("configure", "order", "o", "Mandatory:", "site", "nothing") != 0
    assert file.type("resource", "stop", "db", "--dry-run") == 0
    assert file.path.read_text() == DOCUMENT


def test_a_file_of_an_old_schema_is_written_in_todays(tmp_path: Path) -> None:
    old = DOCUMENT.replace("pacemaker-3.9", "pacemaker-1.2").replace("stonith-enabled", "stonith_enabled")
    file = File(tmp_path / "cib.xml", old)
    assert file.type("resource", "stop", "db") == 0, file.printed
    text = file.path.read_text()
    assert 'validate-with="pacemaker-3.9"' in text
    assert "<lrm_rsc_op" in text
    assert "<acl_role" in text


def test_what_only_pacemaker_runs_and_reads_is_taken_as_it_is(file: File) -> None:
    assert file.type("configure", "bundle", "b", "docker", "image=x", "replicas=2") == 0, file.printed
    assert file.type("configure", "property", "dc-deadtime=10s", "have-watchdog=true") == 0, file.printed
    assert '<docker image="x" replicas="2"/>' in file.path.read_text()
    assert 'name="dc-deadtime" value="10s"' in file.path.read_text()
    assert file.type("configure", "property", "no-such-thing=1") == 78


@pytest.mark.parametrize(
    ("command", "constraint"),
    [
        ("configure delete site", "first Mandatory: ip db"),
        ("configure group more db", "first Mandatory: site more"),
        ("configure clone many site", "first Mandatory: many db"),
    ],
)
def test_as_crmsh_constraints_follow_what_is_grouped_cloned_or_taken_apart(
    file: File, command: str, constraint: str
) -> None:
    assert file.type("configure", "order", "first", "Mandatory:", "site", "db") == 0, file.printed
    assert file.type("-F", *command.split(), compat="crmsh") == 0, file.printed
    assert file.type("configure", "show", "first") == 0
    assert file.printed.strip() == f"order {constraint}"


@pytest.mark.parametrize(
    ("words", "status", "printed"),
    [
        ("status bynode", 0, "Node n1: online:"),
        ("status nope", 64, "is not one of: simple, full, bynode"),
        ("status full", 0, "Operations:"),
        ("status xml", 0, '<pacemaker-result api-version="2.25"'),
        ("-o xml status", 0, '<node name="n1" id="1" online="true"'),
        ("status simple", 2, "DEGRADED: db"),
        ("status simple full", 64, "nothing is added to it"),
        ("-o xml configure show db", 0, '<primitive id="db" class="ocf"'),
        ("-o xml resource status", 64, "has no form in XML"),
    ],
)
def test_the_state_as_crm_mon_shows_it_and_as_xml(file: File, words: str, status: int, printed: str) -> None:
    assert file.type(*words.split()) == status, file.printed
    assert printed in file.printed


ALMOST_KNOWN = """\
<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0">
  <configuration>
    <crm_config><cluster_property_set id="cib-bootstrap-options">
      <nvpair id="delay" name="no-quorum-polcy" value="stop"/>
    </cluster_property_set></crm_config>
    <nodes/>
    <resources>
      <clone id="all">
        <meta_attributes id="all-meta"><nvpair id="all-max" name="clone_max" value="2"/></meta_attributes>
        <primitive id="p" class="ocf" provider="heartbeat" type="Dummy"><operations>
          <op id="p-monitor" name="monitor" interval="10s" timeout="20s">
            <meta_attributes id="p-monitor-meta"><nvpair id="p-fail" name="on_fail" value="ignore"/></meta_attributes>
          </op>
        </operations></primitive>
      </clone>
    </resources>
    <constraints/>
    <rsc_defaults><meta_attributes id="rd">
      <nvpair id="rd-1" name="failure_timeout" value="30s"/>
    </meta_attributes></rsc_defaults>
    <op_defaults><meta_attributes id="od">
      <nvpair id="od-1" name="time_out" value="30s"/>
    </meta_attributes></op_defaults>
  </configuration>
  <status/>
</cib>
"""
EMPTY = (
    '<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0">'
    "<configuration><crm_config/><nodes/><resources/><constraints/></configuration><status/></cib>"
)


def test_names_that_pacemaker_ignores_are_shown_and_load_again_with_a_warning(tmp_path: Path) -> None:
    first, second = File(tmp_path / "first.xml", ALMOST_KNOWN), File(tmp_path / "second.xml", EMPTY)
    assert first.type("configure", "show") == 0
    shown = first.printed
    assert "clone_max=2" in shown
    (tmp_path / "shown.crm").write_text(shown)
    assert second.type("configure", "load", "update", str(tmp_path / "shown.crm")) == 0, second.printed
    for name in ("no-quorum-polcy", "clone_max", "on_fail", "failure_timeout", "time_out"):
        assert [name in line for line in second.printed.splitlines() if line.startswith("WARNING")].count(True) == 1
    assert second.type("configure", "show") == 0
    assert second.printed == shown


OF_THE_YEAR_2012 = """\
node n1
property $id="cib-bootstrap-options" \\
    dc-version="1.1.7-6.el6" cluster-infrastructure="{infrastructure}" expected-quorum-votes="2" \\
    stonith-enabled="false"
"""


@pytest.mark.parametrize("infrastructure", ["openais", "cman", "classic openais (with plugin)", "heartbeat"])
def test_what_old_releases_noted_is_left_out_where_pacemaker_would_refuse_the_file(
    tmp_path: Path, infrastructure: str
) -> None:
    file = File(tmp_path / "cib.xml", EMPTY)
    (tmp_path / "old.crm").write_text(OF_THE_YEAR_2012.format(infrastructure=infrastructure))
    assert file.type("configure", "load", "update", str(tmp_path / "old.crm")) == 0, file.printed
    text = file.path.read_text()
    assert "cluster-infrastructure" not in text
    assert "expected-quorum-votes" not in text
    assert 'name="dc-version" value="1.1.7-6.el6"' in text
    for left_out in (f"cluster-infrastructure={infrastructure}", "expected-quorum-votes=2"):
        assert f"left out: the property {left_out}" in file.printed


def test_what_pacemaker_notes_today_stays_in_the_file(file: File) -> None:
    assert file.type("configure", "property", "cluster-infrastructure=corosync") == 0, file.printed
    assert 'name="cluster-infrastructure" value="corosync"' in file.path.read_text()


@pytest.mark.parametrize("compat", ["", "crmsh"])
@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("default-resource-stickiness", "write today: rsc_defaults resource-stickiness=VALUE"),
        ("stonith_enabled", "did you mean stonith-enabled?"),
    ],
)
def test_a_property_with_which_pacemaker_refuses_the_file_is_refused(
    file: File, tmp_path: Path, name: str, remedy: str, compat: str
) -> None:
    (tmp_path / "old.crm").write_text(f"property {name}=0\n")
    assert file.type("configure", "load", "update", str(tmp_path / "old.crm"), compat=compat) == 78
    assert f"unknown cluster property {name} ({remedy})" in file.printed
    assert file.path.read_text() == DOCUMENT


UNKNOWN = ("primitive a ocf:heartbeat:Dummy meta resource-failure-stickiness=5", "property no-quorum-polcy=stop")


@pytest.mark.parametrize("statement", UNKNOWN)
@pytest.mark.parametrize("is_script", [False, True], ids=["a command", "a script"])
def test_as_crmsh_a_statement_keeps_a_name_that_pacemaker_ignores(
    file: File, statement: str, is_script: bool
) -> None:
    words, typed = ([], f"{statement}\n") if is_script else (statement.split(), "")
    assert file.type("configure", *words, typed=typed) == 78
    assert file.path.read_text() == DOCUMENT
    assert file.type("configure", *words, typed=typed, compat="crmsh") == 0, file.printed
    name, _, value = statement.rsplit(maxsplit=1)[-1].partition("=")
    assert f"WARNING: {'standard input:1' if is_script else ''}" in file.printed
    assert f'name="{name}" value="{value}"' in file.path.read_text()


@pytest.mark.parametrize("action", ["set", "delete"])
@pytest.mark.parametrize("what", ["resource meta ip", "resource param ip", "resource utilization ip",
                                  "node utilization n1", "node attribute n1"])  # fmt: skip
def test_nothing_is_set_or_deleted_without_a_name(tmp_path: Path, what: str, action: str) -> None:
    file = File(tmp_path / "cib.xml", DOCUMENT)
    for name in ([], ["", "5"] if action == "set" else [""]):
        assert file.type(*what.split(), action, *name) == 64, file.printed
    assert file.path.read_text() == DOCUMENT
