"""Verbs about the configuration: load, statements, delete, verify."""

from collections.abc import Iterable

from haclusterd.commands.configure.adoption import adopt
from haclusterd.commands.configure.change import change
from haclusterd.commands.configure.deletion import delete as without_objects
from haclusterd.commands.configure.dependants import in_new_containers
from haclusterd.commands.configure.filters import chosen_ids
from haclusterd.commands.configure.merging import merged
from haclusterd.commands.configure.removal import removal
from haclusterd.commands.configure.script import (
    ALONE,
    Reading,
    edit,
    every_error,
    read_file,
    read_script,
    read_words,
)
from haclusterd.commands.configure.settling import settled_for
from haclusterd.commands.configure.view import ids_of, revealed, shown
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.commands.verify.configuration import verify as verify_configuration
from haclusterd.formats.crm.syntax import SECTIONS
from haclusterd.model.configuration import Configuration
from haclusterd.model.properties import CLUSTER_PROPERTIES, ClusterProperties, property_row
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.reports.items import ReportItem, exit_status, has_errors, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.configuration import (
    Change,
    Judgement,
    JudgementReport,
    PlaceInText,
    Properties,
    PropertyInForce,
)
from haclusterd.verbs.arguments import Arguments


def load(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Add and replace what a file names; with `replace`, remove everything else but nodes.

    Removing a resource stops it, so a replacement that does it must be meant: it is refused unless forced. A preview
    shows it all the same.
    """
    base, now = context.cib.configuration, context.cib.version
    if arguments.integer("version", now.epoch) != now.epoch:
        return refusal(report(Code.CONFLICT, author=now.author or "somebody", version=now.epoch))
    over = arguments.integer("over", now.epoch)
    if over != now.epoch:
        return _load_over(context, arguments, over)
    made = _loaded(context, arguments, base)
    if has_errors(made.reports):
        return Outcome(every_error(context, made))
    done = f"loaded {arguments.word('source') or 'the text'}"
    reports = (*made.reports, *_removed(context, arguments, made.configuration))
    return change(
        context, made.configuration, done=done, reports=reports, places=made.places, keeps_unknown=context.is_foreign
    )


def _load_over(context: Context, arguments: Arguments, version: int) -> Outcome[Change]:
    """Load what was written over an older version: the difference is put over the newest one, if it can be."""
    base, now = context.versions.configuration(version) if context.versions is not None else None, context.cib.version
    if base is None:
        return refusal(report(Code.CONFLICT, author=now.author or "somebody", version=now.epoch))
    made = _loaded(context, arguments, base)
    if has_errors(made.reports):
        return Outcome(every_error(context, made))
    whole, secrets = revealed(made.configuration, base, made.places)
    settled, on_the_way = settled_for(context, whole, made.places)
    new, conflicts = merged(context, version, base, settled)
    if conflicts:
        return refusal(*conflicts)
    done = f"loaded {arguments.word('source') or 'the text'}, over what was changed since version {version}"
    reports = (*made.reports, *secrets, *on_the_way, *_removed(context, arguments, new))
    return change(context, new, done=done, reports=reports, places=made.places)


def _loaded(context: Context, arguments: Arguments, base: Configuration) -> Reading:
    """Read the text over a base, or in the place of it; of the objects that were edited, those that it lacks go."""
    if arguments.word("mode") != "update":
        return read_text(context, arguments, Configuration(nodes=base.nodes))
    made = read_text(context, arguments, base)
    edited = chosen_ids(base, arguments.words("edited"), base)[0]
    if not edited or has_errors(made.reports):
        return made
    written = ids_of(read_text(context, arguments, Configuration()).configuration)
    gone = [each for each in edited if each not in written]
    new, found = without_objects(
        replace(context.cib, configuration=made.configuration), gone, cascade=arguments.flag("as_crmsh"),
        is_forced=context.is_forced or context.is_preview, is_as_crmsh=arguments.flag("as_crmsh"),
    )  # fmt: skip
    reports = tuple(_with_those_too(each, edited) for each in found)
    return replace(made, configuration=new, reports=(*made.reports, *reports))


def _removed(context: Context, arguments: Arguments, new: Configuration) -> tuple[ReportItem, ...]:
    """Name the resources that are gone; of those that were edited by name, only what runs is too dear to delete."""
    return () if arguments.words("edited") else removal(context, new)


def _with_those_too(item: ReportItem, edited: Iterable[str]) -> ReportItem:
    """Say how what an editor took out can go, or have another name, although others use it."""
    if item.code is not Code.HAS_DEPENDANTS:
        return item
    users = item.parameters["dependants"].replace(",", "")
    remedy = f"edit them too: crm configure edit {' '.join(edited)} {users}; for another name: crm configure rename"
    return replace(item, remedy=remedy)


def read_text(context: Context, arguments: Arguments, base: Configuration) -> Reading:
    """Read the argument `text`, in the language of `format` or of the name of `source`, over a base."""
    source = arguments.word("source") or "text"
    is_yaml = arguments.word("format") == "yaml" or (
        not arguments.word("format") and source.endswith((".yaml", ".yml"))
    )
    pairs = [word.partition("=") for word in arguments.words("variables")]
    wrong = [name for name, has_value, _ in pairs if not (name and has_value)]
    if wrong:
        problem = f"{wrong[0]!r} has no value: write NAME=VALUE"
        return Reading(base, (report(Code.BAD_ARGUMENT, name="variables", problem=problem),))
    variables = {name: value for name, _, value in pairs}
    text = arguments.word("text")
    if arguments.word("format") == "xml" or (not arguments.word("format") and source.endswith(".xml")):
        return adopt(text, source, base, stays_foreign=context.is_foreign)
    return read_file(context, text, source, is_yaml=is_yaml, base=base, variables=variables)


def statement(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Make one statement's change, as in `crm configure primitive ...`."""
    words = arguments.words("words")
    made = read_words(context, words)
    if has_errors(made.reports):
        return Outcome(every_error(context, made))
    done = f"committed {' '.join(words if words[0].lower() in SECTIONS else words[:2])}"
    return change(
        context, _redirected(context, arguments, made), done=done, reports=made.reports, places=made.places,
        keeps_unknown=context.is_foreign and arguments.flag("as_crmsh"),
    )  # fmt: skip


def script(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Make the changes of many statements at once, or none of them."""
    made = read_script(context, arguments.word("text"), arguments.word("source") or "script")
    if has_errors(made.reports):
        return Outcome(every_error(context, made))
    reports = (*made.reports, *(removal(context, made.configuration) if made.erases else ()))
    new = _redirected(context, arguments, made)
    return change(
        context, new, done="committed", reports=reports, places=made.places,
        keeps_unknown=context.is_foreign and arguments.flag("as_crmsh"),
    )  # fmt: skip


def _redirected(context: Context, arguments: Arguments, made: Reading) -> Configuration:
    """Return what was made; as crmsh, with constraints that name the new container of what they named."""
    if not arguments.flag("as_crmsh"):
        return made.configuration
    return in_new_containers(context.cib.configuration, made.configuration)


def erase(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Remove everything but nodes, or nodes too."""
    what, is_as_crmsh = arguments.word("what"), arguments.flag("as_crmsh")
    words = [word for word, is_wanted in ((what, what), (ALONE, what and is_as_crmsh)) if is_wanted]
    made = edit(context, Reading(context.cib.configuration), ("erase", *words))
    context = replace(context, is_forced=context.is_forced or is_as_crmsh)
    return change(context, made.configuration, done="erased", reports=removal(context, made.configuration))


def default_timeouts(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Give operations of primitives the timeouts that their agents advise."""
    ids = arguments.words("ids")
    return _edited(context, ("default-timeouts", *ids), f"{', '.join(ids)}: timeouts as the agents advise")


def delete(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Delete objects that nothing else uses; with `cascade`, also what uses them."""
    ids = arguments.words("ids")
    new, reports = without_objects(
        context.cib, ids, cascade=arguments.flag("cascade"), is_forced=context.is_forced,
        is_as_crmsh=arguments.flag("as_crmsh"),
    )  # fmt: skip
    if has_errors(reports):
        return Outcome(reports)
    return change(context, new, done=f"deleted {', '.join(ids)}", reports=reports)


def rename(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Rename an object, and all references to it."""
    old, new = arguments.word("old"), arguments.word("new")
    return _edited(context, ("rename", old, new), f"{old} is called {new} now")


def modify_group(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Add a member to a group, or remove one."""
    words = arguments.words("words")
    return _edited(context, ("modgroup", *words), f"group {words[0]} changed")


def set_one(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Change one value of what is configured."""
    path, value = arguments.word("path"), arguments.word("value")
    return _edited(context, ("set", path, value), f"{path} is {shown(path.rpartition('.')[2], value)} now")


def unset_one(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Take one value away, so that its default counts."""
    path = arguments.word("path")
    return _edited(context, ("unset", path), f"{path} is not set any more")


def _edited(context: Context, words: tuple[str, ...], done: str) -> Outcome[Change]:
    made = edit(context, Reading(context.cib.configuration), words)
    if has_errors(made.reports):
        return Outcome(made.reports)
    return change(context, made.configuration, done=done, reports=made.reports)


def verify(context: Context, arguments: Arguments) -> Outcome[Judgement]:
    """Check the configuration, or a file as if it were loaded (schema `haclusterd.verify/1`)."""
    made = Reading(context.cib.configuration)
    if arguments.word("text"):
        base = Configuration(nodes=context.cib.configuration.nodes)
        made = read_text(context, arguments, base)
    elif arguments.word("pending"):
        made = read_script(context, arguments.word("pending"), "uncommitted changes")
    found = made.reports
    if has_errors(found):
        found = every_error(context, made)
    else:
        whole, secrets = revealed(made.configuration, context.cib.configuration, made.places)
        settled, on_the_way = settled_for(context, whole, made.places)
        found = (*found, *secrets, *on_the_way)
        judged = verify_configuration(
            settled, members=context.cib.members, agents=context.agents, places=made.places,
            is_foreign=context.is_foreign, keeps_unknown=context.is_foreign and bool(arguments.word("text")),
        )  # fmt: skip
        found = (*found, *judged)
    status = exit_status(found, is_strict=arguments.flag("strict"))
    answer = Judgement(
        is_valid=not has_errors(found),
        reports=tuple(map(_judged, found)),
    )
    is_fine = status is ExitStatus.OK
    return Outcome(found, answer=answer, exit_status=None if is_fine else int(status))


def _judged(item: ReportItem) -> JudgementReport:
    place = item.place
    return JudgementReport(
        code=str(item.code),
        severity=str(item.severity),
        message=item.message,
        parameters=dict(sorted(item.parameters.items())),
        place=PlaceInText(place.file, place.line, place.column) if place else None,
        remedy=item.remedy or None,
    )


def get_property(context: Context, arguments: Arguments) -> Outcome[Properties]:
    """Answer cluster properties with their values in force (schema `haclusterd.properties/1`)."""
    names = arguments.words("names") or tuple(row.name for row in CLUSTER_PROPERTIES)
    properties = ClusterProperties(context.cib.in_force)
    rows: list[PropertyInForce] = []
    unknown = []
    for name in names:
        row = property_row(name)
        if row is None:
            known = [each.name for each in CLUSTER_PROPERTIES]
            remedy = did_you_mean(name, known, "see: crm configure get_property")
            unknown.append(report(Code.UNKNOWN_PROPERTY, name=name, remedy=remedy))
            continue
        value = properties.text(row.name)
        rows.append(PropertyInForce(name=row.name, value=value, is_default=value == row.default, meaning=row.doc))
    if unknown:
        return refusal(*unknown)
    return Outcome(answer=Properties(tuple(rows)))


VERBS = (
    carry_out_by("configure.load", load, answers(Change)),
    carry_out_by("configure.statement", statement, answers(Change)),
    carry_out_by("configure.script", script, answers(Change)),
    carry_out_by("configure.delete", delete, answers(Change)),
    carry_out_by("configure.erase", erase, answers(Change)),
    carry_out_by("configure.default_timeouts", default_timeouts, answers(Change)),
    carry_out_by("configure.rename", rename, answers(Change)),
    carry_out_by("configure.modgroup", modify_group, answers(Change)),
    carry_out_by("configure.set", set_one, answers(Change)),
    carry_out_by("configure.unset", unset_one, answers(Change)),
    carry_out_by("configure.verify", verify, answers(Judgement)),
    carry_out_by("configure.get_property", get_property, answers(Properties)),
)
