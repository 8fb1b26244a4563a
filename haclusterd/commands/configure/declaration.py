"""A configuration declared as a text: whatever it says is made so, and with a tag, what it says no more is removed.

Invariant: a text that is applied twice changes nothing the second time. Only what an earlier text with the same tag
defined is ever removed. What people set with commands while the cluster runs (a stopped resource, maintenance, a node
on standby) stays until the text itself says otherwise: a text that is applied every half hour does not start what
somebody has stopped at night.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from haclusterd.cib.commands import ChangeConfiguration
from haclusterd.cib.edits import apply_edits
from haclusterd.commands.attribute_sets import with_value
from haclusterd.commands.configure.change import change
from haclusterd.commands.configure.configure import read_text
from haclusterd.commands.configure.removal import removal
from haclusterd.commands.configure.script import Reading, every_error
from haclusterd.commands.configure.view import unified
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.configuration import AttributeSet, Configuration, Tag, effective
from haclusterd.model.ids import NCNAME
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, has_errors, report
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.arguments import Arguments

CHANGED = 10
"""What `crm` ends with when something was changed."""
_PRUNED = ("resources", "constraints", "templates", "tags")
_OF_RESOURCES = {
    "target-role": "crm resource start", "is-managed": "crm resource manage", "maintenance": "crm resource maintenance",
}  # fmt: skip
_OF_NODES = {"standby": "crm node online", "maintenance": "crm node ready"}
"""What people set with commands, each with the command that ends it."""
_KINDS = frozenset({"resource", "constraint", "template", "tag"})


def apply(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Make what a text says so (schema `haclusterd.change/1`, with `changed`, and the difference if asked for it)."""
    base, tag = context.cib.configuration, arguments.word("prune")
    if tag and not NCNAME.match(tag):
        return refusal(report(Code.BAD_ID, id=tag))
    if tag in base.resources or tag in base.constraints or tag in base.templates:
        return refusal(report(Code.EXISTS, kind="object", id=tag, remedy="choose another tag"))
    kept = _without(base, base.tags[tag].references if tag in base.tags else ())
    made = read_text(context, arguments, kept)
    if has_errors(made.reports):
        return Outcome(every_error(context, made))
    operated, kept_reports = _as_operated(base, made.configuration)
    declared = _tagged(replace(made, configuration=operated), tag) if tag else operated
    new = _arranged(base, declared)
    reports = (*made.reports, *kept_reports, *removal(context, new))
    done = f"applied {arguments.word('source') or 'the text'}"
    outcome = change(context, new, done=done, reports=reports, places=made.places)
    if outcome.is_refused or not isinstance(outcome.answer, Change):
        return outcome
    is_changed = bool(outcome.commands)
    answer = replace(outcome.answer, changed=is_changed)
    if arguments.flag("difference"):
        answer = replace(answer, difference="\n".join(_difference(context, outcome, answer)))
    return replace(outcome, answer=answer, exit_status=CHANGED if is_changed else None)


def _as_operated(base: Configuration, declared: Configuration) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Keep what commands have set on resources and nodes, where the text says nothing about it."""
    reports: list[ReportItem] = []
    resources = dict(declared.resources)
    for key, before in base.resources.items():
        after = resources.get(key)
        if after is None or after is before:
            continue
        for name, value in _left(before.meta, after.meta, _OF_RESOURCES, key, reports):
            after = replace(after, meta=with_value(after.meta, owner=key, section="meta", name=name, value=value))
        resources[key] = after
    nodes = dict(declared.nodes)
    for node, entry in base.nodes.items():
        now = nodes.get(node)
        if now is None or now is entry:
            continue
        for name, value in _left(entry.attributes, now.attributes, _OF_NODES, node, reports):
            kept = with_value(now.attributes, owner=f"nodes-{node}", section="attributes", name=name, value=value)
            now = replace(now, attributes=kept)
        nodes[node] = now
    return replace(declared, resources=resources, nodes=nodes), tuple(reports)


def _left(
    before: tuple[AttributeSet, ...], after: tuple[AttributeSet, ...], names: Mapping[str, str], owner: str,
    reports: list[ReportItem],
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Yield what stays of some names with their values, and report it."""
    said = {name for block in after for name, _ in block.pairs}
    for name, value in effective(before).items():
        if name in names and name not in said:
            why = f"a command has set it, and the text does not name it; {names[name]}, or write it down"
            reports.append(report(Code.KEPT, what=f"{owner}: {name}={value}", why=why, severity=Severity.INFO))
            yield name, value


def _difference(context: Context, outcome: Outcome[Change], answer: Change) -> list[str]:
    """Return what the edits do: not all that a text says is kept as it is written there."""
    base = new = context.cib.configuration
    for command in outcome.commands:
        if isinstance(command, ChangeConfiguration):
            new = apply_edits(new, command.edits)
    return unified(base, new, (answer.from_version, answer.to_version), context.agents)


def _without(base: Configuration, ids: tuple[str, ...]) -> Configuration:
    left: dict[str, Any] = {
        section: {key: each for key, each in getattr(base, section).items() if key not in ids} for section in _PRUNED
    }
    return replace(base, **left)


def _tagged(made: Reading, tag: str) -> Configuration:
    """Give everything that the text defines the tag; a tag of nothing there cannot be."""
    defined = tuple(dict.fromkeys(path[1] for path in made.places.known if len(path) == 2 and path[0] in _KINDS))
    others = {key: each for key, each in made.configuration.tags.items() if key != tag}
    references = tuple(each for each in defined if each != tag)
    tags = {**others, tag: Tag(tag, references)} if references else others
    return replace(made.configuration, tags=tags)


def _arranged(base: Configuration, new: Configuration) -> Configuration:
    """Leave what was there before at its place: plans depend on the order."""
    sections: dict[str, Any] = {}
    for section in ("nodes", *_PRUNED):
        before, after = getattr(base, section), getattr(new, section)
        names = (*(key for key in before if key in after), *(key for key in after if key not in before))
        sections[section] = {key: after[key] for key in names}
    return replace(new, **sections)


VERBS = (carry_out_by("configure.apply", apply, answers(Change)),)
