"""The one way to a verb for everybody who asks: what they may ask, what the verb sees, what it may change.

Invariant: who is restricted by access control lists is answered from a CIB without what they may not read; what a verb
proposes for them is judged before it leaves here, and before any agent is asked about it, which is done as root; a
guess of what they may not read is not confirmed; and no answer has a name in it that they cannot know. The judgement is
made over the CIB that the verb decides over, and a change of the configuration is proposed against its version: if the
lists change before it is committed, it is refused and judged again (docs/design/0014-who-may.md).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from haclusterd.cib.commands import ChangeConfiguration
from haclusterd.cib.edits import apply_edits
from haclusterd.commands.access.judgement import Objection, objections, refused
from haclusterd.commands.access.view import WORDS, View, bare_of, configuration_seen, text_seen, view_of
from haclusterd.commands.configure.view import unified
from haclusterd.commands.context import Context, ListedVersion, Versions
from haclusterd.commands.outcome import AnyOutcome, refusal
from haclusterd.commands.permissions import Rules
from haclusterd.commands.tools import cib as cib_text
from haclusterd.commands.verb import RunnableVerb, run_verb
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.verb import Permission, Verb

ABOUT_ONESELF = frozenset({"api.whoami", "acl.whoami", "acl.can"})
"""Verbs that also those may ask who may see nothing."""


def not_permitted(verb: Verb | None, arguments: Mapping[str, Json], context: Context) -> ReportItem | None:
    """Return why a verb may not be asked at all; None: it may."""
    needed = Permission.READ if verb is None else verb.permission_for(arguments)
    if context.access.permission.covers(needed):
        return None
    return report(
        Code.NOT_PERMITTED, verb="it" if verb is None else verb.name, permission=str(needed), remedy=context.access.why
    )


def ask(verb: RunnableVerb, arguments: Mapping[str, Json], context: Context) -> AnyOutcome:
    """Ask a verb in the name of who asks."""
    objection = not_permitted(verb, arguments, context)
    if objection is not None:
        return refusal(objection)
    rules = context.access.rules
    if rules is None:
        return run_verb(verb, arguments, context)
    needed = verb.permission_for(arguments)
    if verb.name in ABOUT_ONESELF and needed is Permission.READ:
        return run_verb(verb, arguments, context)
    is_operating = Permission.OPERATE.covers(needed)
    view = view_of(context.cib, rules, is_operating=is_operating, said=words_of(arguments))
    if view.shows_nothing and not rules.may_write:
        return refusal(report(Code.ACL_DENIED, verb=verb.name, what="nothing may be read", rule=context.access.why))
    may_change = verb.may_change and not verb.only_asks(arguments)
    if not may_change:
        return _answered_from_view(verb, arguments, context, view, rules)
    judged = _judged_change(verb, arguments, replace(context, validations=None), view, rules)
    return judged if judged.is_refused else _judged_change(verb, arguments, context, view, rules)


def _answered_from_view(
    verb: RunnableVerb, arguments: Mapping[str, Json], context: Context, view: View, rules: Rules
) -> AnyOutcome:
    whole = view.rights.of(view.rights.root)
    if verb.permission_for(arguments) is not Permission.READ and not whole.may_write:
        what = "it shows secrets, or all that there is"
        return refusal(report(Code.ACL_DENIED, verb=verb.name, what=what, rule=whole.rule))
    return clean(run_verb(verb, arguments, _seen(context, view.cib, rules)), view)


def _seen(context: Context, cib: Cib, rules: Rules) -> Context:
    """Return what a verb gets to answer from what may be read."""
    versions = None if context.versions is None else _SeenVersions(context.versions, rules)
    return replace(context, cib=cib, versions=versions, seen_xml=lambda: text_seen(cib_text.whole(context), rules))


def _judged_change(
    verb: RunnableVerb, arguments: Mapping[str, Json], context: Context, view: View, rules: Rules
) -> AnyOutcome:
    is_operating = Permission.OPERATE.covers(verb.permission_for(arguments))
    is_decided, guessed = _objections_to_guesses(verb, arguments, context, view, rules)
    if guessed:
        return _denied(verb, guessed, view)
    outcome = run_verb(verb, arguments, context)
    if outcome.is_refused:
        return clean(outcome, view)
    whole = view.rights.of(view.rights.root)
    if outcome.invite is not None and not whole.may_write:
        return refusal(report(Code.ACL_DENIED, verb=verb.name, what="nobody may be let in", rule=whole.rule))
    found = objections(context.cib, rules, outcome.commands, is_operating=is_operating)
    if not is_decided and (found or not (outcome.commands or outcome.invite)):
        # In the same words: who may not read something learns neither that it is so already, nor what it would change.
        rule = "no permission shows it"
        return refusal(report(Code.ACL_DENIED, verb=verb.name, what="what may not be read is concerned", rule=rule))
    if found:
        return _denied(verb, found, view)
    return clean(_with_seen_difference(outcome, context, rules), view)


def _objections_to_guesses(
    verb: RunnableVerb, arguments: Mapping[str, Json], context: Context, view: View, rules: Rules
) -> tuple[bool, list[Objection]]:
    """Return what of a change may not be done, judged over what may be read alone; and whether it can be judged so.

    There whatever may not be read is missing, so that who states it adds it, whether they have guessed it or not. A
    verb that needs something hidden is judged over the CIB in which hidden objects stand bare.
    """
    if view.hides_nothing(context.cib):
        return True, []
    is_operating = Permission.OPERATE.covers(verb.permission_for(arguments))
    for cib in (view.cib, bare_of(context.cib, view, rules, keeps_agents=is_operating)):
        outcome = run_verb(verb, arguments, replace(_seen(context, cib, rules), validations=None))
        if not outcome.is_refused:
            return True, objections(cib, rules, outcome.commands, is_operating=is_operating)
    return False, []


def _denied(verb: RunnableVerb, found: Sequence[Objection], view: View) -> AnyOutcome:
    names = view.names
    return refusal(*(refused(verb.name, each, is_seen=names.out_of(each.element) == each.element
                             and (each.decision.may_read or each.act == "added"))
                     for each in found))  # fmt: skip


def _with_seen_difference(outcome: AnyOutcome, context: Context, rules: Rules) -> AnyOutcome:
    """Show the difference that a change makes to what may be read."""
    answer = outcome.answer
    if not isinstance(answer, Change) or not answer.difference:
        return outcome
    base = new = context.cib.configuration
    for command in outcome.commands:
        if isinstance(command, ChangeConfiguration):
            new = apply_edits(new, command.edits)
    before, after = configuration_seen(base, rules), configuration_seen(new, rules)
    lines = unified(before, after, (answer.from_version, answer.to_version), context.agents)
    return replace(outcome, answer=replace(answer, difference="\n".join(lines)))


def clean(outcome: AnyOutcome, view: View) -> AnyOutcome:
    """Return an outcome without names that may not be known; also what is answered after the waiting has ended."""
    names = view.names
    if not names.hidden:
        return outcome
    afterwards: Callable[..., Any] | None = None
    if outcome.afterwards is not None:
        then = outcome.afterwards

        def afterwards(cib: Any, is_met: bool) -> AnyOutcome:
            return clean(then(cib, is_met), view)

    return replace(
        outcome,
        reports=tuple(map(names.item, outcome.reports)),
        answer=names.out_of(outcome.answer),
        waiting_for=names.out_of(outcome.waiting_for),
        afterwards=afterwards,
    )


@dataclass(frozen=True, slots=True)
class _SeenVersions:
    """Versions of the configuration without what may not be read now."""

    versions: Versions
    rules: Rules

    def listed(self) -> tuple[ListedVersion, ...]:
        return self.versions.listed()

    def configuration(self, number: int) -> Configuration | None:
        found = self.versions.configuration(number)
        return None if found is None else configuration_seen(found, self.rules)

    def problem(self) -> str:
        return self.versions.problem()


def cleaned(context: Context, arguments: Mapping[str, Json], outcome: AnyOutcome) -> AnyOutcome:
    """Return an outcome that was made over the whole CIB without what the asker may not know."""
    rules = context.access.rules
    return outcome if rules is None else clean(outcome, view_of(context.cib, rules, said=words_of(arguments)))


def words_of(arguments: Mapping[str, Json]) -> frozenset[str]:
    """Return the words that somebody asks with: a name that they write is left as it is, whether it is one or not."""
    found: set[str] = set()
    pending: list[Json] = list(arguments.values())
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            found.update((value, *WORDS.findall(value)))
        elif isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, Sequence):
            pending += value
    return frozenset(found)
