"""Whether a change happened whose answer never came: the daemon that was asked ended before, or fell silent.

What was proposed may be committed without it. So the daemon is asked once it is back, or another one behind the same
socket: which versions of the configuration the same person has made since. A majority confirms that the answer is the
newest. Waiting ends after TIMEOUT_S, and then it is not known.
"""

import time
from collections.abc import Callable, Mapping
from typing import TextIO

from haclusterd.cli.render.fields import fields, listed, number, text
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, replace
from haclusterd.model.requests import Options, Request, Response, ShownReport
from haclusterd.ports.control import CommandClient
from haclusterd.verbs.table import VERBS
from haclusterd.verbs.verb import Permission

LOST = ("DISCONNECTED", "OUTCOME_UNKNOWN")
_NOT_YET = ("DISCONNECTED", "NOT_RUNNING", "TRY_AGAIN", "NO_QUORUM")
TIMEOUT_S = 30.0
PAUSE_S = 0.25
NEWEST = 20
"""Versions that are looked through."""


def is_lost(request: Request, response: Response) -> bool:
    """Tell whether a change was asked for and nobody said what became of it."""
    verb = VERBS.get(request.verb)
    may_change = verb is not None and verb.permission is not Permission.READ and not request.options.dry_run
    return may_change and any(each.code in LOST for each in response.reports)


@dataclass(frozen=True, slots=True)
class Patience:
    """What waiting is measured by."""

    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic


def found_out(
    client: CommandClient, response: Response, sent_at: int, out: TextIO, patience: Patience | None = None
) -> Response:
    """Return the response with what became of the change; `sent_at` is when it was asked for, in ms."""
    out.write("no answer says whether it took effect; looking ...\n")
    out.flush()
    patience = patience or Patience()
    author = text(fields(_asked(client, "api.whoami", {}, patience)), "author")
    answer = fields(_asked(client, "history.config", {"author": author, "limit": NEWEST}, patience)) if author else {}
    if not answer and any(each.code == "OUTCOME_UNKNOWN" for each in response.reports):
        return response
    if not answer:
        unknown = ShownReport(
            "error", "OUTCOME_UNKNOWN", "nobody answers, so it is not known whether this took effect",
            "when a daemon is back: crm history config",
        )  # fmt: skip
        return replace(response, reports=(*_others(response), unknown))
    made = [each for each in listed(answer, "versions") if number(each, "at") >= sent_at]
    if made:
        names = ", ".join(str(number(each, "number")) for each in made)
        what = f"it took effect, as version {names} of the configuration by {author} shows; the answer was lost"
        done = ShownReport("warning", "CONFIGURATION_CHANGED", what, f"crm history show {number(made[-1], 'number')}")
        return replace(response, exit=0, reports=(*_others(response), done))
    what = f"it did not change the configuration: the newest version is {number(answer, 'version')}, from before"
    undone = ShownReport("error", "DISCONNECTED", what, "type it again; what changes nothing there: crm history events")
    return replace(response, reports=(*_others(response), undone))


def _others(response: Response) -> tuple[ShownReport, ...]:
    return tuple(each for each in response.reports if each.code not in LOST)


def _asked(client: CommandClient, verb: str, arguments: Mapping[str, Json], patience: Patience) -> Json:
    """Ask until somebody answers, or the time is over; without a quorum each answer takes some of it."""
    left_s = TIMEOUT_S
    # Who asks is known without a majority.
    options = Options(is_consistent=verb != "api.whoami")
    while True:
        began = patience.now()
        answer = client.call(Request("lost", verb, arguments, options), lambda _: None)
        if not any(each.code in _NOT_YET for each in answer.reports):
            return answer.data
        left_s -= PAUSE_S + patience.now() - began
        if left_s <= 0:
            return None
        patience.sleep(PAUSE_S)
