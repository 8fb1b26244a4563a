"""`make ansible`: the modules and the role, run by Ansible against real daemons.

Each step is asked in check mode, done, done again and asked again, by crm and over REST: what check mode says must be
what is done then, the difference too, and the second time nothing may be changed. Then the role makes a cluster of
three machines that have nothing. Ends with one line `RESULT ...`; exit code 1 when something is otherwise, 77 when
Ansible cannot be installed.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ansible_collection.environment import Ansible, NotInstalledError
from tests.ansible_collection.from_zero import ZeroCluster
from tests.ansible_collection.lint import findings
from tests.ansible_collection.steps import REFUSED, Step, steps
from tests.processes.daemons import Scenario
from tests.processes.rest_interface import Api, crm, started

ROUNDS = (("asked", True), ("done", False), ("again", False), ("asked_again", True))
"""What is done with each step, and whether in check mode."""


class Trial:
    """Everything that is counted."""

    def __init__(self, ansible: Ansible, directory: Path) -> None:
        self._ansible = ansible
        self._directory = directory
        self.counts = dict.fromkeys(
            ("runs", "changed_first", "changed_second", "check_mode_wrong", "diff_wrong", "bad_input",
             "bad_input_wrong"), 0,
        )  # fmt: skip
        self.problems: list[str] = []

    def wrong(self, count: str, problem: str) -> None:
        self.counts[count] = self.counts.get(count, 0) + 1
        self.problems.append(f"{count}: {problem}")

    def play(self, tasks: Iterable[Mapping[str, Any]], variables: Mapping[str, Any]) -> dict[str, Any]:
        """Run tasks on this machine; return what each has registered, by its name."""
        made, asked = self._directory / "results.json", list(tasks)
        names = [each["register"] for each in asked]
        keep = {
            "name": "Keep the results",
            "ansible.builtin.copy": {
                "dest": str(made), "mode": "0600",
                "content": "{{ dict(" + repr(names) + " | zip([" + ", ".join(names) + "])) | to_json }}",
            },
        }  # fmt: skip
        play = {
            "name": "Steps", "hosts": "localhost", "connection": "local", "gather_facts": False,
            "vars": dict(variables), "tasks": [*asked, keep],
        }  # fmt: skip
        file = self._directory / "steps.json"
        file.write_text(json.dumps([play]))
        made.unlink(missing_ok=True)
        done = self._ansible.run("ansible-playbook", str(file))
        assert made.exists(), done.stdout[-4000:] + done.stderr[-2000:]
        found: dict[str, Any] = json.loads(made.read_text())
        return found

    def walk(self, way: str, connection: Mapping[str, Any], asked: Iterable[Step]) -> None:
        """Carry out every step four times, and judge what the modules say of it."""
        asked = list(asked)
        tasks = [
            {
                "name": f"{step.name}, {round_}",
                f"haclusterd.cluster.{step.module}": {**connection, **step.arguments},
                "check_mode": is_check, "diff": True, "register": f"{round_}_{number}",
            }
            for number, step in enumerate(asked)
            for round_, is_check in ROUNDS
        ]  # fmt: skip
        found = self.play(tasks, {"ansible_python_interpreter": self._ansible.program("python")})
        for number, step in enumerate(asked):
            self._judge(f"{way}: {step.name}", step, {name: found[f"{name}_{number}"] for name, _ in ROUNDS})

    def _judge(self, what: str, step: Step, results: Mapping[str, Any]) -> None:
        self.counts["runs"] += len(results)
        if any(each.get("failed") for each in results.values()):
            self.wrong("failed", f"{what}: {[each.get('msg') for each in results.values()]}")
            return
        changed = {name: each["changed"] for name, each in results.items()}
        self.counts["changed_first"] += changed["done"]
        if changed["done"] is not step.changes:
            self.wrong("failed", f"{what}: changed is {changed['done']}")
        if changed["again"]:
            self.wrong("changed_second", what)
        if changed["asked"] is not changed["done"] or changed["asked_again"] is not changed["again"]:
            self.wrong("check_mode_wrong", f"{what}: {changed}")
        for one, other in (("asked", "done"), ("asked_again", "again")):
            if results[one].get("diff") != results[other].get("diff"):
                self.wrong("diff_wrong", f"{what}: {results[one].get('diff')} and {results[other].get('diff')}")
        shown = results["done"].get("diff") or {}
        if step.changes and not (shown.get("prepared") or shown.get("before") != shown.get("after")):
            self.wrong("diff_wrong", f"{what}: no difference is shown: {shown}")

    def refuse(self, socket: str, api: Api) -> None:
        """Give the modules what they must refuse, and look for the place and the remedy in what they say."""
        url = f"http://127.0.0.1:{api.port}"
        tasks = []
        for number, each in enumerate(REFUSED):
            given = {"socket": socket, **each.arguments}
            given = {name: value for name, value in given.items() if value is not None}
            tasks.append({
                "name": f"Refused {number}", f"haclusterd.cluster.{each.module}": given, "ignore_errors": True,
                "register": f"refused_{number}",
            })  # fmt: skip
        found = self.play(tasks, {"url": url, "ansible_python_interpreter": self._ansible.program("python")})
        for number, each in enumerate(REFUSED):
            result = found[f"refused_{number}"]
            message = str(result.get("msg"))
            self.counts["bad_input"] += 1
            is_whole = each.place in message and each.remedy in message and "Traceback" not in str(result)
            if not result.get("failed") or result.get("changed") or not is_whole:
                self.wrong("bad_input_wrong", f"{each.module} {each.arguments}: {message}")


@contextmanager
def part(what: str) -> Iterator[None]:
    """Say when something is done, and how long it took."""
    began = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)


def _lint(ansible: Ansible) -> list[str]:
    with part("linted"):
        return findings(ansible)


def _by_crm(ansible: Ansible, directory: Path, scenario: Scenario) -> Trial:
    """Try the modules by crm."""
    trial = Trial(ansible, directory)
    try:
        scenario.form()
        with part("changes by crm"):
            trial.walk("crm", {"socket": _socket(scenario)}, steps(scenario.power()))
    finally:
        scenario.close()
    return trial


def _over_rest(ansible: Ansible, directory: Path, scenario: Scenario) -> Trial:
    """Try the modules over REST, and with bad input."""
    trial = Trial(ansible, directory)
    api: Api | None = None
    try:
        scenario.form()
        api = started(scenario, "n2", directory)
        token = crm(scenario, "n1", "api", "token", "add", "ansible", "--role", "admin")["token"]
        with part("changes over REST"):
            trial.walk("REST", {"url": f"http://127.0.0.1:{api.port}", "token": token}, steps(scenario.power()))
        with part("bad input"):
            trial.refuse(_socket(scenario), api)
    finally:
        if api is not None:
            api.process.terminate()
            api.process.wait(20)
        scenario.close()
    return trial


def _socket(scenario: Scenario) -> str:
    return str(scenario.cluster.nodes[scenario.cluster.names[0]].socket)


def _begin(ansible: Ansible, directory: Path, zero: ZeroCluster) -> tuple[Trial, dict[str, int]]:
    """Try the role."""
    trial = Trial(ansible, directory)
    try:
        with part("a cluster from zero"):
            return trial, zero.play(trial)
    finally:
        zero.close()


def run(ansible: Ansible, directory: Path) -> int:
    """Do all that is independent at the same time: a module spends its time on the start of Python."""
    places = {name: directory / name for name in ("crm", "rest", "zero")}
    for each in places.values():
        each.mkdir()
    # One after the other, since all of them look for free ports.
    first, second = (Scenario(places[name] / "cluster") for name in ("crm", "rest"))
    zero = ZeroCluster(places["zero"] / "cluster", ansible)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(_by_crm, ansible, places["crm"], first),
                 pool.submit(_over_rest, ansible, places["rest"], second)]  # fmt: skip
        linting = pool.submit(_lint, ansible)
        beginning = pool.submit(_begin, ansible, places["zero"], zero)
        (begun, words), lint = beginning.result(), linting.result()
        trials = [*(each.result() for each in asked), begun]
    problems = [*(problem for trial in trials for problem in trial.problems), *lint]
    for each in problems:
        print(each)
    names = dict.fromkeys(name for trial in trials for name in trial.counts)
    counts = {name: sum(trial.counts.get(name, 0) for trial in trials) for name in names}
    print("RESULT", *(f"{name}={count}" for name, count in {**counts, **words, "lint": len(lint)}.items()))
    return int(bool(problems))


def main() -> int:
    ansible = Ansible()
    try:
        ansible.prepare()
    except NotInstalledError as error:
        print(f"Ansible cannot be installed: {error}")
        print("RESULT skipped=1 reason=ansible-core-cannot-be-installed")
        return 77
    # crm is that of this checkout, as in a shell where it is installed.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    directory = Path(tempfile.mkdtemp(prefix="ansible-"))
    try:
        return run(ansible, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
