"""XPath: what it selects, what it refuses, and that no text takes long."""

from contextlib import suppress
from time import process_time

import pytest

from haclusterd.formats.cib_xml.tree import Element, parse_tree
from haclusterd.formats.cib_xml.xpath import Budget, TooMuchError, Tree, XPathError, parse_xpath
from haclusterd.reports.items import ReportItem

DOCUMENT = """<cib><configuration><nodes><node id="1" uname="n1"/></nodes><resources>
<primitive id="a" class="ocf"><meta_attributes id="am"><nvpair id="a1" name="target-role" value="Started"/>
<nvpair id="a2" name="x"/></meta_attributes></primitive>
<group id="g"><primitive id="b" class="ocf"/><primitive id="c" class="lsb"><operations><op id="o"/></operations>
</primitive></group></resources></configuration><status/></cib>"""


def tree(text: str = DOCUMENT) -> Tree:
    root = parse_tree(text, "text")
    assert not isinstance(root, ReportItem)
    return Tree(root)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/cib/configuration/nodes/node", "1"),
        ("//primitive", "a b c"),
        ("//primitive[1]", "a b"),
        ("//group/primitive[last()]", "c"),
        ("//primitive[@class='ocf'][2]", ""),
        ("//primitive[@class='lsb'][1]", "c"),
        ("//resources/*", "a g"),
        ("/cib/configuration/resources//primitive", "a b c"),
        ("//primitive[@id='a']//nvpair[@name]", "a1 a2"),
        ("//nvpair[@value]", "a1"),
        ("//nvpair[not(@value)]", "a2"),
        ("//primitive[@class='ocf' and not(meta_attributes)]", "b"),
        ("//primitive[@id='a' or @id=\"c\"]", "a c"),
        ("//primitive[starts-with(@id, 'a') or contains(@class, 's')]", "a c"),
        ("//primitive[meta_attributes/nvpair/@name='x']", "a"),
        ("//*[.//op]/..", None),
        ("//group[.//op]", "g"),
        ("//primitive[@class!='ocf']", "c"),
        ("//node | //group", "1 g"),
        ("//primitive[(@id='a' or @id='b') and @class='ocf']", "a b"),
        ("//nothing", ""),
    ],
)
def test_what_is_selected(path: str, found: str | None) -> None:
    if found is None:
        with pytest.raises(XPathError):
            parse_xpath(path)
        return
    assert [each.get("id") for each in parse_xpath(path).select(tree(), Budget())] == found.split()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("//primitive[position()=1]", "a b"),
        ("//primitive[position()=last()]", "a c"),
        ("//group/primitive[position()>1]", "c"),
        ("//group/primitive[position()<=1]", "b"),
        ("//group/primitive[@class='lsb'][position()=1]", "c"),
        ("//group[count(primitive)=2]", "g"),
        ("//group[count(primitive) > 2]", ""),
        ("//*[count(.//op)>=1]", "g c"),
        ("//node[@id>0]", "1"),
        ("//node[@id>=2]", ""),
        ("//node[@uname>0]", ""),
        ("//node[@id<2 and count(x)=0]", "1"),
    ],
)
def test_what_numbers_select(path: str, found: str) -> None:
    """As cibadmin of Pacemaker 2.1.5 answers; what is stored may not have them, since older nodes would not read it."""
    chosen = parse_xpath(path, has_numbers=True).select(tree(), Budget())
    assert [each.get("id") for each in chosen if each.get("id")] == found.split()
    with pytest.raises(XPathError):
        parse_xpath(path)


@pytest.mark.parametrize("path", ["//a[position()]", "//a[count(b)]", "//a[count(b)=x]", "//a[@b<'x']", "//a[1=1]",
                                  "//a[position()=1 and @b]", f"//a[@b>{'9' * 99}]"])  # fmt: skip
def test_numbers_that_make_no_sense_are_refused(path: str) -> None:
    with pytest.raises(XPathError):
        parse_xpath(path, has_numbers=True)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("primitive", "begins with / or //"),
        ("/cib/@epoch", "attributes are not selected"),
        ("//a/..", ".. is not understood"),
        ("//ancestor::a", "axes (ancestor::)"),
        ("//a[count(b)=1]", "count() is not understood"),
        ("//a[@b='1' and]", "is not understood"),
        ("//a[", "ends too early"),
        ("//a[@b=$c]", "is not understood"),
        ("//a" + "[.//b" * 5 + "]" * 5, "more than 4 deep"),
        ("//a[" + "(" * 5 + "@b" + ")" * 5 + "]", "more than 4 deep"),
        ("/" + "a" * 1000, "longer than 1000"),
        ("//*" * 33, "more than 32 steps"),
    ],
)
def test_what_is_refused(path: str, said: str) -> None:
    with pytest.raises(XPathError, match=said.replace("(", r"\(").replace(")", r"\)").replace("[", r"\[")):
        parse_xpath(path)


BOMBS = (
    "//*[.//*[.//*[.//*]]]",
    "//*" * 32,
    "//*[" + " or ".join([".//x"] * 15) + "]",
    "//*[not(.//x)]//*[not(.//x)]//*[not(.//x)]//*",
    "|".join(["//*//*"] * 16),
    "//*" + "[1]" * 300,
    "//*[" + " or ".join(["@a='x'"] * 98) + "]",
    "//*[" + " or ".join(["*/@a='x'"] * 30) + "]",
)


@pytest.mark.parametrize("path", BOMBS)
def test_a_bomb_ends_soon(path: str) -> None:
    """9,000 elements, 12 deep: what looks at every way through them would take hours."""
    branch = "<e>" * 10 + "<f/>" * 10 + "</e>" * 10
    bomb, document = parse_xpath(path), tree(f"<cib><c>{branch * 300}</c></cib>")
    began = process_time()
    with suppress(TooMuchError):
        bomb.select(document, Budget())
    assert process_time() - began < 10


def test_a_budget_ends_what_takes_too_long() -> None:
    with pytest.raises(TooMuchError):
        parse_xpath("//*").select(tree(), Budget(3))


@pytest.mark.parametrize(
    ("path", "least"),
    [
        ("//f" + "[1]" * 300, 300 * 50),
        ("//f[" + " or ".join(["@a='x'"] * 98) + "]", 98 * 50),
        ("//f[" + " or ".join(["contains(@b, 'x')"] * 9) + "]", 9 * 50 * 40),
    ],
)
def test_what_is_done_for_an_element_counts(path: str, least: int) -> None:
    document = tree("<cib>" + f"<e><f b='{'y' * 10_000}'/></e>" * 50 + "</cib>")
    budget = Budget(10 * least)
    parse_xpath(path).select(document, budget)
    assert 10 * least - budget.left >= 0.9 * least


def test_each_element_is_found_once() -> None:
    found: list[Element] = parse_xpath("//*//*").select(tree(), Budget())
    assert len(found) == len({id(each) for each in found}) == len(list(tree().root.every())) - 1
