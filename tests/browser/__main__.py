"""The web page in a real browser, over three real daemons: what an operator sees and does in a bad night.

Signs in, asks why, moves a resource after seeing the plan, meets a conflict, watches a failover, loses the quorum and
goes on reading. Ends with one line `RESULT ...`; exit code 1 when a step fails or the browser complains of anything.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.browser.chromium import Chromium, program
from tests.processes.daemons import Scenario
from tests.processes.rest_interface import Api, crm, started

HOSTILE = '<img src="/x" onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
ENTER, ESCAPE = 13, 27
STUB = Path(__file__).parents[1] / "agents" / "nvml_stub.c"


class PageWalk:
    """One operator with the page open."""

    def __init__(self, scenario: Scenario, api: Api, browser: Chromium, pictures: Path | None) -> None:
        self.scenario = scenario
        self.api = api
        self.browser = browser
        self.pictures = pictures
        self.has_devices = False
        self.axe: Path | None = None
        self.steps = 0
        self.inaccessible: list[str] = []

    def step(self, what: str, act: Callable[[], Any]) -> None:
        began = time.monotonic()
        act()
        self.steps += 1
        print(f"  {what}: {time.monotonic() - began:.1f} s", flush=True)

    def check(self, what: str, *, is_dark: bool = False) -> None:
        """Look for what a screen reader cannot say, and for what axe finds, in what is shown now."""
        self.browser.look(1000, 800, is_dark=is_dark)
        self.inaccessible += [f"{what}: {each}" for each in nameless(self.browser) + grave(self.browser, self.axe)]
        self.browser.look(1000, 800)

    def picture(self, name: str, width: int, height: int, *, is_dark: bool, at: str = "body") -> None:
        if self.pictures is not None:
            self.browser.look(width, height, is_dark=is_dark, scale=1.5 if width < 500 else 1)
            self.browser.until("it to be drawn again", "document.querySelector('#grid tbody tr')")
            self.browser.value(f"document.querySelector('{at}').scrollIntoView({{ behavior: 'instant' }})")
            self.browser.picture(self.pictures / f"{name}.png")
            self.browser.look(1000, 800)

    def shows(self, what: str, selector: str, text: str) -> None:
        self.browser.until(what, f"document.querySelector({selector!r}).innerText.includes({text!r})")

    def is_at(self, node: str) -> str:
        """Return an expression: the grid says that svc runs on a node."""
        column = 1 + self.scenario.cluster.names.index(node)
        return (
            "[...document.querySelectorAll('#grid tbody tr')].some((row) => row.cells[0].innerText.startsWith('svc') "
            f"&& row.cells[{column}].innerText.includes('runs'))"
        )

    # -- steps ------------------------------------------------------------------------------------------------------

    def sign_in(self) -> None:
        page = self.browser
        page.look(1000, 800)
        page.go(f"http://127.0.0.1:{self.api.port}/")
        page.until("the form", "!document.querySelector('#sign-in').hidden")
        page.write("#token", "hacl_guessed")
        page.press("#sign-in-form button")
        self.shows("a wrong token to be refused", "#sign-in-problem", "not valid")
        self.enter("admin")
        self.shows("the events to come", "#live", "live")
        page.until("no secret to be where scripts read", "document.cookie === '' && localStorage.length === 0")

    def enter(self, role: str) -> None:
        page = self.browser
        page.until("the form", "!document.querySelector('#sign-in').hidden")
        page.value("document.querySelector('#token').focus(), document.querySelector('#token').select()")
        page.send("Input.insertText", text=self.api.tokens[role])
        page.press("#sign-in-form button")
        self.shows("the verdict", "#verdict", "HEALTHY")
        self.shows("what one may", "#may-facts", role)

    def see_what_one_may(self) -> None:
        page = self.browser
        page.write("#may-object", "svc")
        page.press("#may-form button")
        self.shows("that an admin may stop it", "#may-answer", "Yes")
        self.sign_out()
        self.enter("viewer")
        page.press("#grid button", "svc")
        self.shows("why a viewer may not stop it", "#details-body", "Not permitted: Stop, Restart, Move there")
        self.shows("the role that says so", "#details-body .denied", "viewer")
        page.until(
            "the buttons to say so", "document.querySelectorAll('#details .actions button[aria-disabled]').length > 4"
        )
        page.press("#details button", "Stop")
        assert not page.value("document.querySelector('#plan').open")
        self.check("what is not permitted")
        self.picture("web-page-not-permitted", 1000, 800, is_dark=False)
        page.press("#details .close")
        page.press("#may-form button")
        self.shows("that a viewer may not stop it", "#may-answer", "No")
        self.sign_out()
        self.enter("admin")

    def see_availability(self) -> None:
        self.shows("the outage", "#availability-outages", "svc down for")
        self.shows("how long it took", "#availability-note", "median")
        self.shows("the service", "#availability-table", "svc")
        self.check("availability, at night", is_dark=True)
        self.picture("web-page-availability", 1000, 800, is_dark=False, at="#availability")

    def ask_why_with_the_keyboard(self) -> None:
        page = self.browser
        page.value("document.querySelector('#grid tbody button[data-key=\"resource svc\"]').focus()")
        page.key("Enter", ENTER, "\r")
        self.shows("the scores", "#details-body", "stickiness")
        page.key("Escape", ESCAPE)
        page.until("it to be closed", "!document.querySelector('#details').open")
        page.until("the focus to be where it was", "document.activeElement.dataset.key === 'resource svc'")

    def move_with_a_plan(self) -> None:
        page = self.browser
        target = next(name for name in self.scenario.cluster.names if name not in (self.scenario.holder(), "n1"))
        page.press("#grid button", "svc")
        page.until("the actions", "document.querySelector('#details .choice select')")
        page.value(f"document.querySelector('#details .choice select').value = '{target}'")
        page.press("#details button", "Move there")
        self.shows("what is interrupted", "#plan-body", f"goes to {target}, within 40 s at most")
        self.check("a plan")
        page.write("#plan-reason", HOSTILE)
        page.press("#plan form button")
        self.shows("it to be done", "#plan-body", "Done.")
        page.press("#plan .close")
        page.press("#details .close")
        page.until("the grid to show it", self.is_at(target))
        page.until("the reason in the timeline, as a text", f"document.body.innerText.includes({HOSTILE[:10]!r})")
        assert page.value("document.images.length") == 0
        assert "owned" not in page.value("document.title")

    def meet_a_conflict(self) -> None:
        page = self.browser
        page.press("#grid button", "svc")
        page.press("#details button", "Unmanage")
        self.shows("the plan", "#plan-body", "Nothing that runs is interrupted")
        crm(self.scenario, "n1", "configure", "node", "n2", "attributes", "rack=9")
        page.press("#plan form button", "Do it")
        self.shows("that somebody was faster", "#plan-body", "Somebody changed the configuration")
        page.press("#plan .close")
        page.press("#details .close")

    def search(self) -> None:
        page = self.browser
        page.write("#past-text", "ONERROR")
        page.press("#past-form button")
        self.shows("who moved it, and why, as a text", "#past-list", HOSTILE[:10])
        self.shows("the author", "#past-list", "token:browser")

    def zoom(self) -> None:
        page = self.browser
        before = page.text("#timeline-range")
        page.value("document.querySelector('#timeline-canvas').focus()")
        for key in ("+", "ArrowLeft", "ArrowRight", "-"):
            page.key(key, ord(key[0]), key if len(key) == 1 else "")
        page.press("#zoom-in")
        page.until("another span", f"document.querySelector('#timeline-range').innerText !== {before!r}")
        page.press("[data-hours='1']")

    def see_accelerators(self) -> None:
        page = self.browser
        for name, value in (
            ("gpu-usable", "7"),
            ("gpu-0000:1a:00-state", "failed"),
            ("gpu-0000:1a:00-why", "fell off"),
        ):
            crm(self.scenario, "n1", "node", "status-attr", "n2", "set", name, value)
        self.shows("the one that failed", "#gpu-list", "0000:1a:00 failed fell off")
        if not self.has_devices:
            return
        self.shows("the devices of n1", "#gpu-list", "2 of 2 can be used")
        for label, shown in (("Drain", "drained"), ("Clear", "2 of 2 can be used")):
            page.press("#gpu-list .devices button")
            self.shows("everything about it", "#details-body", "GPU-n1-0")
            page.press("#details button", label)
            self.shows("the plan", "#plan-body", "Nothing that runs is interrupted")
            page.press("#plan form button")
            self.shows("it to be done", "#plan-body", "Done.")
            page.press("#plan .close")
            page.press("#details .close")
            self.shows("what it is now", "#gpu-list", shown)
        self.check("accelerators")
        self.picture("web-page-accelerators", 1000, 800, is_dark=True, at="#gpus")

    def find_one_among_many(self) -> None:
        page = self.browser
        names = [f"many-{number:02}" for number in range(20)]
        self.scenario.configure(*(f"primitive {name} ocf:haclusterd:dummy meta target-role=Stopped" for name in names))
        page.until("the choice", "!document.querySelector('#grid-choice').hidden")
        page.write("#grid-name", "SVC")
        self.shows("how many there are", "#grid-count", "1 of 22")
        page.until("only what is wanted", "document.querySelectorAll('#grid tbody tr').length === 1")
        self.check("a choice of resources")
        page.value("document.querySelector('#grid-which').value = 'wrong'")
        page.value("document.querySelector('#grid-which').dispatchEvent(new Event('change'))")
        self.shows("that nothing is the matter", "#grid tbody", "No resource is like that")
        crm(self.scenario, "n1", "configure", "delete", *names)
        page.until("the choice to be gone", "document.querySelector('#grid-choice').hidden")
        page.until("all to be shown", "document.querySelectorAll('#grid tbody tr').length === 2")

    def see_a_failover(self) -> None:
        holder = self.scenario.holder()
        assert holder is not None
        other = next(name for name in self.scenario.cluster.names if name not in (holder, "n1"))
        self.scenario.cluster.power_off(holder)
        self.shows("the loss", "#verdict", "DEGRADED")
        self.browser.until("svc on another node", f"{self.is_at('n1')} || {self.is_at(other)}")
        self.shows("the fencing in the timeline", "#timeline-list", f"{holder} is fenced")
        self.picture("web-page-phone", 390, 844, is_dark=True)

    def lose_the_quorum(self) -> None:
        for name in ("n2", "n3"):
            self.scenario.cluster.power_off(name)
        self.shows("that it is old", "#age", "OLD")
        self.shows("who is missing", "#facts", "NO QUORUM")
        self.shows("that n2 may not be as it was", "#grid thead", "not heard for")
        self.browser.press("#grid button", "svc")
        self.shows("why, all the same", "#details-body", "Score")
        self.browser.press("#details .close")

    def sign_out(self) -> None:
        self.browser.press("#sign-out")
        self.browser.until("the form", "!document.querySelector('#sign-in').hidden")
        self.browser.until("nothing to be shown", "document.querySelector('#signed-in').hidden")


def with_devices(scenario: Scenario, directory: Path) -> bool:
    """Give n1 two accelerators of a stand-in for NVIDIA's library; return whether there is a compiler for it."""
    if shutil.which("cc") is None:
        return False
    library, answers = directory / "library", directory / "nvml"
    library.mkdir()
    flags = ("-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1")
    subprocess.run(["cc", *flags, "-o", library / "libnvidia-ml.so.1", STUB], check=True)
    answers.write_text("gpus=2\ng0.uuid=GPU-n1-0\ng1.uuid=GPU-n1-1\n")
    with open(scenario.cluster.nodes[NodeName("n1")].bundle / CONFIGURATION_FILE, "a") as stream:
        stream.write("gpus: 2\n")
    scenario.cluster.environment = {
        **scenario.cluster.environment, "NVML_STUB": str(answers), "LD_LIBRARY_PATH": str(library)
    }  # fmt: skip
    return True


