"""Access control lists: every format says the same; no text for an XPath does more than be refused."""

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.formats.cib_xml.document import read_configuration, write_configuration
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.cib_xml.xpath import Budget, TooMuchError, Tree, XPathError, parse_xpath
from haclusterd.formats.crm.access import SHORTCUTS
from haclusterd.formats.crm.syntax import Arrangement, assemble, parse_script, show
from haclusterd.formats.policy.yaml import dump_policy, load_policy
from haclusterd.model.access import AclGroup, AclPermission, AclRole, AclTarget, Right
from haclusterd.model.configuration import Configuration

NAMES = st.sampled_from(["a", "r-0", "web", "cib", "read", "auto-x", "x.y", "viewer"])
ACCOUNTS = st.sampled_from(["alice", "0day", "a.b-c_d", "dom@carol", "web", "write", "x$"])
TEXTS = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="\x85"), max_size=12)
PATHS = st.one_of(
    st.sampled_from([path.format("web", "x") for each in SHORTCUTS.values() for path in each.paths if path]),
    st.sampled_from(["//a[@b='c d']", '//a[@b="c"]', "//a[@b='\"']", "//x | //y[1]", "/cib[not(@a)]"]),
    st.just("//primitive[@id='a:b']"),
    TEXTS.map(lambda text: f"//a[@b='{text}']"),
)  # fmt: skip


@st.composite
def permissions(draw: st.DrawFn, id_: str) -> AclPermission:
    kind = draw(st.sampled_from(["xpath", "reference", "object-type"]))
    right, description = draw(st.sampled_from(Right)), draw(st.just("") | TEXTS)
    if kind == "xpath":
        return AclPermission(id_, right, xpath=draw(PATHS), description=description)
    if kind == "reference":
        return AclPermission(id_, right, reference=draw(NAMES), description=description)
    attribute = draw(st.just("") | NAMES)
    return AclPermission(id_, right, object_type=draw(NAMES), attribute=attribute, description=description)


@st.composite
def lists(draw: st.DrawFn) -> Configuration:
    roles = {}
    for name in draw(st.lists(NAMES, unique=True, max_size=3)):
        is_natural, count = draw(st.booleans()), draw(st.integers(0, 3))
        ids = [f"{name}-{number}" if is_natural else f"p{name}{number}" for number in range(count)]
        roles[name] = AclRole(name, tuple(draw(permissions(id_)) for id_ in ids), draw(st.just("") | TEXTS))
    held = st.lists(NAMES, unique=True, max_size=3).map(tuple)
    given_name = st.just("") | ACCOUNTS
    targets = {name: AclTarget(name, draw(held), draw(given_name)) for name in draw(st.lists(ACCOUNTS, unique=True))}
    groups = {name: AclGroup(name, draw(held), draw(given_name)) for name in draw(st.lists(ACCOUNTS, unique=True))}
    return Configuration(acl_roles=roles, acl_targets=targets, acl_groups=groups)


@settings(max_examples=150, deadline=None)
@given(lists())
def test_every_format_says_the_same(made: Configuration) -> None:
    script = parse_script(show(made, arrangement=Arrangement.DOCUMENT), "text")
    assert not script.reports
    assert assemble(script.statements).configuration == made
    policy = load_policy(dump_policy(made), "policy")
    assert not policy.reports
    assert policy.configuration == made
    xml = read_configuration(write_configuration(made), "cib.xml")
    assert not xml.reports
    assert xml.configuration == made


PIECES = st.sampled_from([*"/[]()@*.|=,'\"", "//", "!=", "a", "b", "and", "or", "not", "contains", "last", "1", "::",
                          " ", "'x'", "@a", "[@a]", "//*", "starts-with(@a,'x')"])  # fmt: skip
DOCUMENT = Tree(Element("a", {"a": "x"}, 1, [Element("b", {}, 2), Element("a", {"b": "1"}, 3, [Element("b", {}, 4)])]))


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=30))
def test_no_text_for_an_xpath_does_more_than_be_refused(text: str) -> None:
    with suppress(XPathError, TooMuchError):
        found = parse_xpath(text).select(DOCUMENT, Budget(10_000))
        assert len(found) == len({id(each) for each in found})
