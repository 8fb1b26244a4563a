"""Access control lists in CIB XML, crm text and policy YAML: what each can say, and that all say the same."""

import pytest

from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.cib_xml.document import read_configuration, write_configuration
from haclusterd.formats.crm.syntax import Arrangement, assemble, parse_script, show
from haclusterd.formats.policy.yaml import dump_policy, load_policy
from haclusterd.model.access import AclGroup, AclPermission, AclRole, AclTarget, Right
from haclusterd.model.configuration import Configuration
from haclusterd.reports.codes import Code
from haclusterd.reports.items import has_errors

EVERYTHING = r"""
property enable-acl=true
role app-op description="two words" write meta:app:target-role write meta:app write params:app:x write params:app \
    write utilization:app write location:app read property:maintenance-mode read property read node read node:n1 \
    read nodeattr:rack read nodeattr read nodeutil read nodeutil:n1 read status read cib read ref:app
role odd deny p1: xpath:"//nvpair[@name='a b']" write type:nvpair attribute:value description="why not" \
    read xpath:"//primitive[@id='x']/meta_attributes/nvpair[@name='y z']"
role nothing
acl_target alice app-op odd
acl_target u1 name=dom@carol viewer
acl_group ops operator
acl_group g2 name=wheel admin nothing
"""


def read(text: str) -> Configuration:
    script = parse_script(text, "text")
    assert not script.reports, script.reports
    made = assemble(script.statements)
    assert not made.reports, made.reports
    return made.configuration


@pytest.mark.parametrize(
    ("words", "permission"),
    [
        ("write meta:app:target-role", ("write", "//primitive[@id='app']/meta_attributes/nvpair[@name='target-role']")),
        ("write meta:app", ("write", "//primitive[@id='app']/meta_attributes")),
        ("read params:app:x", ("read", "//primitive[@id='app']/instance_attributes/nvpair[@name='x']")),
        ("read utilization:web", ("read", "//primitive[@id='web']/utilization")),
        ("write location:app", ("write", "//rsc_location[@id='cli-prefer-app' and @rsc='app']")),
        ("write property:a", ("write", "//crm_config/cluster_property_set/nvpair[@name='a']")),
        ("read property", ("read", "//crm_config/cluster_property_set")),
        ("read node", ("read", "//nodes/node")),
        ("read node:n1", ("read", "//nodes/node[@uname='n1']")),
        ("write nodeattr:standby", ("write", "//nodes/node/instance_attributes/nvpair[@name='standby']")),
        ("write nodeutil:n1", ("write", "//nodes/node/utilization[@uname='n1']")),
        ("read status", ("read", "/cib/status")),
        ("read cib", ("read", "/cib")),
    ],
)
def test_shortcuts_are_crmshs(words: str, permission: tuple[str, str]) -> None:
    (role,) = read(f"role r {words}").acl_roles.values()
    (found,) = role.permissions
    assert (str(found.right), found.xpath, found.id) == (*permission, "r-0")
    assert show(Configuration(acl_roles={"r": role})) == f"role r \\\n\t{words}\n"


def test_each_specification_makes_a_permission() -> None:
    (role,) = read("role a read type:nvpair ref:web deny attr:uname tag:node").acl_roles.values()
    assert role.permissions == (
        AclPermission("a-0", Right.READ, object_type="nvpair"),
        AclPermission("a-1", Right.READ, reference="web"),
        AclPermission("a-2", Right.DENY, object_type="node", attribute="uname"),
    )


def test_users_of_old_become_targets() -> None:
    found = read('role r read cib\nuser joe role:r\nuser jim deny xpath:"//acls" read cib')
    assert found.acl_targets == {"joe": AclTarget("joe", ("r",)), "jim": AclTarget("jim", ("auto-jim",))}
    assert [each.right for each in found.acl_roles["auto-jim"].permissions] == [Right.DENY, Right.READ]


