"""Helper process that answers commands, one JSON text per line on its standard input and output."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class RefusedError(AssertionError):
    """Error reported by the program; an ``AssertionError``, so that it fails a test that does not expect it."""


class LineServant:
    """One process; it ends when its standard input closes, at the latest when this process ends."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._log = log
        with log.open("w") as said:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                encoding="utf-8",
                env={**(os.environ if environment is None else environment), "TZ": "UTC"},
                cwd=cwd,
                start_new_session=True,  # keep Ctrl-C from reaching it
            )
        atexit.register(self.close)

    def ask(self, command: object) -> Any:
        """Return the answer to one command; raise ``RefusedError`` if it is an object with ``error``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        assert line, f"the program ended; it said:\n{self._log.read_text()[-4000:]}"
        answer = json.loads(line)
        if "error" in answer:
            raise RefusedError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process and wait for it."""
        atexit.unregister(self.close)
        self._process.communicate()
