"""Ask every path of the REST interface with generated arguments, and hold each answer against the OpenAPI document.

A cluster of three real daemons and a real `haclusterd-api`; what would change something is asked as a dry run. Ends
with one line `RESULT ...`; exit code 1 when an answer is a server's error, or is not what the document says.
"""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from haclusterd.api.routes import Route, routes
from haclusterd.verbs.arguments import Argument, Kind
from tests.api_contract.schemas import objection
from tests.processes.daemons import Scenario
from tests.processes.rest_interface import Answer, Api, crm, started

KNOWN = ("n1", "n2", "n9", "svc", "power", "nothing", "", "a\tb", "ü", "x" * 5000, "--force", "../..", "10s", "0", "on")
TEXTS = ("primitive p ocf:haclusterd:dummy", "# nothing", "", "primitive", "<cib/>", "a: [1", "\x00", "y" * 20_000)
MAY_WAIT = frozenset({"TRY_AGAIN", "TAKES_TOO_LONG", "NOT_ANSWERED", "TIMEOUT"})
"""Answers of a server that is asked too much, which the document names."""


def value_for(argument: Argument, chance: random.Random) -> Any:
    if chance.random() < 0.05:
        return chance.choice([7, True, ["n1"], "word", None, {"a": []}])
    match argument.kind:
        case Kind.WORD:
            return str(chance.choice((*argument.choices, *argument.choices, *KNOWN)))
        case Kind.WORDS:
            return [chance.choice(KNOWN) for _ in range(chance.randrange(4))]
        case Kind.TEXT:
            return chance.choice(TEXTS)
        case Kind.FLAG:
            return chance.random() < 0.5
        case Kind.INTEGER:
            return chance.choice((argument.minimum, argument.minimum + 1, argument.maximum, argument.maximum + 1, -1))


def asked(api: Api, route: Route, chance: random.Random) -> Answer:
    given = {
        each.name: value_for(each, chance)
        for each in route.verb.arguments
        if chance.random() < (0.95 if each.is_required else 0.4)
    }
    if chance.random() < 0.05:
        given["unknown"] = "x"
    if not route.has_body:
        words = {name: str(each).lower() if isinstance(each, bool) else each for name, each in given.items()}
        return api.get(route.path, **words)
    path = f"{route.path}?dry_run=true&wait=0" if route.verb.may_change else route.path
    return api.ask(route.method, path, body=given)


def run(directory: Path, cases: int, seed: int) -> int:
    chance = random.Random(seed)
    scenario = Scenario(directory / "cluster")
    counts = {"requests": 0, "ok": 0, "refused": 0, "busy": 0, "server_errors": 0, "mismatches": 0}
    api: Api | None = None
    try:
        scenario.form().with_service()
        api = started(scenario, "n1", directory)
        api.tokens["admin"] = crm(scenario, "n1", "api", "token", "add", "contract", "--role", "admin")["token"]
        document = api.get("/v1/openapi.json").json
        for route in routes():
            for _ in range(cases):
                _judge(document, route, asked(api, route, chance), counts)
        peak = api.resident_kib() // 1024
    finally:
        if api is not None:
            api.process.terminate()
            api.process.wait(20)
        scenario.close()
    words = " ".join(f"{name}={count}" for name, count in counts.items())
    print(f"RESULT paths={len(routes())} {words} peak_mib={peak} seed={seed}")
    return int(counts["server_errors"] > 0 or counts["mismatches"] > 0)


def _judge(document: Any, route: Route, answer: Answer, counts: dict[str, int]) -> None:
    counts["requests"] += 1
    problem = objection(document, route.method, route.path, answer)
    counts["mismatches"] += bool(problem)
    code = answer.json.get("code", "")
    kind = "ok" if answer.status < 300 else "refused" if answer.status < 500 else "busy"
    if kind == "busy" and code not in MAY_WAIT:
        kind = "server_errors"
    counts[kind] += 1
    if problem or kind == "server_errors":
        print(f"{route.method} {route.path}: {answer.status} {problem} {answer.body[:300]!r}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="api-contract")
    parser.add_argument("--cases", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="api-contract-"))
    try:
        return run(directory, options.cases, options.seed)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
