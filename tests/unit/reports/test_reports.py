"""Reports: the table is whole, rendering says everything, exit statuses follow the gravest."""

import pytest

from haclusterd.reports.codes import CODES, Code, Severity
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.reports.items import Place, exit_status, has_errors, in_reading_order, report
from haclusterd.reports.places import Places
from haclusterd.reports.rendering import render
from haclusterd.reports.suggestions import did_you_mean, nearest


def test_every_code_has_a_row_and_every_row_a_code() -> None:
    assert set(CODES) == set(Code)
    assert all(code.value == code.name for code in Code)


@pytest.mark.parametrize("code", Code)
def test_every_row_can_be_filled(code: Code) -> None:
    row = CODES[code]
    item = report(code, **dict.fromkeys(row.names, "{x}"))
    assert item.message
    assert "{{" not in item.message
    assert item.severity is row.severity
    assert (row.severity is Severity.ERROR) == (item.exit_status is not ExitStatus.OK)


def test_parameters_must_fit_the_template() -> None:
    with pytest.raises(AssertionError):
        report(Code.BAD_VALUE, name="x")
    with pytest.raises(AssertionError):
        report(Code.BAD_VALUE, name="x", problem="y", more="z")


def test_rendering() -> None:
    item = report(Code.BAD_ID, place=Place("site.yaml", 3, 7), id="9x")
    remedy = "start with a letter or _, continue with letters, digits, '.', '-' and '_'"
    assert render(item) == f"ERROR: site.yaml:3:7: '9x' cannot be an id ({remedy})"
    bare = report(Code.UNKNOWN_PROPERTY, name="x", remedy="", severity=Severity.WARNING)
    assert render(bare) == "WARNING: unknown cluster property x"


def test_rendering_cannot_steer_a_terminal() -> None:
    item = report(Code.SYNTAX, place=Place("a\nb", 1), problem="\x1b[31mï\u2028{problem}\ud800")
    assert render(item) == r"ERROR: a\nb:1: \x1b[31mï\u2028{problem}\ud800 (correct the text there)"


ERROR = report(Code.DUPLICATE_ID, id="a")
OTHER = report(Code.NOT_YET, construct="a clone")
WARNING = report(Code.FENCING_DISABLED)


@pytest.mark.parametrize(
    ("items", "status", "strict"),
    [
        ((), ExitStatus.OK, ExitStatus.OK),
        ((WARNING,), ExitStatus.OK, ExitStatus.FAILED),
        ((WARNING, ERROR, OTHER), ExitStatus.CONFIGURATION, ExitStatus.CONFIGURATION),
        ((OTHER, ERROR), ExitStatus.DATA, ExitStatus.DATA),
    ],
)
def test_exit_status(items: tuple, status: ExitStatus, strict: ExitStatus) -> None:
    assert exit_status(items) is status
    assert exit_status(items, is_strict=True) is strict
    assert has_errors(items) == (status is not ExitStatus.OK)


def test_reading_order() -> None:
    places = [None, Place("b", 1, 1), Place("a", 10, 1), Place("a", 2, 5), None, Place("a", 2, 1)]
    items = [report(Code.SYNTAX, place=place, problem=str(index)) for index, place in enumerate(places)]
    assert [item.message for item in in_reading_order(items)] == ["5", "3", "2", "1", "0", "4"]


def test_places_fall_back_to_what_is_around() -> None:
    places = Places({("resource", "a"): Place("f", 1), ("resource", "a", "meta", "b"): Place("f", 2)})
    assert places.find("resource", "a", "meta", "b", "c") == Place("f", 2)
    assert places.find("resource", "a", "params") == Place("f", 1)
    assert places.find("resource") is None
    assert places.find() is None


@pytest.mark.parametrize(
    ("word", "known", "guess"),
    [
        ("stickyness", ["resource-stickiness", "stickiness"], "stickiness"),
        ("META", ["meta", "params"], "meta"),
        ("zzz", ["meta", "params"], None),
        ("x", [], None),
    ],
)
def test_nearest(word: str, known: list[str], guess: str | None) -> None:
    assert nearest(word, known) == guess


def test_did_you_mean() -> None:
    assert did_you_mean("met", ["params", "meta"]) == "did you mean meta?"
    assert did_you_mean("zzz", ["params", "meta"]) == "one of: meta, params"
    assert did_you_mean("zzz", [str(number) for number in range(13)]) == "remove it"


def test_too_many_are_cut_and_errors_are_kept() -> None:
    warnings = [report(Code.FENCING_DISABLED, place=Place("f", number)) for number in range(150)]
    errors = [report(Code.SYNTAX, place=Place("f", 1000 - number), problem="x") for number in range(150)]
    shown = in_reading_order(warnings + errors)
    assert len(shown) == 201
    assert sum(item.code is Code.SYNTAX for item in shown) == 150
    assert shown[-1].code is Code.MORE_FAULTS
    assert not has_errors(in_reading_order(warnings * 2))


def test_a_word_longer_than_any_name_of_a_file_is_shown_in_part() -> None:
    name = "n" * 255
    assert name in report(Code.UNKNOWN_KEYWORD, word=name).message
    assert report(Code.UNKNOWN_KEYWORD, word="9" * 5000).message == f"unknown keyword {'9' * 80}..."