def nameless(browser: Chromium) -> list[str]:
    """Return what a screen reader would find without a name."""
    wanted = {
        "button",
        "link",
        "textbox",
        "combobox",
        "searchbox",
        "dialog",
        "table",
        "region",
        "columnheader",
        "rowheader",
    }
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    return [
        each["role"]["value"]
        for each in nodes
        if not each.get("ignored")
        and each.get("role", {}).get("value") in wanted
        and not each.get("name", {}).get("value")
    ]


def grave(browser: Chromium, axe: Path | None) -> list[str]:
    """Return what axe-core finds that is serious or critical."""
    if axe is None:
        return []
    browser.value(axe.read_text() + ";0")
    browser.value(
        "axe.run().then((found) => { window.found = found.violations.filter((each) => "
        "['serious', 'critical'].includes(each.impact)).map((each) => `${each.id}: ${each.nodes[0].html}`) })"
    )
    return list(browser.value("window.found"))


def run(directory: Path, pictures: Path | None, axe: Path | None) -> int:
    scenario = Scenario(directory / "cluster")
    api: Api | None = None
    browser: Chromium | None = None
    try:
        has_devices = with_devices(scenario, directory)
        scenario.form().with_service()
        api = started(scenario, "n1", directory)
        for role, name in (("admin", "browser"), ("viewer", "looker")):
            api.tokens[role] = crm(scenario, "n1", "api", "token", "add", name, "--role", role)["token"]
        browser = Chromium(directory / "browser")
        walk = PageWalk(scenario, api, browser, pictures)
        walk.has_devices, walk.axe = has_devices, axe
        walk.step("sign in", walk.sign_in)
        walk.picture("web-page-light", 1000, 800, is_dark=False)
        walk.check("all of it")
        for act in (
            walk.ask_why_with_the_keyboard, walk.move_with_a_plan, walk.meet_a_conflict, walk.search, walk.zoom,
            walk.see_what_one_may, walk.see_accelerators, walk.find_one_among_many, walk.see_a_failover,
            walk.see_availability, walk.lose_the_quorum, walk.sign_out,
        ):  # fmt: skip
            walk.step(act.__name__.replace("_", " "), act)
        complaints = [each for each in browser.console if not each.startswith("Failed to load resource")]
    finally:
        if browser is not None:
            browser.close()
        if api is not None:
            api.process.terminate()
            api.process.wait(20)
        scenario.close()
    for each in (*complaints, *walk.inaccessible):
        print(f"  {each}")
    print(f"RESULT steps={walk.steps} complaints={len(complaints)} inaccessible={len(walk.inaccessible)}")
    return int(bool(complaints or walk.inaccessible))


def main() -> int:
    parser = argparse.ArgumentParser(prog="browser")
    parser.add_argument("--pictures", type=Path, help="where to write pictures of the page")
    parser.add_argument("--axe", type=Path, help="axe.min.js of axe-core, to be run over the page as well")
    options = parser.parse_args()
    if program() is None:
        print("RESULT skipped=no-browser (Debian: apt-get install chromium)")
        return 0
    directory = Path(tempfile.mkdtemp(prefix="browser-"))
    try:
        return run(directory, options.pictures, options.axe)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
