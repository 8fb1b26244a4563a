"""Records: what `haclusterd.model.records` makes behaves as the standard library's dataclasses do."""

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from haclusterd.model import records

T = TypeVar("T")


def _classes(dataclass: Callable[..., Any], field: Callable[..., Any]) -> dict[str, Any]:
    """Return the same classes, made by either module."""

    @dataclass(frozen=True, slots=True)
    class Point:
        """Where it is."""

        KIND: ClassVar[str] = "point"
        x: int
        y: int = 0
        names: frozenset[str] = field(default_factory=frozenset)

        def moved(self) -> int:
            return self.x + self.y

    @dataclass(frozen=True, slots=True)
    class Named(Point):
        name: str = "-"

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Keyed(Point):
        key: bytes = field(repr=False)

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        first: int
        second: str = "b"

    @dataclass(slots=True)
    class Counter:
        count: int = 0
        seen: list[int] = field(default_factory=list)
        double: int = field(init=False)

        def __post_init__(self) -> None:
            self.double = 2 * self.count

    @dataclass(slots=True, eq=False)
    class Unique:
        count: int = 0

    @dataclass(frozen=True, slots=True)
    class Holder(Generic[T]):
        held: T

    class Bare(Point):
        pass

    return {each.__name__: each for each in (Point, Named, Keyed, Ordered, Counter, Unique, Holder, Bare)}


MADE, STANDARD = _classes(records.dataclass, records.field), _classes(dataclasses.dataclass, dataclasses.field)
PROGRAMS = (
    "Point(1)", "Point(1, y=2).moved()", "Point(1) == Point(1, 0)", "Point(1) == Point(2)", "Point(1) == Named(1)",
    "Point.KIND, Point.__doc__", "hash(Point(1)) == hash(Point(1, 0, frozenset()))", "Named(1, name='a')", "Bare(3)",
    "isinstance(Named(1), Point)", "Keyed(1, key=b'secret')", "Keyed(1, key=b'a') == Keyed(1, key=b'b')",
    "sorted([Ordered(2), Ordered(1, 'c'), Ordered(1)])", "Counter(2)", "Counter() == Counter()", "Unique() == Unique()",
    "len({Unique(), Unique()})", "Holder('a')", "replace(Point(1, 2), y=5)",
    "replace(Counter(2), count=3).double", "[each.name for each in fields(Named)]",
    "[each.default for each in fields(Point)][1:2]", "fields(Counter)[1].default_factory",
    "fields(Point(1))[0].name", "is_dataclass(Point), is_dataclass(Point(1)), is_dataclass(3)",
    "asdict(Holder((Point(1), [Point(2)])))", "hasattr(Point(1), '__dict__')", "Point.__match_args__",
)  # fmt: skip
REFUSALS = (
    "Point()", "Point(1, 2, frozenset(), 4)", "Point(z=1)", "setattr(Point(1), 'x', 2)", "delattr(Point(1), 'x')",
    "setattr(Counter(), 'other', 2)", "hash(Counter())", "replace(Point(1), z=1)", "Keyed(1, 2, frozenset(), b'a')",
    "Point(1) < Point(2)",
)  # fmt: skip


def run(program: str, module: Any, classes: dict[str, Any]) -> Any:
    named = {name: getattr(module, name) for name in ("replace", "fields", "is_dataclass", "asdict")}
    return eval(program, {**named, **classes})  # noqa: S307 (a table of this file)


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_answers_as_the_standard_librarys(program: str) -> None:
    answers = (repr(run(program, *each)) for each in ((records, MADE), (dataclasses, STANDARD)))
    made, standard = (answer.replace("_classes.<locals>.", "") for answer in answers)
    assert made == standard


@pytest.mark.parametrize("program", REFUSALS)
def test_it_refuses_what_the_standard_librarys_refuse(program: str) -> None:
    kinds = []
    for module, classes in ((dataclasses, STANDARD), (records, MADE)):
        with pytest.raises((TypeError, AttributeError)) as refused:
            run(program, module, classes)
        kinds.append(AttributeError if isinstance(refused.value, AttributeError) else TypeError)
    assert kinds[0] is kinds[1]


def test_what_a_field_cannot_have_is_refused_where_it_is_written() -> None:
    for unknown in ("metadata", "kw_only", "compare"):
        with pytest.raises(TypeError):
            records.field(**{unknown: True})


@pytest.mark.parametrize("point", [MADE["Point"], STANDARD["Point"]])
def test_without_the_decorator_a_class_has_the_fields_of_its_base_only(point: Any) -> None:
    class Plain(point):
        z: int = 5

    plain = Plain(1, 2)
    assert (plain.z, Plain.z, plain.x, plain == Plain(1, 2)) == (5, 5, 1, True)
    with pytest.raises(TypeError):
        Plain(1, z=3)


def test_records_leave_typing_extensions_as_it_was() -> None:
    for before, after in (("", "False"), ("import typing_extensions; ", "True")):
        program = (
            f"import sys; {before}import haclusterd.model.records\n"
            "print('typing_extensions' in sys.modules)\n"
            "import typing_extensions"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == f"{after}\n"
