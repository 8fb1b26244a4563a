"""The list of mutants follows the code, and the tool tells a test that fails from one that passes."""

import ast
import json
import os
import signal
import textwrap
from pathlib import Path
from types import CodeType

import pytest

from tests.mutants.__main__ import (
    Answers,
    cases_of,
    load_noticed,
    main,
    neighbours,
    noticing,
    parser,
    write_noticed,
)
from tests.mutants.curated import CURATED
from tests.mutants.generated import all_generated, sample
from tests.mutants.noticing import CHECKOUT, Judgement, Level, Verdict, files_for, run_limited
from tests.mutants.reaching import ASKED, WRITTEN, Reached, Reaching, function_key, in_portions, load_reached
from tests.mutants.sites import MissingCodeError, Mutant, find, functions, place_of, source_of

LISTED_MIN = 80


@pytest.mark.parametrize("mutant", CURATED, ids=lambda mutant: mutant.name)
def test_the_code_of_a_mutant_is_there_once_and_is_changed(mutant: Mutant) -> None:
    place = find(mutant)
    source = source_of(place.path)
    column = place.begin - source.rfind(b"\n", 0, place.begin) - 1
    assert code_of(mutant.after) != code_of(" " * column + source[place.begin : place.end].decode())


def code_of(text: str) -> str:
    """Return what an expression or statements mean, without their layout."""
    try:
        return ast.dump(ast.parse(f"({text})", mode="eval"))
    except SyntaxError:
        return ast.dump(ast.parse(textwrap.dedent(text)))


def test_there_are_enough_and_none_twice() -> None:
    assert len(CURATED) >= LISTED_MIN
    assert len({(each.where, each.before, each.after) for each in CURATED}) == len(CURATED)


def test_code_that_has_gone_is_named() -> None:
    with pytest.raises(MissingCodeError, match="possibly_active: 0 places have `status is gone`"):
        find(Mutant("possibly_active", "status is gone", "True", ""))
    with pytest.raises(MissingCodeError, match="no such function"):
        find(Mutant("possibly_inactive", "True", "False", ""))


def test_mutants_by_rule_are_the_same_each_time_and_cover_every_kind() -> None:
    assert sample(20, seed=3) == sample(20, seed=3)
    assert sample(20, seed=3) != sample(20, seed=4)
    kinds = {each.name.split()[1] for each in all_generated()}
    assert kinds == {"comparison", "connective", "bound", "negation", "guard"}


def test_every_file_has_tests_that_could_notice() -> None:
    for path in {find(each).path for each in CURATED}:
        for level in (Level.UNITS, Level.SCENARIOS):
            files = files_for(path, level)
            assert files, (path, level)
            assert all((CHECKOUT / file).is_file() for group in files for file in group)


def test_the_swarm_is_asked_about_as_many_as_wanted_and_the_same_each_time() -> None:
    def asked(*arguments: str) -> list[str]:
        return [case.name for case in cases_of(parser().parse_args(arguments)) if case.is_for_swarm]

    assert asked("--swarm", "600", "--sample", "5") == asked("--swarm", "600", "--sample", "5")
    assert len(asked("--swarm", "600", "--sample", "5", "--generated", "10")) == 5
    assert asked("--swarm", "600") == [each.name for each in CURATED]
    assert asked("--sample", "5") == []


def test_the_test_that_noticed_is_written_down_and_what_others_noticed_stays(tmp_path: Path) -> None:
    first, second, *_ = cases_of(parser().parse_args([]))
    file, answers = tmp_path / "noticed.txt", Answers(tmp_path / "answers")
    answers.keep(first, Level.UNITS, Judgement(Verdict.SURVIVED, 9.0, ""))
    answers.keep(first, Level.SCENARIOS, Judgement(Verdict.NOTICED, 1.0, "tests/simulation/test_it.py::test_it[a b]"))
    write_noticed(file, [first], answers)
    answers.keep(second, Level.UNITS, Judgement(Verdict.NOTICED, 1.0, "ERROR tests/unit/test_it.py - NameError: x"))
    write_noticed(file, [second], answers)
    assert {name: (each.level, each.test) for name, each in load_noticed(file).items()} == {
        first.name: (Level.SCENARIOS, "tests/simulation/test_it.py::test_it[a b]"),
        second.name: (Level.UNITS, "tests/unit/test_it.py"),
    }


