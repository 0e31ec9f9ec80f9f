"""A program that answers commands, a JSON text a line on its standard input and output, for as long as we live."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class RefusedError(AssertionError):
    """What the program said in place of an answer: a failed expectation, where a test does not wait for it."""


class LineServant:
    """One process; it ends when its input does, which is when we end, in whatever way."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self._log = log
        with log.open("w") as said:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                encoding="utf-8",
                env={**os.environ, "TZ": "UTC"},
                start_new_session=True,  # Ctrl-C is for us
            )
        atexit.register(self.close)

    def ask(self, command: object) -> Any:
        """The answer to one command; ``RefusedError`` if it is an object with ``error``."""
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
        """End it and wait for that."""
        atexit.unregister(self.close)
        self._process.communicate()
