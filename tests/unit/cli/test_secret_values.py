"""How `crm` takes the value of a secret (tests/golden/crm/secrets.txt: from the standard input)."""

import getpass
import io
from typing import Any

import pytest

from haclusterd.cli.command_table import LEVELS
from haclusterd.cli.grammar import Invocation
from haclusterd.cli.parsing import UsageError
from haclusterd.cli.secret_values import carry_out
from haclusterd.model.requests import Response

SET = next(each for level in LEVELS if level.name == "secret" for each in level.commands if each.name == "set")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Asked:
    """A session that only notes what is asked."""

    def __init__(self, stdin: io.StringIO) -> None:
        self.streams = self
        self.stdin, self.stderr = stdin, io.StringIO()
        self.arguments: dict[str, Any] = {}

    def ask_and_confirm(self, _verb: str, arguments: dict[str, Any]) -> Response:
        self.arguments = arguments
        return Response("1", 0)

    def show(self, response: Response) -> int:
        return response.exit


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> Asked:
    answers = iter(words)
    monkeypatch.setattr(getpass, "getpass", lambda _prompt, _stream: next(answers))
    asked = Asked(Terminal())
    carry_out(asked, Invocation("secret", SET, {"name": "pdu"}))
    return asked


def test_a_person_types_it_twice_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(monkeypatch, "swordfish", "swordfish").arguments == {"name": "pdu", "value": "swordfish"}
    with pytest.raises(UsageError, match="differ"):
        typed(monkeypatch, "swordfish", "sword")


@pytest.mark.parametrize("text", ["swordfish", "swordfish\n", "swordfish\r\n"])
def test_of_what_is_read_the_end_of_its_line_goes(text: str) -> None:
    asked = Asked(io.StringIO(text))
    carry_out(asked, Invocation("secret", SET, {"name": "pdu"}))
    assert asked.arguments["value"] == "swordfish"
