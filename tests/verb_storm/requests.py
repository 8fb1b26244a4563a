"""Random requests to a daemon: every verb of the registry, with arguments that fit, and with hostile ones.

What ends a member, cuts one off, or asks for another leader is left out: after it an election is no fault.
"""

import random
from collections.abc import Mapping

from haclusterd.commands import registry
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Options, Request
from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Verb

LEFT_OUT = frozenset({
    "cluster.address", "cluster.remove", "cluster.transfer_leader", "cluster.vote", "fencing.confirm", "fencing.test",
    "node.fence",
})  # fmt: skip
VERBS = tuple(verb for name, verb in sorted(registry.VERBS.items()) if name not in LEFT_OUT)
AGENT = "ocf:haclusterd:dummy"
WORDS = (
    "n1", "n2", "n3", "svc", "r1", "r2", "r3", "r4", "g1", "c1", "reboot", "forever", "on", "off", "10min", "1h",
    "2026-06-01T12:00:00Z", "state", "is-managed", "r1.is-managed", "priority", "5", "INFINITY", "ticket1", "show",
    "renew", "versions", "dc-elected", "1", "1.1", "r1:monitor:10s@n1=7", "batch-limit=5", "@t", "node:n1",
)  # fmt: skip
HOSTILE_WORDS = (
    "", " ", "-", "--force", "../../etc/passwd", "x" * 4096, "x" * 5000, "\N{SNOWMAN}" * 100, "\u202e", "a\nb", "\0",
    "%s%n", "$(reboot)", "-1", "99999999999999999999", "1e999999", "NaN", "\ud800", "a.b.c.d", "=", "=x", "x=",
    "9999999999999h", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
)  # fmt: skip
HOSTILE_VALUES: tuple[Json, ...] = (
    None, True, -1, 0, 2**53, 2**63, -(2**70), [], {}, [[]], [None], {"a": [1]}, ["x"] * 3000, "", "x" * 100_000,
)  # fmt: skip
NUMBERS = (0, 1, 5, 100, 9_999, 10_000, 2**31)
STATEMENTS = (
    f"primitive r{{0}} {AGENT} op monitor interval=10s timeout=20s",
    f"primitive r{{0}} {AGENT} params state=/nowhere/r{{0}} meta target-role=Stopped op monitor interval=1h",
    "group g1 r{0} r{1}",
    "clone c1 r{0}",
    "location l{0} r{1} 100: n{0}",
    "colocation k{0} inf: r{1} r{0}",
    "order o{0} Mandatory: r{1} r{0}",
    "property batch-limit={0}",
    "rsc_defaults resource-stickiness={0}",
    "delete r{0}",
    "delete --force r{0} r{1}",
    "rename r{0} r{1}",
    "xml <primitive id='r{0}'/>",
    "# nothing",
    "primitive",
    "\\",
)
DOCUMENTS = (
    "",
    "resources:\n  - primitive: r1\n    agent: ocf:haclusterd:dummy\n",
    "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b, *b, *b, *b]\n",
    "<cib><configuration><resources/></configuration></cib>",
    "<cib>" * 500,
    "{" * 5000,
    "primitive r1 ocf:haclusterd:dummy \\\n" * 2000,
)
LARGE = tuple(f"primitive big{number} {AGENT} meta target-role=Stopped" for number in range(400))


class Requests:
    """A stream of requests that follows from its seed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._serial = 0

    def draw(self) -> Request:
        """Return another request."""
        chance = self._chance
        self._serial += 1
        verb = chance.choice(VERBS)
        name = verb.name if chance.random() < 0.98 else chance.choice(HOSTILE_WORDS[5:])
        options = Options(
            wait_ms=chance.choice((None, 0, 0, 0, 50, 500, 10**12)),
            dry_run=chance.random() < 0.2,
            force=chance.random() < 0.4,
            reason=chance.choice(("", "", "storm", "\N{SNOWMAN}" * 50)),
            is_consistent=chance.random() < 0.1,
        )
        return Request(f"q{self._serial}", name, self._arguments(verb), options)

    def _arguments(self, verb: Verb) -> Mapping[str, Json]:
        chance = self._chance
        found: dict[str, Json] = {}
        for argument in verb.arguments:
            if not (argument.is_required or chance.random() < 0.5) or chance.random() < 0.03:
                continue
            is_hostile = chance.random() < 0.1
            found[argument.name] = chance.choice(HOSTILE_VALUES) if is_hostile else self._value(argument)
        if verb.name == "cluster.certificates" and found.get("action") == "revoke":
            found["action"] = "show"
        if chance.random() < 0.03:
            found[chance.choice(HOSTILE_WORDS[4:])] = "x"
        return found

    def _value(self, argument: Argument) -> Json:
        chance = self._chance
        match argument.kind:
            case Kind.FLAG:
                return chance.random() < 0.5
            case Kind.INTEGER:
                return chance.choice((*NUMBERS, argument.minimum, argument.maximum, chance.randrange(-5, 200)))
            case Kind.TEXT:
                return self._text()
            case Kind.WORDS:
                if chance.random() < 0.3:
                    return [*self._statement().split()]
                return [self._word(argument) for _ in range(chance.randrange(4))]
            case Kind.WORD:
                return self._word(argument)

    def _word(self, argument: Argument) -> str:
        chance = self._chance
        if argument.choices and chance.random() < 0.9:
            return chance.choice(argument.choices)
        return chance.choice(HOSTILE_WORDS) if chance.random() < 0.15 else chance.choice(WORDS)

    def _statement(self) -> str:
        chance = self._chance
        return chance.choice(STATEMENTS).format(chance.randrange(1, 5), chance.randrange(1, 5))

    def _text(self) -> str:
        chance = self._chance
        draw = chance.random()
        if draw < 0.15:
            return chance.choice(DOCUMENTS)
        if draw < 0.25:
            return "\n".join(LARGE)
        return "\n".join(self._statement() for _ in range(chance.randrange(1, 6)))