OLD = """<cib validate-with="pacemaker-1.2"><configuration><acls>
<acl_role id="r"><write id="w" xpath="//primitive"/><read id="w2" ref="web"/>
<deny id="w3" tag="nvpair" attribute="value"/><read id="w5" tag="primitive" ref="web"/></acl_role>
<acl_user id="joe"><role_ref id="r"/></acl_user><acl_user id="jim"><read id="jr" xpath="/cib"/></acl_user>
</acls></configuration></cib>"""


def test_the_schema_of_old_is_read_as_cibadmin_upgrades_it() -> None:
    made = read_configuration(OLD, "old.xml")
    assert not has_errors(made.reports)
    found = made.configuration
    assert found.acl_roles == {
        "r": AclRole("r", (
            AclPermission("w", Right.WRITE, xpath="//primitive"),
            AclPermission("w2", Right.READ, reference="web"),
            AclPermission("w3", Right.DENY, object_type="nvpair", attribute="value"),
            AclPermission("w5", Right.READ, reference="web"),
        )),
        "auto-jim": AclRole("auto-jim", (AclPermission("jr", Right.READ, xpath="/cib"),)),
    }  # fmt: skip
    assert found.acl_targets == {"joe": AclTarget("joe", ("r",)), "jim": AclTarget("jim", ("auto-jim",))}


def test_all_formats_say_the_same() -> None:
    made = read(EVERYTHING)
    assert made.acl_groups["g2"] == AclGroup("g2", ("admin", "nothing"), "wheel")
    for arrangement in Arrangement:
        again = read(show(made, arrangement=arrangement))
        assert again.acl_roles == made.acl_roles
        assert (again.acl_targets, again.acl_groups) == (made.acl_targets, made.acl_groups)
    policy = load_policy(dump_policy(made), "policy")
    assert not policy.reports
    assert policy.configuration == made
    xml = read_configuration(write_configuration(made), "cib.xml")
    assert not xml.reports
    assert xml.configuration == made


@pytest.mark.parametrize(
    ("text", "line", "code", "said"),
    [
        ("role r grant cib", 1, Code.EXPECTED, "read, write or deny"),
        ("role r read", 1, Code.EXPECTED, "a shortcut"),
        ("role r read meat:web", 1, Code.UNEXPECTED, "meta"),
        ("role r read location", 1, Code.UNEXPECTED, "write location:NAME"),
        ("role r read ref:web attribute:x", 1, Code.UNEXPECTED, "with type:"),
        ("role r read cib\nacl_target bad/name r", 2, Code.BAD_ID, "the name of a user"),
        ("role r read cib\nacl_target a r\nacl_target a r", 3, Code.DUPLICATE_ID, ""),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, line: int, code: Code, said: str) -> None:
    script = parse_script(text, "text")
    reports = script.reports or assemble(script.statements).reports
    (found,) = reports
    assert (found.code, found.place and found.place.line) == (code, line)
    assert said in found.message + found.remedy


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("role r read cib\nacl_target alice opertor", Code.UNKNOWN_ROLE, "did you mean operator?"),
        ('role r read xpath:"primitive"', Code.BAD_VALUE, "a path begins with / or //"),
        ('role r read xpath:"//a/@b"', Code.BAD_VALUE, "attributes are not selected"),
        ('role r read xpath:"//a[count(b)=1]"', Code.BAD_VALUE, "is not understood"),
        (f'role r read xpath:"{"//*" * 33}"', Code.BAD_VALUE, "more than 32 steps"),
        ("acl_target alice", Code.BAD_VALUE, "may do nothing"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(text: str, code: Code, said: str) -> None:
    script = parse_script(f"property enable-acl=true\n{text}", "text")
    made = assemble(script.statements)
    (found,) = verify(made.configuration, members={}, agents=None, places=made.places)
    assert found.code is code
    assert said in found.message + found.remedy
    assert found.place is not None
    assert found.place.line == 2 + text.count("\n")


def test_lists_that_are_not_in_force_are_named() -> None:
    reports = verify(read("role r read cib\nacl_target alice r"), members={}, agents=None)
    assert [each.code for each in reports] == [Code.ACL_OFF]
