"""A headless Chromium, driven through its DevTools protocol: what a person would see and press."""

import asyncio
import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WAIT_S_MAX = 40.0
POLL_S = 0.1


def program() -> str | None:
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Chromium:
    """One browser with one page; `console` has what the page complained of."""

    def __init__(self, directory: Path) -> None:
        found = program()
        assert found is not None
        self._runner = asyncio.Runner()
        self._numbers = itertools.count(1)
        self.console: list[str] = []
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [found, "--headless=new", *sandbox, "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-extensions", "--disable-default-apps", "--mute-audio", "--remote-debugging-port=0",
             f"--user-data-dir={directory}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(directory)},
        )  # fmt: skip
        marker = directory / "DevToolsActivePort"
        self._wait("the browser to start", lambda: marker.exists() and len(marker.read_text().splitlines()) == 2)
        port = marker.read_text().splitlines()[0]
        self._runner.run(self._connect(f"http://127.0.0.1:{port}"))
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")

    async def _connect(self, address: str) -> None:
        self._http = aiohttp.ClientSession()
        async with self._http.get(f"{address}/json/list") as answer:
            pages = [each for each in await answer.json() if each["type"] == "page"]
        self._socket = await self._http.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=64 * 1024 * 1024)

    def close(self) -> None:
        async def close() -> None:
            await self._socket.close()
            await self._http.close()

        self._runner.run(close())
        self._runner.close()
        self._process.terminate()
        self._process.wait(20)

    # -- the protocol -----------------------------------------------------------------------------------------------

    def send(self, method: str, **parameters: Any) -> Any:
        return self._runner.run(self._send(method, parameters))

    async def _send(self, method: str, parameters: dict[str, Any]) -> Any:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(WAIT_S_MAX):
            while True:
                message = json.loads((await self._socket.receive()).data)
                if message.get("id") == number:
                    assert "error" not in message, (method, message["error"])
                    return message["result"]
                self._note(message)

    def _note(self, message: Any) -> None:
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description") or details["text"])
        elif message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.console.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")

    # -- a person ---------------------------------------------------------------------------------------------------

    def go(self, address: str) -> None:
        self.send("Page.navigate", url=address)
        self.until("the page to be loaded", "document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def until(self, what: str, expression: str, wait_s_max: float = WAIT_S_MAX) -> None:
        tried = f"(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()"
        self._wait(what, lambda: bool(self.value(tried)), wait_s_max)

    def _wait(self, what: str, condition: Callable[[], bool], wait_s_max: float = WAIT_S_MAX) -> None:
        deadline = time.monotonic() + wait_s_max
        while not condition():
            assert time.monotonic() < deadline, f"waited {wait_s_max} s in vain for {what}\n{self.console}"
            time.sleep(POLL_S)

    def text(self, selector: str) -> str:
        return str(self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def press(self, selector: str, containing: str = "") -> None:
        """Press the first visible element that fits."""
        found = (
            f"[...document.querySelectorAll({json.dumps(selector)})].find((each) => "
            f"each.getClientRects().length && each.innerText.includes({json.dumps(containing)}))"
        )
        self.until(f"{selector} {containing}", found)
        self.value(f"{found}.click()")

    def write(self, selector: str, text: str) -> None:
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(selector, found)
        self.value(f"{found}.focus()")
        self.send("Input.insertText", text=text)

    def key(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            written = {"text": text} if text and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **written)

    def look(self, width: int, height: int, *, is_dark: bool = False, scale: float = 1) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 500)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, file: Path, *, whole: bool = False) -> None:
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(shot["data"]))
