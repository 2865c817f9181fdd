"""A small client of a headless Chromium over its DevTools pipe; nothing to install, nothing from the network."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLACES = ("chromium", "chromium-browser", "google-chrome")
# Chromium reads commands from descriptor 3 and answers on 4; a fresh process puts them there.
HAND_OVER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars")


def executable() -> str | None:
    return next((found for place in PLACES if (found := shutil.which(place))), None)


class Page:
    """One page in a browser of its own. `events` holds everything the browser told, in order."""

    def __init__(self, url: str, *, width: int = 1000, height: int = 800, dark: bool = False, scripts: bool = True):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.commands = os.pipe()
        self.answers, to_write = os.pipe()
        # Numbers above 4, so that handing one over does not close the other.
        ends = [os.fdopen(os.dup(end)) if end <= 4 else None for end in (to_read, to_write)]
        given = [end.fileno() if end else number for end, number in zip(ends, (to_read, to_write), strict=True)]
        command = [executable(), *FLAGS, *QUIET, "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", HAND_OVER, *map(str, given), *command, "about:blank"],
            pass_fds=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for number in (to_read, to_write):
            os.close(number)
        self.events, self.session, self.last, self.rest = [], None, 0, b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait(10)
        os.close(self.commands)
        os.close(self.answers)
        self.folder.cleanup()

    def call(self, method: str, **parameters):
        """What the browser answers to a command."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.last:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def value(self, expression: str):
        """The value of a JavaScript expression on the page."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, event: str) -> None:
        while not any(told["method"] == event for told in self.events):
            self._next()

    def complaints(self) -> list[str]:
        """Errors and warnings in the console, uncaught exceptions, and anything the page's policy blocked."""
        return [json.dumps(told["params"]) for told in self.events if _complains(told["method"], told["params"])]

    def requests(self) -> list[str]:
        """The addresses that were asked for, those inside the page left out."""
        asked = [
            told["params"]["request"]["url"] for told in self.events if told["method"] == "Network.requestWillBeSent"
        ]
        return [address for address in asked if not address.startswith("data:")]

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        import base64

        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(shot["data"]))

    def _clip(self, whole: bool) -> dict:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def _next(self, seconds: float = 30) -> dict:
        """The next message; events are kept."""
        until = time.monotonic() + seconds
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.answers], [], [], max(0, until - time.monotonic()))
            assert ready, "Chromium did not answer"
            self.rest += os.read(self.answers, 1 << 20)
        message, _, self.rest = self.rest.partition(b"\0")
        told = json.loads(message)
        if "method" in told:
            self.events.append(told)
        return told


def _complains(method: str, told: dict) -> bool:
    if method == "Log.entryAdded":
        return told["entry"]["level"] in ("error", "warning")
    return method == "Runtime.exceptionThrown" or (
        method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert")
    )
