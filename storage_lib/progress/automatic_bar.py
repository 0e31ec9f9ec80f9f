"""Choose a bar if a person watches this thread on a terminal or in a notebook, and rich is installed."""

from __future__ import annotations

import os
import sys
import threading
from importlib.util import find_spec

from storage_lib.progress.delayed_bar import Bar, DelayedBar
from storage_lib.progress.progress import Progress

SHOWN_AFTER_SECONDS = 1.0
"""Operations shorter than this show no bar."""


def automatic_bar(*, on_terminal: bool = True) -> DelayedBar | None:
    """Return a bar for one operation, or None if nobody would see it.

    Only the main thread of a program's first process shows bars: a background thread or a worker process would draw
    over the person's work. ``on_terminal=False`` restricts bars to notebooks.
    """
    if threading.current_thread() is not threading.main_thread() or _is_worker_process():
        return None
    if _is_notebook():
        make = _notebook_bar
    elif on_terminal and _is_terminal():
        make = _terminal_bar
    else:
        return None
    return None if find_spec("rich") is None else DelayedBar(make, delay_seconds=SHOWN_AFTER_SECONDS)


def _is_worker_process() -> bool:
    # Another thread may be importing the module, which then lacks its functions.
    parent_process = getattr(sys.modules.get("multiprocessing"), "parent_process", None)
    return parent_process is not None and parent_process() is not None


def _is_notebook() -> bool:
    """Whether this is a Jupyter kernel; IPython on a terminal has no ``kernel``."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and hasattr(get_ipython(), "kernel")


def _is_terminal() -> bool:
    try:
        is_terminal = sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False  # a program without a standard error, or with a closed one
    return is_terminal and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def _terminal_bar(first: Progress, elapsed_seconds: float) -> Bar:
    from storage_lib.progress.rich_bar import TerminalBar  # noqa: PLC0415  rich, only where a bar is due

    return TerminalBar(first, elapsed_seconds)


def _notebook_bar(first: Progress, elapsed_seconds: float) -> Bar:
    from storage_lib.progress.rich_bar import NotebookBar  # noqa: PLC0415  rich, only where a bar is due

    return NotebookBar(first, elapsed_seconds)
