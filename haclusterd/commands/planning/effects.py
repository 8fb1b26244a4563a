"""What a change makes the cluster do to what runs, in a sentence: said to who made it, as `--dry-run` shows it before.

Only what the change itself brings about: what the cluster would do anyway is left out.
"""

from collections.abc import Iterator

from haclusterd.cib.commands import Command
from haclusterd.commands.context import Context
from haclusterd.commands.planning.interruptions import interruptions
from haclusterd.commands.planning.planning import plan
from haclusterd.commands.planning.preview import folded
from haclusterd.model.graph import Plan
from haclusterd.model.ocf import ActionName
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report

NOTHING = "nothing that runs is interrupted"


def effects(context: Context, commands: tuple[Command, ...]) -> tuple[ReportItem, ...]:
    """Return what the plan after some commands reloads, restarts, moves, stops and demotes, and that before does not.

    Nothing where no cluster carries anything out: in a file, and when the scheduler fails.
    """
    cib, refused = folded(context, commands)
    if context.live is None or not commands or refused:
        return ()
    after = plan(cib, context.now)
    if not isinstance(after, Plan):
        return ()
    found = list(_effects(after))
    if found:
        before = plan(context.cib, context.now)
        known = set(_effects(before)) if isinstance(before, Plan) else set()
        found = [each for each in found if each not in known]
    together: dict[tuple[str, str], list[str]] = {}
    for what, resource, where in found:
        together.setdefault((what, where), []).append(resource)
    said = "; ".join(f"{what} {', '.join(resources)} {where}" for (what, where), resources in together.items())
    return (report(Code.REQUESTED, what=f"this {said}" if said else NOTHING),)


def _effects(found: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield what is done to which resource, and where, in order of the actions."""
    for _, action in sorted(found.graph.actions.items()):
        if action.is_named(ActionName.RELOAD_AGENT):
            yield "reloads", str(action.resource), f"on {action.node}, without a restart"
    for each in interruptions(found, lambda _: None):
        if each.role:
            yield "demotes", each.resource, f"on {each.node}"
        elif each.to is None:
            yield "stops", each.resource, f"on {each.node}"
        elif each.to == each.node:
            yield "restarts", each.resource, f"on {each.node}"
        else:
            yield "moves", each.resource, f"from {each.node} to {each.to}"
