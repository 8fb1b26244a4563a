"""A line from a person at a terminal, by prompt_toolkit: menus of what may come next, history, several lines.

Nothing else imports that library, and this module is imported for an interactive terminal alone: it takes longer to
import than all the rest of `crm`.
"""

from collections.abc import Callable, Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.styles import Style

from haclusterd.cli.completing.completion import typed_words
from haclusterd.cli.completing.offers import Offer
from haclusterd.cli.interactive.typed_lines import TypedLines
from haclusterd.cli.interpreter import logical_lines
from haclusterd.cli.session import Streams

CONTINUATION = "> "
_COLOURS = Style([("place", "bold"), ("level", "ansicyan"), ("changed", "ansiyellow bold")])
_PLAIN = Style([("place", "bold")])


class LinePrompt:
    """Reads lines with a menu of what may come next; ^C raises KeyboardInterrupt, ^D on an empty line EOFError."""

    def __init__(
        self, streams: Streams, lines: TypedLines, offered: Callable[[str], list[Offer]], *, has_colour: bool
    ) -> None:
        bindings = KeyBindings()
        bindings.add("c-c")(_interrupt)
        bindings.add("tab")(_complete)
        self._session: PromptSession[str] = PromptSession(
            completer=_Completer(offered),
            history=_History(lines),
            multiline=Condition(self._goes_on),
            prompt_continuation=_continuation,
            complete_while_typing=False,
            enable_open_in_editor=True,
            tempfile_suffix=".crm",
            key_bindings=bindings,
            style=_COLOURS if has_colour else _PLAIN,
            color_depth=None if has_colour else ColorDepth.DEPTH_1_BIT,
            input=create_input(streams.stdin),
            output=create_output(streams.stdout),
        )

    def __call__(self, prompt: str) -> str:
        """Return what a person types; lines after a backslash, and pasted ones, come with it."""
        return str(self._session.prompt(_painted(prompt)))

    def _goes_on(self) -> bool:
        """Tell whether Enter begins another line of the statement."""
        return bool(self._session.default_buffer.text.endswith("\\"))


def _continuation(_width: int, _line: int, wraps: int) -> str:
    """Return what comes before a further line; before the rest of a wide one, nothing."""
    return "" if wraps else CONTINUATION


def _painted(prompt: str) -> StyleAndTextTuples:
    """Return `crm(live/n1)configure# ` in its parts."""
    place, _, rest = prompt.partition(")")
    level = rest.removesuffix("# ")
    shown = "class:changed" if "*" in place else "class:place"
    return [(shown, f"{place})"), ("class:level", level), ("", rest[len(level) :])]


def _interrupt(event: KeyPressEvent) -> None:
    """Leave the abandoned line on the screen, marked."""
    buffer = event.app.current_buffer
    buffer.cursor_position = len(buffer.text)
    buffer.insert_text("^C")
    event.app.exit(exception=KeyboardInterrupt())


def _complete(event: KeyPressEvent) -> None:
    """Insert what all that may come next have in common, and show them where they are several.

    The library would do it in a task of its own, and drop it for a key that comes in the same read.
    """
    buffer = event.current_buffer
    if buffer.complete_state is not None:
        buffer.complete_next()
        return
    found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
    buffer.insert_text(get_common_complete_suffix(buffer.document, found))
    if len(found) > 1:
        buffer.start_completion()


class _Completer(Completer):
    def __init__(self, offered: Callable[[str], list[Offer]]) -> None:
        self._offered = offered

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
        """Yield what may come next, with what it means beside it."""
        typed = document.text_before_cursor
        # Of several pasted statements only the one under the cursor counts.
        statement = [text for _, text in logical_lines(typed)][-1]
        current = typed_words(statement)[-1]
        for offer in self._offered(statement):
            ending = "" if offer.continues else " "
            yield Completion(offer.word + ending, -len(current), display=offer.word, display_meta=offer.help)


class _History(History):
    def __init__(self, lines: TypedLines) -> None:
        super().__init__()
        self._lines = lines

    def load_history_strings(self) -> Iterable[str]:
        """Return what was typed, the newest first."""
        return reversed(self._lines.read())

    def store_string(self, string: str) -> None:
        """Keep what was typed."""
        for _, statement in logical_lines(string):
            self._lines.append(statement)
