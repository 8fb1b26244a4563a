"""Arguments from outside: everything wrong is reported at once, and no verb is called with it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.reports.codes import Code
from haclusterd.reports.items import FAULTS_MAX
from haclusterd.verbs.arguments import MAX_WORD_LENGTH, Argument, Kind, check
from haclusterd.verbs.table import VERBS
from tests.administered_clusters import NOW, running

SCHEMA = (
    Argument("name", Kind.WORD, "which", is_required=True),
    Argument("color", Kind.WORD, "what", choices=("red", "blue")),
    Argument("others", Kind.WORDS, "who"),
    Argument("text", Kind.TEXT, "all"),
    Argument("loud", Kind.FLAG, "whether"),
    Argument("count", Kind.INTEGER, "how many", minimum=1, maximum=9),
)


@pytest.mark.parametrize(
    ("given_values", "codes"),
    [
        ({"name": "a"}, []),
        ({"name": "a", "color": "red", "others": ["b"], "text": "x\ny", "loud": True, "count": 9}, []),
        ({"name": "a", "color": None, "loud": None}, []),
        ({}, [Code.MISSING_ARGUMENT]),
        ({"name": ""}, [Code.BAD_ARGUMENT]),
        ({"name": 5}, [Code.BAD_ARGUMENT]),
        ({"name": "a\nb"}, [Code.BAD_ARGUMENT]),
        ({"name": "a\x1b[31m"}, [Code.BAD_ARGUMENT]),
        ({"name": "a" * (MAX_WORD_LENGTH + 1)}, [Code.BAD_ARGUMENT]),
        ({"name": "a", "color": "green"}, [Code.BAD_ARGUMENT]),
        ({"name": "a", "others": "b"}, [Code.BAD_ARGUMENT]),
        ({"name": "a", "others": [1]}, [Code.BAD_ARGUMENT]),
        ({"name": "a", "loud": 1}, [Code.BAD_ARGUMENT]),
        ({"name": "a", "count": True}, [Code.BAD_ARGUMENT]),
        ({"name": "a", "count": 10}, [Code.BAD_ARGUMENT]),
        ({"name": "a", "nmae": "b"}, [Code.UNKNOWN_ARGUMENT]),
        ({"colour": "red", "count": 0}, [Code.UNKNOWN_ARGUMENT, Code.MISSING_ARGUMENT, Code.BAD_ARGUMENT]),
    ],
)
def test_arguments_that_do_not_fit_the_schema_are_all_reported(given_values: dict[str, Any], codes: list[Code]) -> None:
    _, reports = check("test", SCHEMA, given_values)
    assert [report.code for report in reports] == codes


def test_of_unknown_arguments_so_many_are_reported() -> None:
    given_values = {f"of-{number}-force": 1 for number in range(40_000)}
    reports = check("status", VERBS["status"].arguments, given_values)[1]
    assert [each.code for each in reports] == [Code.UNKNOWN_ARGUMENT] * FAULTS_MAX + [Code.MORE_FAULTS]


def test_what_was_not_given_is_empty() -> None:
    arguments, _ = check("test", SCHEMA, {"name": "a"})
    assert (arguments.word("color"), arguments.words("others"), arguments.flag("loud")) == ("", (), False)
    assert arguments.integer("count", 5) == 5


def test_a_verb_that_is_not_there() -> None:
    outcome = registry.run("resource.mvoe", {}, Context(running().cib, NOW, "root"))
    assert [(report.code, report.remedy) for report in outcome.reports] == [
        (Code.UNKNOWN_VERB, "crm and this daemon are of different versions; see: crm --help")
    ]


WORDS = st.sampled_from(["", "n1", "n2", "n9", "web", "db", "site", "power", "cli-prefer-db", "primitive", "update"])
VALUES = st.one_of(
    WORDS, st.lists(WORDS, max_size=3), st.booleans(), st.integers(-3, 3), st.none(), st.text(max_size=5),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=1),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(registry.VERBS)), st.data())
def test_no_argument_makes_a_verb_raise(name: str, data: st.DataObject) -> None:
    cluster = running()
    known = [argument.name for argument in registry.VERBS[name].arguments]
    names = st.sampled_from(known) if known else st.text(max_size=3)
    given_values = data.draw(st.dictionaries(names | st.text(max_size=3), VALUES, max_size=4))
    context = Context(cluster.cib, NOW, "root", live=cluster.live, is_forced=data.draw(st.booleans()))
    outcome = registry.run(name, given_values, context)
    assert not (outcome.is_refused and outcome.commands)
    for command in outcome.commands:
        cluster.do(command)
