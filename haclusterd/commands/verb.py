"""A verb of `verbs/` with the pure function that carries it out."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Never, TypeVar, overload

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome, Outcome, refusal
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, fields, replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import each_once, report
from haclusterd.verbs.answers.answer import Answer, name_of
from haclusterd.verbs.arguments import Arguments, check
from haclusterd.verbs.table import VERBS
from haclusterd.verbs.verb import Cost, Verb

VerbFunction = Callable[[Context, Arguments], AnyOutcome]

A = TypeVar("A", bound=Answer)
B = TypeVar("B", bound=Answer)
C = TypeVar("C", bound=Answer)


@dataclass(frozen=True, slots=True)
class Kinds(Generic[A]):
    """The types of what a verb may answer.

    Invariant in its type: were it covariant, mypy would take `Answer` for the type that any function and any kinds have
    in common, and accept every pair.
    """

    types: tuple[type[Answer], ...]


@overload
def answers() -> Kinds[Never]: ...
@overload
def answers(first: type[A], /) -> Kinds[A]: ...
@overload
def answers(first: type[A], second: type[B], /) -> Kinds[A | B]: ...
@overload
def answers(first: type[A], second: type[B], third: type[C], /) -> Kinds[A | B | C]: ...
def answers(*types: type[Answer]) -> Kinds[Any]:
    """Name the types of what a verb may answer; none: reports say it all."""
    return Kinds(types)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnableVerb(Verb):
    """One thing an administrator can do, and how it is done."""

    function: VerbFunction


def carry_out_by(
    name: str,
    function: Callable[[Context, Arguments], Outcome[A]],
    kinds: Kinds[A],
    *,
    cost: Callable[[Mapping[str, Json]], Cost] | None = None,
    fences: Callable[[Mapping[str, Json]], bool] | None = None,
    only_asks: Callable[[Mapping[str, Json]], bool] | None = None,
) -> RunnableVerb:
    """Return the verb of this name with its function; what depends on its arguments, the function's file may judge.

    `kinds` are the answers of its description: by them mypy holds the function against it.
    """
    assert VERBS[name].answers == tuple(name_of(kind.SCHEMA) for kind in kinds.types), f"{name} is described otherwise"
    described = {each.name: getattr(VERBS[name], each.name) for each in fields(Verb)}
    judged = {"cost": cost, "fences": fences, "only_asks": only_asks}
    known = {key: judge for key, judge in judged.items() if judge is not None}
    return RunnableVerb(**{**described, **known}, function=function)


def run_verb(verb: RunnableVerb, arguments: Mapping[str, Json], context: Context) -> AnyOutcome:
    """Check the arguments and ask the verb; never raises for what a caller sends."""
    checked, objections = check(verb.name, verb.arguments, arguments)
    if objections:
        return refusal(*objections)
    version = context.cib.version
    if context.if_version not in (None, version.epoch):
        return refusal(report(Code.CONFLICT, author=version.author or "somebody", version=version.epoch))
    outcome = verb.function(context, checked)
    assert not (outcome.is_refused and outcome.commands), verb.name
    return replace(outcome, reports=each_once(outcome.reports))
