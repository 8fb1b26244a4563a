"""`crm`: what was asked for, of whom, and how it is to be shown."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.dispatch import carry_out
from haclusterd.cli.grammar import Level
from haclusterd.cli.options import DEFAULT_WAIT_MS, GlobalOptions, parse_globals
from haclusterd.cli.output import OutputFailedError
from haclusterd.cli.parsing import UsageError, find_level, parse
from haclusterd.cli.reading import STANDARD_INPUT, read_text, shown_name
from haclusterd.cli.render.terminal import Screen
from haclusterd.cli.session import Session, Streams
from haclusterd.cli.settings import Settings, read_settings
from haclusterd.cli.shadow_files import VARIABLE, Shadows, directory_of
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.requests import Response, ShownReport
from haclusterd.ports.control import CommandClient, DaemonLink
from haclusterd.protocol.control import DEFAULT_SOCKET
from haclusterd.reports.exit_codes import ExitStatus

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class World:
    """What `crm` is given: streams, environment, and how to reach what answers."""

    streams: Streams
    environment: Mapping[str, str]
    connect: Callable[[str], CommandClient]
    """To the daemon that listens on a socket."""
    open_file: Callable[[str], CommandClient]
    """On a state file."""
    setup: Callable[[Mapping[str, Json]], Response]
    """Make the files of a new cluster."""
    version: Callable[[], str]
    tools: Mapping[str, Callable[[Mapping[str, Json]], Response]] = field(default_factory=dict)
    """What works without asking anybody, by the command with its level: `cluster init`, `ra list`."""
    link: Callable[[str], DaemonLink] | None = None
    """To the daemon that listens on a socket, on an event loop."""


def run(argv: Sequence[str], world: World) -> int:
    """Run one `crm`; return its exit status."""
    options, session = GlobalOptions(), None
    try:
        if argv[:1] in (["--complete"], ["--complete-with-help"]):
            return _complete(list(argv[1:]), world, has_help=argv[0] == "--complete-with-help")
        options = parse_globals(argv)
        session = _session(options, world)
        status = _dispatch(options, world, session)
        world.streams.stdout.flush()
        return status
    except UsageError as error:
        session = _session(options, world)
        return session.fail("USAGE", error.problem, error.remedy, int(error.status))
    except KeyboardInterrupt:
        is_under_way = session is not None and session.is_changing
        world.streams.stderr.write(f"interrupted{'; what was begun continues: crm status' if is_under_way else ''}\n")
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except OutputFailedError as error:
        return _not_shown(error, session or _session(options, world))


def _not_shown(error: OutputFailedError, session: Session) -> int:
    """Say that the answer could not be written; what was asked for is done all the same."""
    remedy = "the change that was asked for has been made: crm history config" if session.has_changed else ""
    problem = f"the standard output cannot be written: {error}"
    session.tell([ShownReport("error", "INPUT_OUTPUT", problem, remedy)])
    return int(ExitStatus.IO)


def _session(options: GlobalOptions, world: World) -> Session:
    settings = read_settings(world.environment)
    options = with_settings(options, settings)
    cib_file = options.cib_file or world.environment.get("CIB_file", "")
    socket = options.socket or world.environment.get("HACLUSTERD_SOCKET", "") or DEFAULT_SOCKET
    live = world.open_file(cib_file) if cib_file else world.connect(socket)
    shadow = "" if cib_file else options.shadow or world.environment.get(VARIABLE, "")
    shadows = Shadows(directory_of(world.environment), world.open_file, live, shadow)
    return Session(
        client=shadows.client(shadow) if shadow else live,
        streams=world.streams,
        screen=Screen(
            _has_colour(options, world, is_terminal=world.streams.stdout.isatty()), scheme=settings.scheme
        ),
        errors=Screen(_has_colour(options, world, is_terminal=world.streams.stderr.isatty())),
        options=options.request_options(),
        is_json=options.output == "json",
        is_xml=options.output == "xml",
        setup=world.setup,
        tools=world.tools,
        link=partial(world.link, socket) if world.link and not cib_file and not shadow else None,
        environment=world.environment,
        shadows=shadows,
        settings=settings,
    )


def with_settings(options: GlobalOptions, settings: Settings) -> GlobalOptions:
    """Return the options with what the person has set where nothing else was asked for."""
    return replace(
        options,
        display=options.display or settings.get("output"),
        wait_ms=DEFAULT_WAIT_MS if options.wait_ms is None and settings.is_on("wait") else options.wait_ms,
        no_validate=options.no_validate or settings.get("check-mode") == "relaxed",
    )


def _has_colour(options: GlobalOptions, world: World, *, is_terminal: bool) -> bool:
    if options.display == "color-always":
        return True
    is_wanted = options.display == "color" and not world.environment.get("NO_COLOR")
    return is_wanted and is_terminal and world.environment.get("TERM") != "dumb"


def _dispatch(options: GlobalOptions, world: World, session: Session) -> int:
    session.tell([ShownReport("warning", "LEFT_OUT", each) for each in session.settings.problems])
    if options.wants_version:
        world.streams.stdout.write(f"crm {world.version()}\n")
        return 0
    if options.wants_help or "help" in options.words[:2]:
        from haclusterd.cli.help import help_for

        words = [word for number, word in enumerate(options.words) if number > 1 or word != "help"]
        world.streams.stdout.write("".join(f"{line}\n" for line in help_for(session.screen, words)))
        return 0
    if options.script:
        return _run_script(options.script, world, session, _named_level(options.words))
    level = _named_level(options.words)
    if level is not None:
        return _run_level(world, session, level)
    return carry_out(session, parse(options.words))


def _named_level(words: Sequence[str]) -> Level | None:
    """Return the level when nothing but a level was named, the root when nothing was."""
    if not words:
        return ROOT
    if len(words) > 1 or words[0] in [command.name for command in ROOT.commands]:
        return None
    return find_level(words[0])


def _run_level(world: World, session: Session, level: Level) -> int:
    if world.streams.stdin.isatty():
        from haclusterd.cli.interactive.shell import run_shell

        return run_shell(session, level)
    return _run_text(STANDARD_INPUT, world, session, level)


def _run_script(name: str, world: World, session: Session, level: Level | None) -> int:
    if level is None:
        raise UsageError("with --file only a level can be named", f"one of: {', '.join(each.name for each in LEVELS)}")
    return _run_text(name, world, session, level)


def _run_text(name: str, world: World, session: Session, level: Level) -> int:
    from haclusterd.cli.interpreter import run_script

    text = read_text(name, world.streams.stdin)
    return session.show(text) if isinstance(text, Response) else run_script(session, text, shown_name(name), level)


def _complete(words: list[str], world: World, *, has_help: bool) -> int:
    from haclusterd.cli.completing.completion import offers
    from haclusterd.cli.completing.known_names import KnownNames

    try:
        options = parse_globals(words)
        session = _session(options, world)
    except UsageError:
        return 0
    for offer in offers(words, KnownNames(session)):
        world.streams.stdout.write(f"{offer.word}\t{offer.help}\n" if has_help and offer.help else f"{offer.word}\n")
    return 0
