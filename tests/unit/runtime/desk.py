"""The control service of one daemon, and the clients that ask it."""

from collections.abc import Mapping

from haclusterd.cib import commands
from haclusterd.cib.edits import PutNode, difference
from haclusterd.model.api_tokens import digest_of
from haclusterd.model.configuration import Configuration, NodeEntry
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Options, Progress, Request, Response
from haclusterd.protocol.control import EncodedResponse
from haclusterd.runtime.requests.control import ControlService
from haclusterd.runtime.requests.request_services import Caller, HangUp
from tests.administered_clusters import configured
from tests.unit.runtime.one_daemon import N3, Daemon

ROOT = Caller("root")
PLAIN = Options()


class Desk:
    """The control service of n1, and what its clients were answered."""

    def __init__(self, daemon: Daemon | None = None) -> None:
        self.daemon = daemon or Daemon().form()
        self.control = ControlService(self.daemon.runtime)
        self.answers: dict[str, list[Progress | Response]] = {}
        self.hang_ups: dict[str, HangUp] = {}
        self.requests = 0

    def ask(
        self, verb: str, arguments: Mapping[str, Json] | None = None, options: Options = PLAIN, who: Caller = ROOT
    ) -> str:
        self.requests += 1
        name = f"q{self.requests}"
        messages = self.answers.setdefault(name, [])

        def answer(message: Progress | Response | EncodedResponse) -> None:
            messages.append(message.decoded() if isinstance(message, EncodedResponse) else message)

        self.hang_ups[name] = self.control.handle(Request(name, verb, arguments or {}, options), who, answer)
        return name

    def accept_token(self, role: str, token: str, name: str = "t", valid: str = "1h") -> None:
        arguments: dict[str, Json] = {"name": name, "role": role, "digest": digest_of(token), "valid": valid}
        made = self.ask("api.token_add", arguments)
        self.daemon.settle()
        assert self.codes(made) == ["REQUESTED"]

    def response(self, name: str) -> Response | None:
        responses = [each for each in self.answers[name] if isinstance(each, Response)]
        assert len(responses) <= 1, "answered twice"
        assert all(isinstance(each, Progress) for each in self.answers[name][:-1]), "progress after the answer"
        return responses[0] if responses else None

    def codes(self, name: str) -> list[str]:
        response = self.response(name)
        assert response is not None
        return [report.code for report in response.reports]


def status_of(desk: Desk, name: str) -> int:
    response = desk.response(name)
    assert response is not None
    return response.exit


def put_on_another_node(desk: Desk, author: str = "bob") -> None:
    """Another administrator changes the configuration through another daemon."""
    epoch = desk.daemon.cib.version.epoch
    applied = desk.daemon.put(commands.ChangeConfiguration(epoch, (PutNode(NodeEntry(N3)),), author, ""))
    assert applied.refusal is None


def configure(desk: Desk, text: str, reason: str = "") -> Configuration:
    """Make the next version; return its content."""
    before = desk.daemon.cib
    new = configured(text, before.configuration)
    edits = difference(before.configuration, new)
    desk.daemon.put(commands.ChangeConfiguration(before.version.epoch, edits, "root@n2", reason))
    desk.daemon.settle()
    return new
