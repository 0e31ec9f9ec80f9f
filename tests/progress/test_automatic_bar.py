"""When a progress bar appears without being requested."""

from __future__ import annotations

import io
import multiprocessing
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from storage_lib.progress import automatic_bar as automatic_bar_module
from storage_lib.progress import report_to
from storage_lib.progress.automatic_bar import automatic_bar
from storage_lib.progress.operation import operation
from tests.support.extras import needs

pytestmark = needs("rich")


class StandardError(io.StringIO):
    """Stream that claims to be a terminal, or not to be one."""

    answer: bool | Exception = True

    def isatty(self) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> StandardError:
    """Replace the standard error seen by the bar; pytest has its own."""
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = StandardError()
    monkeypatch.setattr(automatic_bar_module, "sys", SimpleNamespace(stderr=terminal, modules=sys.modules))
    return terminal


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_a_bar_unless_something_else_draws_one_there() -> None:
    assert automatic_bar() is not None
    assert automatic_bar(on_terminal=False) is None


def test_a_pipe_and_a_closed_standard_error_show_none(terminal: StandardError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert automatic_bar() is not None

    terminal.answer = False
    assert automatic_bar() is None

    terminal.answer = ValueError("I/O operation on closed file")
    assert automatic_bar() is None


def test_a_program_without_a_standard_error_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)

    assert automatic_bar() is None


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("kind", ["dumb", "unknown"])
def test_a_terminal_that_can_not_move_its_cursor_shows_none(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert automatic_bar() is not None

    monkeypatch.setenv("TERM", kind)

    assert automatic_bar() is None


@pytest.mark.usefixtures("terminal")
def test_without_rich_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert automatic_bar() is not None

    monkeypatch.setitem(sys.modules, "rich", None)

    assert automatic_bar() is None


@pytest.mark.usefixtures("terminal")
def test_a_thread_and_a_worker_process_show_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(automatic_bar()))
    thread.start()
    thread.join()
    assert found == [None]
    assert automatic_bar() is not None

    monkeypatch.setattr(multiprocessing, "parent_process", multiprocessing.current_process)

    assert automatic_bar() is None


class Display:
    """IPython's ``display``, with replaceable outputs."""

    def __init__(self) -> None:
        self.outputs: list[list[str]] = []

    def display(self, shown: Any, *, display_id: bool) -> Any:
        assert display_id
        self.outputs.append(output := [text_of(shown)])
        return SimpleNamespace(update=lambda newer: output.append(text_of(newer)))


def text_of(shown: Any) -> str:
    bundle: dict[str, str] = shown._repr_mimebundle_(include=[], exclude=[])
    assert "<pre" in bundle["text/html"]
    return bundle["text/plain"]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Display:
    """Simulate a Jupyter kernel as far as the bar checks for one."""
    display = Display()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display.display))
    monkeypatch.setattr(automatic_bar_module, "SHOWN_AFTER_SECONDS", 0)
    return display


def test_a_notebook_shows_one_output_for_an_operation_which_stays(
    notebook: Display, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with operation("compact", "shop.orders", total=2, unit="buckets", bar_on_terminal=False) as buckets:
            buckets.advance()

    assert len(notebook.outputs) == 2
    for output in notebook.outputs:
        assert "0 of 2 buckets" in output[0]
        assert "compact shop.orders" in output[-1]
        assert "2 of 2 buckets" in output[-1]
    assert capsys.readouterr() == ("", "")


def test_a_callback_or_false_replaces_the_bar(notebook: Display) -> None:
    told: list[object] = []
    for progress in (told.append, False):
        with report_to(progress), operation("compact", "t", total=1, unit="buckets"):
            pass

    assert notebook.outputs == []
    assert len(told) == 2


@pytest.mark.usefixtures("terminal")
def test_ipython_on_a_terminal_is_not_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell in (None, SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert automatic_bar() is not None
        assert automatic_bar(on_terminal=False) is None


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("name", ["IPython", "multiprocessing"])
def test_a_module_that_another_thread_is_importing_is_not_there_yet(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, ModuleType(name))

    assert automatic_bar() is not None
