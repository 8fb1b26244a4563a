"""A verb of `verbs/` with the pure function that carries it out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.model.json_value import Json
from haclusterd.verbs.arguments import Arguments
from haclusterd.verbs.table import VERBS
from haclusterd.verbs.verb import Cost, Verb

VerbFunction = Callable[[Context, Arguments], Outcome]


@dataclass(frozen=True, slots=True)
class RunnableVerb(Verb):
    """One thing an administrator can do, and how it is done."""

    function: VerbFunction = field(kw_only=True)


def carry_out_by(
    name: str,
    function: VerbFunction,
    *,
    cost: Callable[[Mapping[str, Json]], Cost] | None = None,
    fences: Callable[[Mapping[str, Json]], bool] | None = None,
    only_asks: Callable[[Mapping[str, Json]], bool] | None = None,
) -> RunnableVerb:
    """Return the verb of this name with its function; what depends on its arguments, the function's file may judge."""
    described = {each.name: getattr(VERBS[name], each.name) for each in fields(Verb)}
    judged = {"cost": cost, "fences": fences, "only_asks": only_asks}
    known = {key: judge for key, judge in judged.items() if judge is not None}
    return RunnableVerb(**{**described, **known}, function=function)
