"""The page on compatibility says what the program does: each row's examples are given to it."""

import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from haclusterd.cli.options import parse_globals
from haclusterd.cli.parsing import UsageError, parse
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.agents import AgentFacts
from haclusterd.reports.codes import Severity
from haclusterd.reports.items import ReportItem
from tests.administered_clusters import NOW, formed

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
CHAPTERS: list[dict[str, Any]] = tomllib.loads((REFERENCE / "compatibility.toml").read_text())["chapter"]
ROWS: list[dict[str, Any]] = [row for chapter in CHAPTERS for row in chapter["row"]]
BASE = "".join(f"primitive {name} ocf:haclusterd:dummy op monitor interval=10s\n" for name in ("web", "db", "log"))
STATES = {"works", "warned", "refused", "differs", "absent"}


def examples(*keys: str) -> Iterator[tuple[str, str, str]]:
    return ((row["subject"], row["here"], each) for row in ROWS for key in keys for each in row.get(key, ()))


INSTALLED = {
    name: AgentFacts()
    for name in (
        "ocf:haclusterd:dummy", "ocf:haclusterd:stateful", "stonith:fence_local", "stonith:external/sbd",
        "lsb:legacy", "systemd:nginx", "systemd:worker@one", "service:nginx",
    )
}


def severities(text: str) -> set[Severity]:
    return {each.severity for each in answers(text)}


def answers(text: str) -> list[ReportItem]:
    """Return what the program says of a text, beside what it says of the base alone."""
    context = Context(formed().cib, NOW, "root", agents=INSTALLED)
    base = [each.message for each in registry.run("configure.verify", {"text": BASE, "source": "t"}, context).reports]
    reports = registry.run("configure.verify", {"text": BASE + text, "source": "t"}, context).reports
    return [each for each in reports if each.message not in base]


def test_every_row_says_what_happens_and_none_is_ignored() -> None:
    assert {row["here"] for row in ROWS} <= STATES
    assert [row["subject"] for row in ROWS if not row["text"]] == []
    assert len(ROWS) >= 138


def test_every_setting_that_a_row_names_is_one_of_the_program() -> None:
    page = runpy.run_path(str(REFERENCE / "render.py"))
    for row in ROWS:
        for name in row.get("settings", ()):
            is_obeyed = page["here"](page["_row_of"](name)).startswith("works")
            assert is_obeyed is (row["here"] != "refused"), name


@pytest.mark.parametrize(("subject", "here", "text"), list(examples("crm")))
def test_a_text_is_answered_as_its_row_says(subject: str, here: str, text: str) -> None:
    found = severities(text)
    assert (Severity.ERROR in found) is (here == "refused"), subject
    if here == "warned":
        assert found & {Severity.WARNING, Severity.INFO}, subject


@pytest.mark.parametrize("text", [text for _, _, text in examples("refused")])
def test_what_a_row_excludes_is_refused(text: str) -> None:
    assert Severity.ERROR in severities(text)


@pytest.mark.parametrize(
    "text",
    [
        *(text for _, here, text in examples("crm") if here == "refused"),
        *(text for _, _, text in examples("refused")),
    ],
)
def test_what_is_refused_is_answered_with_what_to_do(text: str) -> None:
    remedies = [each.remedy for each in answers(text) if each.severity is Severity.ERROR]
    assert [each for each in remedies if not each or each.startswith("remove it; nothing of this")] == []


@pytest.mark.parametrize("words", [words for _, _, words in examples("words")])
def test_words_that_work_can_be_typed(words: str) -> None:
    parse(parse_globals(words.split()).words)


@pytest.mark.parametrize("words", [words for _, _, words in examples("words_instead")])
def test_words_that_do_not_are_answered_with_others(words: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(parse_globals(words.split()).words)
    assert raised.value.remedy
    assert not raised.value.remedy.startswith("see: ")
