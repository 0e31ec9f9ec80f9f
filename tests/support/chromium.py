"""Headless browser driven through its debugging protocol: opens pages, runs scripts, takes screenshots.

Scripts may return promises. The profile is a folder of the test; the user's own profile is not touched.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from websockets.sync.client import connect

from tests.support.waiting import wait_until

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chromium:
    """One browser with one page."""

    def __init__(self, profile: Path, *, width: int = 1280, height: int = 900) -> None:
        assert PROGRAM is not None
        self._process = subprocess.Popen(
            [
                PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                "--remote-debugging-port=0", f"--user-data-dir={profile}", f"--window-size={width},{height}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._closing = ExitStack()
        self._closing.callback(self._end)
        self._number = 0
        with self._closing.pop_all() as unless_all_goes_well:
            self._page = unless_all_goes_well.enter_context(connect(self._page_address(profile), max_size=None))
            self._ask("Page.enable")
            self._ask("Runtime.enable")
            self._closing = unless_all_goes_well.pop_all()

    def open(self, url: str) -> None:
        """Navigate to ``url`` and wait until the page is loaded."""
        self._ask("Page.navigate", url=url)
        self.wait_for(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")

    def log_in(self, base_url: str, user: str, password: str) -> None:
        """Fill in and submit Airflow's login form."""
        self.open(f"{base_url}/auth/login")
        for name, text in (("username", user), ("password", password)):
            self.wait_for(f"document.querySelector('input[name={name}]')")
            self.run(f"document.querySelector('input[name={name}]').focus()")
            self._ask("Input.insertText", text=text)
        self.run("document.querySelector('button[type=submit]').click()")
        self.wait_for("!location.pathname.startsWith('/auth')")

    def run(self, script: str) -> Any:
        """Evaluate a JavaScript expression and return its value, converted through JSON."""
        answer = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true; errors during a navigation count as false."""

        def is_true() -> bool:
            answer = self._ask("Runtime.evaluate", expression=f"Boolean({condition})", returnByValue=True)
            return answer.get("result", {}).get("value") is True

        wait_until(is_true)

    def press(self, key: str) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")

    def picture(self, path: Path) -> None:
        """Write a screenshot of the viewport as PNG."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def resize(self, width: int, height: int) -> None:
        """Set the viewport's size in pixels."""
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def close(self) -> None:
        """Close the browser."""
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _page_address(profile: Path) -> str:
        told = profile / "DevToolsActivePort"
        wait_until(lambda: told.exists() and "\n" in told.read_text())
        port = told.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            [page] = [each for each in json.load(answer) if each["type"] == "page"]
        return str(page["webSocketDebuggerUrl"])

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        self._page.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._page.recv(timeout=300))
            if answer.get("id") == self._number:
                assert "error" not in answer or method == "Runtime.evaluate", answer
                result: dict[str, Any] = answer.get("result", {})
                return result
