"""What real Pacemaker shows to a user of a CIB with access control lists, and what is shown here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from haclusterd.commands.access.rights import Rights, filtered
from haclusterd.commands.permissions import access_of
from haclusterd.formats.cib_xml.document import read_configuration
from haclusterd.formats.cib_xml.elements import write_elements
from haclusterd.formats.cib_xml.tree import Element, parse_tree
from haclusterd.model.access import Principal
from haclusterd.reports.items import ReportItem

pytestmark = pytest.mark.skipif(shutil.which("cibadmin") is None, reason="cibadmin is not installed")

ROLES: dict[str, tuple[str, ...]] = {
    "read-all": ('read xpath="/cib"',),
    "no-passwords": ('read xpath="/cib"', "deny xpath=\"//nvpair[@name='password']\""),
    "one": ("write xpath=\"//primitive[@id='web']\"",),
    "part-of-denied": ('deny reference="web"', 'read reference="web-pw"'),
    "by-kind": ('write object-type="nvpair" attribute="value"',),
    "kind-without-attribute": ('read object-type="op" attribute="timeout"',),
    "write-and-deny": ('write reference="web"', 'deny reference="web"'),
    "deny-and-write": ('deny reference="web"', 'write reference="web"'),
    "read-and-write": ('read reference="web"', 'write reference="web"'),
    "first-child": ('read xpath="/cib"', 'deny xpath="//resources/primitive[1]"'),
    "last-child": ('read xpath="/cib"', 'deny xpath="//group/primitive[last()]"'),
    "second-of-some": ('read xpath="/cib"', "deny xpath=\"//primitive[@class='ocf'][2]\""),
    "by-child": ('read xpath="/cib"', 'deny xpath="//primitive[operations/op]"'),
    "by-attribute-of-child": ("read xpath=\"//primitive[instance_attributes/nvpair/@name='password']\"",),
    "functions": ("read xpath=\"//primitive[starts-with(@id,'d') or contains(@type,'tate')]\"",),
    "not": ('read xpath="//primitive[not(@provider)]"',),
    "union": ('read xpath="//nodes | //rsc_location"',),
    "deep": ('read xpath="/cib/configuration//nvpair"', 'deny xpath="//meta_attributes//nvpair"'),
    "stars": ('read xpath="/cib/*/*/*[@id]"', "deny xpath=\"//*[@id='db']\""),
    "unequal": ("read xpath=\"//primitive[@id!='web']\"",),
    "status": ('read xpath="/cib/status"',),
    "nothing": (),
}
USERS = [(name,) for name in ROLES] + [
    ("read-all", "part-of-denied"), ("no-passwords", "by-kind"), ("one", "deny-and-write"), ("first-child", "one"),
]  # fmt: skip


def permissions(role: str) -> str:
    made = ""
    for number, text in enumerate(ROLES[role]):
        kind, rest = text.split(" ", 1)
        made += f'<acl_permission id="{role}-{number}" kind="{kind}" {rest}/>'
    return made


def document() -> str:
    roles = "".join(f'<acl_role id="{role}">{permissions(role)}</acl_role>' for role in ROLES)
    targets = "".join(
        f'<acl_target id="u{number}">{"".join(f"<role id={chr(34)}{role}{chr(34)}/>" for role in held)}</acl_target>'
        for number, held in enumerate(USERS)
    )
    return f"""<cib validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0"><configuration>
<crm_config><cluster_property_set id="o"><nvpair id="o-acl" name="enable-acl" value="true"/></cluster_property_set>
</crm_config><nodes><node id="1" uname="n1"/></nodes><resources>
<primitive id="web" class="ocf" provider="heartbeat" type="Dummy"><instance_attributes id="web-ia">
<nvpair id="web-pw" name="password" value="sesame"/><nvpair id="web-x" name="x" value="1"/></instance_attributes>
<meta_attributes id="web-m"><nvpair id="web-tr" name="target-role" value="Started"/></meta_attributes>
<operations><op id="web-op" name="monitor" interval="10s" timeout="20s"/></operations></primitive>
<primitive id="db" class="ocf" provider="pacemaker" type="Stateful"/>
<group id="g"><primitive id="g1" class="systemd" type="x"/>
<primitive id="g2" class="ocf" provider="heartbeat" type="Dummy"/></group></resources>
<constraints><rsc_location id="l" rsc="web" node="n1" score="10"/></constraints>
<acls>{roles}{targets}</acls></configuration><status/></cib>"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("acls") / "cib.xml"
    made.write_text(document())
    return made


def shown_by_pacemaker(file: Path, user: str) -> Element | None:
    done = subprocess.run(
        ["cibadmin", "--query", "--user", user], capture_output=True, text=True, check=False,
        env={**os.environ, "CIB_file": str(file)},
    )  # fmt: skip
    return tree(done.stdout) if done.stdout else None


def tree(text: str) -> Element:
    root = parse_tree(text, "text")
    assert not isinstance(root, ReportItem), root
    return root


@pytest.mark.parametrize("number", range(len(USERS)), ids=lambda number: "+".join(USERS[number]))
def test_what_is_shown_is_the_same(file: Path, number: int) -> None:
    configuration = read_configuration(document(), "cib.xml").configuration
    access = access_of(configuration, Principal(f"u{number}"))
    assert access.rules is not None
    root = tree(document())
    ours, theirs = filtered(Rights(root, access.rules), root), shown_by_pacemaker(file, f"u{number}")
    assert (ours and write_elements(ours)) == (theirs and write_elements(theirs))