@pytest.mark.parametrize("words", ["still running after 900 s", "VIOLATION seed 3", "exit code 3"])
def test_what_is_no_test_is_not_written_down(tmp_path: Path, words: str) -> None:
    case = cases_of(parser().parse_args([]))[0]
    answers = Answers(tmp_path / "answers")
    answers.keep(case, Level.UNITS, Judgement(Verdict.NOTICED, 900.0, words))
    assert noticing(case, answers) is None


def test_what_noticed_mutants_of_the_same_file_is_asked_first(tmp_path: Path) -> None:
    cases = [case for case in cases_of(parser().parse_args([])) if case.name.startswith("ActingAlone.")]
    same = [case for case in cases if case.name.startswith("ActingAlone.ended:")]
    asked, near, far = same[0], same[1], next(case for case in cases if case not in same)
    answers = Answers(tmp_path / "answers")
    for case, test in ((far, "test_far"), (near, "test_near[1]"), (asked, "test_asked")):
        answers.keep(case, Level.UNITS, Judgement(Verdict.NOTICED, 1.0, f"tests/unit/test_it.py::{test}"))
    assert neighbours(asked, Level.UNITS, cases, answers) == [
        "tests/unit/test_it.py::test_near",
        "tests/unit/test_it.py::test_far",
    ]
    assert neighbours(asked, Level.SCENARIOS, cases, answers) == []


def test_what_never_ends_is_ended_after_its_processor_time(tmp_path: Path) -> None:
    code, output = run_limited(("-c", "print('begun', flush=True)\nwhile True: pass"), tmp_path, 1, os.environ)
    assert (code, output) == (-signal.SIGXCPU, "begun\n")


def test_a_function_is_where_python_has_it_begin() -> None:
    places = [find(each) for each in CURATED]
    for path in {place.path for place in places}:
        codes = [compile(source_of(path), str(path), "exec")]
        lines = set()
        for code in codes:
            lines.add(code.co_firstlineno)
            codes += [each for each in code.co_consts if isinstance(each, CodeType)]
        keys = {function_key(place) for place in places if place.path == path}
        assert keys <= {f"{path}:{line}" for line in lines}


def test_tests_that_run_a_function_are_found(tmp_path: Path) -> None:
    """Also in a thread and in a fixture; what a test before has run is not counted, and no test that fails."""
    (tmp_path / "test_some.py").write_text(
        textwrap.dedent(
            """
            import threading
            import pytest
            from haclusterd.model.durations import render

            @pytest.fixture
            def named():
                render(1000)

            def test_with_a_fixture(named): pass
            def test_without(): pass
            def test_that_fails(named): assert False
            @pytest.mark.parametrize("text", [1000, 2000])
            def test_in_a_thread(text):
                thread = threading.Thread(target=render, args=(text,))
                thread.start()
                thread.join()
            """
        )
    )
    asked = "durations", "render"
    place = next(place_of(path, node) for path, name, node in functions() if (path.stem, name) == asked)
    (tmp_path / "asked").write_text(json.dumps([function_key(place)]))
    environment = {**os.environ, ASKED: str(tmp_path / "asked"), WRITTEN: str(tmp_path)}
    command = ("-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider")
    code, output = run_limited((*command, "-p", "tests.mutants.reaching", str(tmp_path)), CHECKOUT, 60, environment)
    assert code == pytest.ExitCode.TESTS_FAILED, output
    reached = load_reached(tmp_path)
    assert {each.test for each in reached.by(place)} == {
        "test_some.py::test_with_a_fixture",
        "test_some.py::test_in_a_thread",
    }
    assert Reached.from_rows(reached.as_rows()) == reached


def test_the_quickest_tests_are_asked_first_and_all_of_them_in_the_end() -> None:
    tests = [Reaching(f"test_{seconds}", seconds) for seconds in (0.5, 1, 1, 4, 30)]
    assert in_portions(tests, (2, 10)) == [["test_0.5", "test_1"], ["test_1", "test_4"], ["test_30"]]
    assert in_portions(tests[-1:], (2,)) == [["test_30"]]
    assert in_portions([], (2,)) == []


@pytest.mark.slow
def test_a_broken_line_is_noticed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = main(["--only", "decode_snapshot:*", "--jobs", "1", "--trust", "--answers", str(tmp_path / "answers")])
    assert (code, capsys.readouterr().out.splitlines()[-1].partition(" survivors")[0]) == (
        0, "RESULT listed=1 noticed_percent=100.0",
    )  # fmt: skip
