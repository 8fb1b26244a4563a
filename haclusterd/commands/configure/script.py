"""A configuration as text, read against a base: whole files, scripts with deletions, single statements.

Invariant: a text is used wholly or not at all; every fault of it is reported at once, with its place.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from haclusterd.commands.configure.deletion import delete
from haclusterd.commands.configure.operation_advice import with_advised_timeouts
from haclusterd.commands.configure.rearrangement import modify_group, rename
from haclusterd.commands.configure.settling import settled_for
from haclusterd.commands.configure.value_setting import set_value, unset_value
from haclusterd.commands.context import Context
from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.crm.syntax import Mode, Script, assemble, parse_script, parse_words
from haclusterd.formats.crm.tokens import read_lines
from haclusterd.formats.policy.yaml import read_policy
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import AgentReference, NodeName
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import Place, ReportItem, has_errors, in_reading_order, report
from haclusterd.reports.places import Places

_EDITS = ("delete", "rm", "rename", "modgroup", "set", "unset", "erase", "default-timeouts", "default_timeouts")
ALONE = "alone"
"""After `erase nodes`: nothing but them is removed, as crmsh does it."""
AS_CRMSH = "--as-crmsh"
_FORCE = ("-f", "-F", "--force")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text makes of a base; with an error among the reports, `configuration` is not to be used."""

    configuration: Configuration
    reports: tuple[ReportItem, ...] = ()
    places: Places = Places()
    unread: frozenset[str] | None = frozenset()
    """With errors: the ids that what could not be read would define; None: not known."""
    erases: bool = False
    """Whether everything was taken out on the way, so that what is missing at the end is removed."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A run of statements, or one edit of what is there, padded with empty lines so that places are right."""

    text: str
    edit: tuple[str, ...] = ()
    """Word by word."""
    line: int = 0
    """Of an edit."""


def known_agents(context: Context) -> tuple[AgentReference, ...]:
    """Return the installed agents, for names without a provider."""
    return tuple(AgentReference.parse(name) for name in context.agents or ())


def read_file(
    context: Context, text: str, source: str, *, is_yaml: bool, base: Configuration, variables: Mapping[str, str]
) -> Reading:
    """Read a policy or a crm file; what the base has of the same id is replaced. `variables` are a policy's."""
    agents = known_agents(context)
    if is_yaml:
        return _assembled(read_policy(text, source, variables, known_agents=agents), base, Mode.UPDATE, ())
    return _assembled(parse_script(text, source, known_agents=agents), base, Mode.UPDATE, _members(context))


def read_words(context: Context, words: Sequence[str]) -> Reading:
    """Read one statement that a shell has split; it must not redefine anything."""
    script = parse_words(words, known_agents=known_agents(context))
    return _assembled(script, context.cib.configuration, Mode.ADD, _members(context))


def read_script(context: Context, text: str, source: str) -> Reading:
    """Read statements and edits of what is there, in their order."""
    made = Reading(context.cib.configuration)
    for piece in _pieces(text):
        if piece.edit:
            made = edit(context, made, piece.edit, Place(source, piece.line))
            continue
        script = parse_script(piece.text, source, known_agents=known_agents(context))
        step = _assembled(script, made.configuration, Mode.ADD, _members(context))
        places = Places({**made.places.known, **step.places.known})
        unread = None if made.unread is None or step.unread is None else made.unread | step.unread
        made = Reading(step.configuration, (*made.reports, *step.reports), places, unread, made.erases)
    return made


