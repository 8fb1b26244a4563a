"""How a configuration looks as crm text."""

from pathlib import Path

import pytest

from haclusterd.formats.crm.syntax import Arrangement, assemble, parse_script, show
from haclusterd.model.configuration import Primitive
from haclusterd.model.records import replace

GOLDEN = Path(__file__).parents[3] / "golden" / "crm"


def rewritten(text: str, arrangement: Arrangement) -> str:
    script = parse_script(text, "text")
    made = assemble(script.statements)
    assert not script.reports
    assert not made.reports
    return show(made.configuration, arrangement=arrangement)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.crm")), ids=lambda path: path.stem)
def test_show(path: Path) -> None:
    """Each file is its own document form; beside it stands its sorted form."""
    text = path.read_text()
    assert rewritten(text, Arrangement.DOCUMENT) == text
    assert rewritten(text, Arrangement.SORTED) == path.with_suffix(".show").read_text()


def test_there_is_something_to_show() -> None:
    assert sorted(GOLDEN.glob("*.crm"))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("primitive p Dummy a=b", "params a=b"),
        ('primitive p Dummy a=""', 'params a=""'),
        ("primitive p Dummy a=/run/x", 'params a="/run/x"'),
        ("primitive p Dummy a='b c'", 'params a="b c"'),
        ("primitive p Dummy a='say \"x\"'", r'params a="say \"x\""'),
        (r"primitive p Dummy a='c:\d'", r'params a="c:\\d"'),
        ("primitive p Dummy a=ï", 'params a="ï"'),
        ("primitive p Dummy $id=x", "params $id=x"),
        ("primitive p Dummy 5: a=1 meta b=2", "params 5: a=1 \\\n\tmeta b=2"),
        ("primitive p Dummy a=1 params b=2", "params a=1 \\\n\tparams b=2"),
        ("primitive p Dummy a=1 params $id=x b=2", "params $id=p-instance_attributes a=1 \\\n\tparams $id=x b=2"),
        ("primitive p Dummy op start", "op start interval=0"),
        ("primitive p Dummy op start timeout=90", "op start timeout=90 interval=0"),
        ("primitive p Dummy op monitor OCF_CHECK_LEVEL=10 interval=120", "op monitor interval=120 OCF_CHECK_LEVEL=10"),
        ("primitive p Dummy op monitor op_params timeout=1", "op monitor interval=0 op_params timeout=1"),
        ("primitive p Dummy op start $id=x", "op start $id=x interval=0"),
    ],
)  # fmt: skip
def test_details(written: str, shown: str) -> None:
    assert rewritten(written, Arrangement.DOCUMENT) == f"primitive p ocf:heartbeat:Dummy \\\n\t{shown}\n"


def test_an_attribute_that_looks_like_a_comment_never_begins_a_line() -> None:
    text = "property $id=x a=1 #health=2 c=3"
    assert rewritten(text, Arrangement.SORTED) == "property x: \\\n\ta=1 #health=2 \\\n\tc=3\n"


@pytest.mark.parametrize(
    "text",
    [
        "primitive p Dummy \\\n\top monitor interval=60s timeout=120 start-delay=PT5S\n",
        "primitive p Dummy \\\n\top monitor interval=1min timeout=2min\n",
        "primitive p Dummy \\\n\top monitor interval=10s start-delay=0\n",
        "primitive p Dummy \\\n\top monitor interval=10s start-delay=0s\n",
        "primitive a Dummy\nprimitive b Dummy\norder o a b\n",
        "primitive a Dummy\nprimitive b Dummy\norder o Mandatory: a:start b\n",
    ],
)
def test_what_was_written_is_shown_as_it_was_written(text: str) -> None:
    assert show(assemble(parse_script(text, "text").statements).configuration).replace("ocf:heartbeat:", "") == text


def test_a_duration_that_was_changed_is_not_shown_as_it_was_written() -> None:
    configuration = assemble(parse_script("primitive p Dummy op start timeout=120", "text").statements).configuration
    (primitive,) = configuration.resources.values()
    assert isinstance(primitive, Primitive)
    changed = replace(primitive, operations=tuple(replace(each, timeout_ms=90_000) for each in primitive.operations))
    text = show(replace(configuration, resources={changed.id: changed}))
    assert "timeout=90s" in text
