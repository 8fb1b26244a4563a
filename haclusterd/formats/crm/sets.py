"""Resources in constraints: two of them, or resource sets (cli.md §4.4; Pacemaker Explained, "Resource Sets").

`a b c` is a set, `( a b )` one in no order, `[ a b ]` one of which any will do. Beyond crmsh, `{ a b }` is a set with
exactly what is written in it (`sequential=`, `require-all=`, `$id=`, `score=`, `kind=`, `ordering=`, `role=`,
`action=`), wherever sets are allowed; and a constraint's own attributes may be anywhere between its resources.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from haclusterd.formats.constraint_words import ACTIONS
from haclusterd.formats.crm.blocks import read_given_id
from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.mistakes import is_kind_or_score
from haclusterd.formats.crm.rules import is_word
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.generated_ids import allocate, set_base
from haclusterd.model import scores
from haclusterd.model.configuration import ResourceSet
from haclusterd.model.ids import NCNAME, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.model.properties import read_boolean
from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import Code
from haclusterd.reports.suggestions import did_you_mean

SET_ATTRIBUTES = ("sequential", "require-all", "score", "kind", "ordering", "role", "action", "$id")
ORDERINGS = ("group", "listed")

SET_MARK = "_rsc_set_"
"""What crmsh prints before a set of two resources, which would be no set otherwise."""

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_BRACKETS = frozenset({*_CLOSING, *_CLOSING.values()})


@dataclass(frozen=True, slots=True)
class Member:
    """One resource as it is written, with its role or action."""

    resource: ResourceId
    qualifier: str | None
    token: Token


@dataclass(frozen=True, slots=True)
class Written:
    """An attribute as it is written."""

    value: str
    token: Token


@dataclass(slots=True)
class _OpenSet:
    bracket: str
    members: list[Member] = field(default_factory=list)
    attributes: dict[str, Written] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Members:
    """The resources of one constraint: `pair` when they are as many as without sets, else `sets`."""

    pair: tuple[Member, ...]
    sets: tuple[ResourceSet, ...]
    attributes: Mapping[str, Written]


@dataclass(frozen=True, slots=True)
class Grammar:
    """How the resources of one kind of constraint are written."""

    of_actions: bool
    """What follows a colon is an action, not a role."""
    simple: int
    """How many plain resources are no set."""
    attributes: Collection[str]
    end: str = ""
    """A word that ends them, where it is not quoted and not in brackets."""


def one_of(text: str, choices: tuple[str, ...]) -> str:
    """Read a word of a list, in any case; raise ValueError otherwise."""
    if text.lower() not in choices:
        raise ValueError(f"{text!r} is not one of: {', '.join(choices)}")
    return text.lower()


def read_action(text: str) -> str:
    """Read the action of an ordering; raise ValueError otherwise."""
    return one_of(text, ACTIONS)


def read_ordering(text: str) -> str:
    """Read how a set of an old configuration is ordered; raise ValueError otherwise."""
    return one_of(text, ORDERINGS)


def read_members(cursor: Cursor, constraint: str, grammar: Grammar) -> Members:
    """Read resources, sets and attributes up to the end of the statement, or to the word that ends them."""
    reader = _Reader(cursor, grammar)
    for token in _Pieces(cursor, grammar.end):
        reader.read(token)
    found = reader.end()
    if not reader.is_marked and all(each.bracket == "" for each in found):
        plain = [member for each in found for member in each.members]
        if len(plain) == grammar.simple:
            return Members(tuple(plain), (), reader.attributes)
        if len(plain) < grammar.simple:
            raise cursor.expected("two resources" if grammar.simple == 2 else "a resource")
    return Members((), finish_sets(cursor, constraint, found, of_actions=grammar.of_actions), reader.attributes)


def read_braces(cursor: Cursor, constraint: str) -> tuple[ResourceSet, ...]:
    """Read the `{ ... }` of a location, one after the other."""
    reader = _Reader(cursor, Grammar(of_actions=False, simple=0, attributes=()))
    for token in _Pieces(cursor):
        reader.read(token)
        following = cursor.peek()
        goes_on = following is not None and following.text.startswith("{") and not following.is_quoted
        if reader.is_closed and not goes_on:
            break
    return finish_sets(cursor, constraint, reader.end(), of_actions=False)


class _Pieces:
    """The tokens that are left, with brackets that touch a name taken apart."""

    def __init__(self, cursor: Cursor, end: str = "") -> None:
        self._cursor = cursor
        self._end = end
        self._waiting: list[Token] = []
        self._is_inside = False
        """Whether a bracket is open."""

    def __iter__(self) -> "_Pieces":
        return self

    def __next__(self) -> Token:
        if not self._waiting:
            if self._cursor.is_at_end or (not self._is_inside and is_word(self._cursor.peek(), self._end)):
                raise StopIteration
            self._waiting = _apart(self._cursor.take("a resource"), is_inside=self._is_inside)
        token = self._waiting.pop(0)
        if not token.is_quoted and token.text in _BRACKETS:
            self._is_inside = token.text in _CLOSING
        return token


def _apart(token: Token, *, is_inside: bool) -> list[Token]:
    text = token.text
    if token.is_quoted or len(text) == 1:
        return [token]
    before, after = [], []
    while text[:1] in _CLOSING:
        before.append(Token(text[0], token.place))
        text = text[1:]
    while text[-1:] in _CLOSING.values() and (is_inside or before or "=" not in text):
        after.append(Token(text[-1], token.place))
        text = text[:-1]
    return [*before, *([Token(text, token.place)] if text else []), *reversed(after)]


class _Reader:
    """Puts the members of one constraint into sets."""

    def __init__(self, cursor: Cursor, grammar: Grammar) -> None:
        self._cursor = cursor
        self._grammar = grammar
        self._done: list[_OpenSet] = []
        self._open: _OpenSet | None = None
        self.attributes: dict[str, Written] = {}
        self.is_marked = False
        """The text says that even two resources are a set."""

    @property
    def is_closed(self) -> bool:
        """Whether the newest set has been closed by a bracket."""
        return self._open is None and bool(self._done)

    def read(self, token: Token) -> None:
        """Read one bracket, resource or attribute."""
        name, equals, value = token.text.partition("=")
        if not token.is_quoted and token.text in _BRACKETS:
            self._bracket(token)
        elif token.text == SET_MARK and not token.is_quoted:
            self.is_marked = True
        elif equals:
            self._attribute(name.lower(), Written(value, token))
        else:
            self._member(token)

    def end(self) -> list[_OpenSet]:
        """Return the sets when everything is read."""
        if self._open is not None and self._open.bracket:
            raise self._cursor.expected(_CLOSING[self._open.bracket])
        self._close()
        return self._done

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(self._open)
        self._open = None

    def _bracket(self, token: Token) -> None:
        inside = self._open.bracket if self._open is not None else ""
        if token.text in _CLOSING and not inside:
            self._close()
            self._open = _OpenSet(token.text)
            return
        if not inside or token.text != _CLOSING[inside]:
            raise self._cursor.refuse(Code.UNEXPECTED, token, construct=self._cursor.construct, found=token.text)
        assert self._open is not None
        if not self._open.members:
            problem = "a resource set without resources"
            raise self._cursor.refuse(Code.BAD_VALUE, token, name=self._cursor.construct, problem=problem)
        self._close()

    def _attribute(self, name: str, written: Written) -> None:
        target, known = self.attributes, self._grammar.attributes
        is_of_plain_set = name in ("sequential", "require-all") and name not in known
        if self._open is not None and (self._open.bracket or is_of_plain_set):
            target, known = self._open.attributes, SET_ATTRIBUTES
        if name not in known:
            raise self._cursor.refuse(
                Code.UNEXPECTED, written.token, remedy=did_you_mean(name, known),
                construct=self._cursor.construct, found=written.token.text,
            )  # fmt: skip
        if name in target:
            self._cursor.note(Code.DUPLICATE_NAME, written.token, name=name)
        self._cursor.pair(Token(written.token.text.removeprefix("$"), written.token.place))
        target[name] = written

    def _member(self, token: Token) -> None:
        resource, colon, qualifier = token.text.partition(":")
        if not NCNAME.match(resource):
            raise self._cursor.refuse(Code.BAD_ID, token, id=resource)
        if self._grammar.of_actions and not token.is_quoted and is_kind_or_score(token.text):
            raise self._cursor.refuse(Code.UNEXPECTED, token, construct=self._cursor.construct, found=token.text)
        name, read = ("action", read_action) if self._grammar.of_actions else ("role", read_role)
        word = self._cursor.value(name, qualifier, token, read, "") if colon else None
        member = Member(ResourceId(resource), word, token)
        if self._open is None:
            self._open = _OpenSet("")
        elif self._open.members and self._open.members[-1].qualifier != word:
            before = self._open
            self._close()
            self._open = _OpenSet(before.bracket, attributes=before.attributes)
        self._open.members.append(member)


def finish_sets(
    cursor: Cursor, constraint: str, found: Sequence[_OpenSet], *, of_actions: bool
) -> tuple[ResourceSet, ...]:
    """Make the sets of a constraint, with ids."""
    given: list[str | None] = []
    for each in found:
        id_ = read_given_id(cursor, each.attributes["$id"].token) if "$id" in each.attributes else None
        given.append(None if id_ in given else id_)
    ids = allocate([(id_, set_base(constraint, number)) for number, id_ in enumerate(given)])
    return tuple(_finish(cursor, each, id_, of_actions=of_actions) for each, id_ in zip(found, ids, strict=True))


def _finish(cursor: Cursor, found: _OpenSet, id_: str, *, of_actions: bool) -> ResourceSet:
    def given(name: str, read: Callable[[str], str]) -> str | None:
        written = found.attributes.get(name)
        return None if written is None else cursor.value(name, written.value, written.token, read, "")

    def flag(name: str, *, implied: bool) -> bool | None:
        written = found.attributes.get(name)
        if written is None:
            return False if implied else None
        read = cursor.value(name, written.value, written.token, read_boolean, otherwise=False)
        # What is written inside ( ) or [ ] only to undo the brackets' meaning is the default.
        return None if implied and read else read

    score = found.attributes.get("score")
    qualifier = found.members[0].qualifier if found.members else None
    role, action = given("role", read_role), given("action", read_action)
    return ResourceSet(
        id=id_,
        members=tuple(member.resource for member in found.members),
        is_sequential=flag("sequential", implied=found.bracket in ("(", "[")),
        require_all=flag("require-all", implied=found.bracket == "["),
        action=qualifier if of_actions and qualifier is not None else action,
        role=role if of_actions or qualifier is None else qualifier,
        score=None if score is None else cursor.value("score", score.value, score.token, scores.parse, 0),
        kind=given("kind", str),
        ordering=given("ordering", read_ordering),
    )