def with_pending(context: Context, text: str) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Return the configuration with changes that are not committed; with an error, what is wrong instead."""
    made = read_script(context, text, "uncommitted changes") if text else Reading(context.cib.configuration)
    return made.configuration, made.reports if has_errors(made.reports) else ()


def _members(context: Context) -> tuple[NodeName, ...]:
    return tuple(name for name, member in context.cib.members.items() if not member.is_witness)


def _assembled(script: Script, base: Configuration, mode: Mode, members: tuple[NodeName, ...]) -> Reading:
    made = assemble(script.statements, base=base, mode=mode, members=members)
    unread = script.unread if has_errors(script.reports) else frozenset()
    found = (*script.reports, *founded(made.reports, unread))
    return Reading(made.configuration, found, made.places, unread)


_OF_ONE = frozenset({
    Code.UNKNOWN_RESOURCE, Code.UNKNOWN_TEMPLATE, Code.UNKNOWN_NODE, Code.UNKNOWN_OBJECT, Code.NO_SUCH_RESOURCE,
})  # fmt: skip
"""What may be wrong only because the thing that it names could not be read."""
_OF_ANY = frozenset({Code.NOT_PROMOTABLE, Code.NOT_A_FENCE_DEVICE, Code.MISSING_PARAMETER, Code.GROUP_EMPTY})
"""What may be wrong only because something could not be read."""


def founded(reports: Iterable[ReportItem], unread: frozenset[str] | None) -> tuple[ReportItem, ...]:
    """Leave out the errors that what could not be read may have brought about."""
    if unread is not None and not unread:
        return tuple(reports)
    uncertain = _OF_ANY if unread is not None else _OF_ANY | _OF_ONE
    gone = unread or frozenset()

    def names_it(each: ReportItem) -> bool:
        return each.code in _OF_ONE and any(value.strip("'") in gone for value in each.parameters.values())

    return tuple(each for each in reports if each.code not in uncertain and not names_it(each))


def every_error(context: Context, made: Reading) -> tuple[ReportItem, ...]:
    """Return what is wrong with a text that cannot be used as it stands: what it says as far as it was read, too.

    So a person corrects all of it in one round.
    """
    settled, _ = settled_for(context, made.configuration, made.places)
    members, agents, is_foreign = context.cib.members, context.agents, context.is_foreign
    secrets = context.secret_names
    judged = verify(
        settled, members=members, agents=agents, places=made.places, is_foreign=is_foreign, secrets=secrets
    )
    old = verify(
        context.cib.configuration, members=members, agents=agents, is_foreign=is_foreign, secrets=secrets
    )
    known = {(each.code, tuple(sorted(each.parameters.items()))) for each in old}
    known |= {(each.code, tuple(sorted(each.parameters.items()))) for each in made.reports}
    brought_in = (
        each for each in founded(judged, made.unread)
        if each.severity is Severity.ERROR and (each.code, tuple(sorted(each.parameters.items()))) not in known
    )  # fmt: skip
    return in_reading_order((*made.reports, *brought_in))


def edit(context: Context, made: Reading, words: Sequence[str], place: Place | None = None) -> Reading:
    """Make one edit of what is there, as `delete` or `rename`, word by word."""
    rest = [word for word in words[1:] if word not in (*_FORCE, "--cascade", AS_CRMSH)]
    is_forced = context.is_forced or any(word in words for word in _FORCE)
    here = _over(context.cib, made.configuration)
    match words[0].lower():
        case "rename":
            configuration, reports = rename(here, rest, is_forced=is_forced)
        case "modgroup":
            configuration, reports = modify_group(here, rest)
        case "set":
            configuration, reports = set_value(made.configuration, words[1:])
        case "unset":
            configuration, reports = unset_value(made.configuration, words[1:])
        case "erase":
            return _erased(made, rest, place)
        case "default-timeouts" | "default_timeouts":
            configuration, reports = with_advised_timeouts(made.configuration, rest, context.agents)
        case _:
            ids = rest or [""]
            configuration, reports = delete(
                here, ids, cascade="--cascade" in words, is_forced=is_forced, is_as_crmsh=AS_CRMSH in words
            )
    placed = tuple(replace(each, place=place) for each in reports)
    return Reading(configuration, (*made.reports, *placed), made.places, made.unread, made.erases)


def _erased(made: Reading, words: Sequence[str], place: Place | None) -> Reading:
    """Take everything out but nodes; with the word `nodes`, nodes too."""
    if list(words) == ["nodes", ALONE]:
        return replace(made, configuration=replace(made.configuration, nodes={}))
    if words and list(words) != ["nodes"]:
        problem = f"erase: {' '.join(words)!r} is not known; it may be followed by: nodes"
        return replace(made, reports=(*made.reports, report(Code.USAGE, problem=problem, place=place)))
    return replace(made, configuration=Configuration(nodes={} if words else made.configuration.nodes), erases=True)


def _over(cib: Cib, configuration: Configuration) -> Cib:
    return replace(cib, configuration=configuration)


def _split(line: str) -> tuple[str, ...]:
    """Split an edit into words, with quotes where the language has them."""
    read, _ = read_lines(line, "edit")
    return tuple(token.text for token in read[0].tokens) if read else tuple(line.split())


def _pieces(text: str) -> Iterator[_Piece]:
    """Cut a script at its edits of what is there."""
    pending: list[str] = []
    is_continued = False
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not is_continued and words and words[0].lower() in _EDITS:
            if any(each.strip() for each in pending):
                yield _Piece("\n".join(pending))
            yield _Piece("", _split(line), number)
            pending = [""] * (len(pending) + 1)
            continue
        pending.append(line)
        is_continued = line.rstrip().endswith("\\")
    if any(each.strip() for each in pending):
        yield _Piece("\n".join(pending))
