"""Sends the log of a command's Spark to a file, so that standard error has only the command's own output."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TextIO

__all__ = ["children_log_to"]

_TAIL_BYTES = 20_000


@contextmanager
def children_log_to(file: Path | None) -> Iterator[TextIO]:
    """Send the standard error of processes that start in the block to ``file``, or to a temporary file.

    This process's standard error is redirected as well; yields a stream to the original one. If the block raises, the
    last 20 kB of the file are copied to standard error.
    """
    with file.open("w+b") if file is not None else tempfile.TemporaryFile() as log:
        sys.stderr.flush()
        own = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            with open(own, "w", closefd=False) as terminal:
                yield terminal
        except BaseException:
            os.dup2(own, 2)
            _copy_tail(log)
            raise
        finally:
            os.dup2(own, 2)
            os.close(own)


def _copy_tail(log: IO[bytes]) -> None:
    with suppress(OSError, AttributeError):
        log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
        shutil.copyfileobj(log, sys.stderr.buffer)
