"""crm_error: what the exit statuses and error codes of Pacemaker's tools mean, in its words; no daemon is asked.

Options and output are those of crm_error(8) of Pacemaker 2.1.5. Codes of the system are described by its library.
"""

import errno
import posix
import sys

TYPE_CHECKING = False  # As typing says it; importing that takes longer than all that is done here.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USAGE = 64
_EXITS = """
0 OK OK
1 ERROR Error occurred
2 INVALID_PARAM Invalid parameter
3 UNIMPLEMENT_FEATURE Unimplemented
4 INSUFFICIENT_PRIV Insufficient privileges
5 NOT_INSTALLED Not installed
6 NOT_CONFIGURED Not configured
7 NOT_RUNNING Not running
8 PROMOTED Promoted
9 FAILED_PROMOTED Failed in promoted role
64 USAGE Incorrect usage
65 DATAERR Invalid data given
66 NOINPUT Input file not available
67 NOUSER User does not exist
68 NOHOST Host does not exist
69 UNAVAILABLE Necessary service unavailable
70 SOFTWARE Internal software bug
71 OSERR Operating system error occurred
72 OSFILE System file not available
73 CANTCREAT Cannot create output file
74 IOERR I/O error occurred
75 TEMPFAIL Temporary failure, try again
76 PROTOCOL Protocol violated
77 NOPERM Insufficient privileges
78 CONFIG Invalid configuration
100 FATAL Fatal error occurred, will not respawn
101 PANIC System panic required
102 DISCONNECT Not connected
103 OLD Update was older than existing configuration
104 DIGEST Digest mismatch
105 NOSUCH No such object
106 QUORUM Quorum required
107 UNSAFE Operation not safe
108 EXISTS Requested item already exists
109 MULTIPLE Multiple items match request
110 EXPIRED Requested item has expired
111 NOT_YET_IN_EFFECT Requested item is not yet in effect
112 INDETERMINATE Could not determine status
113 UNSATISFIED Not applicable under current conditions
124 TIMEOUT Timeout occurred
190 DEGRADED Service is active but might fail soon
191 DEGRADED_PROMOTED Service is promoted but might fail soon
193 NONE No exit status available
"""
_LETTERS = {"n": "name", "l": "list", "X": "exit", "r": "rc", "h": "help", "?": "help", "$": "version", "V": "verbose"}
_WORDS = frozenset({*_LETTERS.values(), "text-fancy"})
_WITH_VALUE = ("output-as", "output-to")
_HELP = """Usage: crm_error [options] [--] CODE ...

Options:
  -X, --exit          what exit statuses mean (of tools and agents)
  -l, --list          all exit statuses (with -X)
  -n, --name          with the name of each
  --output-as FORMAT  text or xml
Without -X a code is one of the system, as the tools' messages are.
"""


class _UsageError(Exception):
    """Words that are not understood; the text says which."""


def main(words: "Sequence[str]") -> int:
    """Run the tool; return its exit status."""
    try:
        options, rest = _read(words)
        codes = [_number(each) for each in rest]
    except _UsageError as problem:
        return _refused(str(problem))
    if "help" in options or "version" in options:
        sys.stdout.write(_HELP if "help" in options else "Pacemaker 2.1.5\n")
        return 0
    form = options.get("output-as", "text")
    if form not in ("text", "xml") or options.get("output-to", "-") != "-":
        return _refused("it prints text or xml to standard output; redirect that")
    is_exit, has_names, is_list = "exit" in options, "name" in options, "list" in options or not codes
    exits = {int(line.split()[0]): line.split(maxsplit=2)[1:] for line in _EXITS.strip().splitlines()}
    if is_list and not is_exit:
        return _refused("only exit statuses are listed here: -l -X; codes of the system: errno(3)")
    codes = list(exits) if is_list else codes
    rows = [(code, *_described(code, exits if is_exit else None)) for code in codes]
    if form == "xml":
        _print_xml(words, rows, has_names=has_names)
    else:
        for code, name, text in rows:
            start = f"{code:5}: " if is_list else ""
            named = (f"{name:<26}  " if is_list else f"{name} - ") if has_names else ""
            sys.stdout.write(f"{start}{named}{text}\n")
    return 0


def _read(words: "Sequence[str]") -> "tuple[dict[str, str], list[str]]":
    """Return the options with their values, and what else was given. Raises _UsageError."""
    options: dict[str, str] = {}
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word[2:].partition("=")
        if word == "--":
            return options, rest + left
        if word.startswith("--") and name in _WITH_VALUE and (equals or left):
            options[name] = value if equals else left.pop(0)
        elif word.startswith("--") and name in _WORDS and not equals:
            options[name] = ""
        elif word.startswith("-") and len(word) > 1 and all(letter in _LETTERS for letter in word[1:]):
            options.update((_LETTERS[letter], "") for letter in word[1:])
        elif word.startswith("-"):
            raise _UsageError(f"Unknown option {word}")
        else:
            rest.append(word)
    return options, rest


def _number(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise _UsageError(f"no code: {word}") from None


def _quoted(text: str) -> str:
    for character, instead in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&apos;")):
        text = text.replace(character, instead)
    return f'"{text}"'


def _described(code: int, exits: "Mapping[int, Sequence[str]] | None") -> tuple[str, str]:
    """Return the name and the meaning of a code."""
    if exits is not None:
        name, text = exits.get(code, ("UNKNOWN", "Unknown exit status"))
        return f"CRM_EX_{name}", text
    if code == 0:
        return "pcmk_rc_ok", "OK"
    return errno.errorcode.get(abs(code), "Unknown"), posix.strerror(abs(code))


def _print_xml(words: "Sequence[str]", rows: "Sequence[tuple[int, str, str]]", *, has_names: bool) -> None:
    request = _quoted(" ".join(("crm_error", *words)))
    sys.stdout.write(f'<pacemaker-result api-version="2.25" request={request}>\n')
    for code, name, text in rows:
        named = f" name={_quoted(name)}" if has_names else ""
        sys.stdout.write(f'  <result-code code="{code}"{named} description={_quoted(text)}/>\n')
    sys.stdout.write('  <status code="0" message="OK"/>\n</pacemaker-result>\n')


def _refused(problem: str) -> int:
    sys.stderr.write(f"crm_error: {problem}\n")
    return USAGE
