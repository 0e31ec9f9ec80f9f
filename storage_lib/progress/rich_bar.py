"""Bars drawn by rich."""

from __future__ import annotations

import rich.progress
from rich.console import Console
from rich.text import Text

from storage_lib.progress.progress import Progress

_WIDTH = 24


class _Count(rich.progress.ProgressColumn):
    """Column such as ``12 of 64 buckets``."""

    def render(self, task: rich.progress.Task) -> Text:
        return Text(task.fields["count"], style="progress.download")


class _TimeLeft(rich.progress.ProgressColumn):
    """Column such as ``0:00:40 left``, empty until there is an estimate."""

    def render(self, task: rich.progress.Task) -> Text:
        seconds = task.time_remaining
        if not seconds:
            return Text("")
        minutes, second = divmod(int(seconds), 60)
        hour, minute = divmod(minutes, 60)
        return Text(f"{hour}:{minute:02}:{second:02} left", style="progress.remaining")


class _RichBar:
    """A rich progress display with one task, drawn in the thread that calls ``draw``."""

    def __init__(self, first: Progress, elapsed_seconds: float) -> None:
        self._rich = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}", markup=False),
            rich.progress.BarColumn(bar_width=_WIDTH),
            _Count(),
            rich.progress.TimeElapsedColumn(),
            _TimeLeft(),
            console=Console(stderr=True),
            auto_refresh=False,
            # A bar on standard error must not move what the program prints to standard output.
            redirect_stdout=False,
        )
        title = f"{first.operation} {first.table}"
        self._task_id = self._rich.add_task(title, total=first.total, completed=first.done, count=first.count)
        self._rich.tasks[0].start_time = self._rich.get_time() - elapsed_seconds

    def _update(self, progress: Progress) -> None:
        self._rich.update(self._task_id, total=progress.total, completed=progress.done, count=progress.count)


class TerminalBar(_RichBar):
    """Bar on standard error."""

    def __init__(self, first: Progress, elapsed_seconds: float) -> None:
        super().__init__(first, elapsed_seconds)
        self._rich.start()

    def draw(self, progress: Progress) -> None:
        """Draw a report, and the time that has passed."""
        self._update(progress)
        self._rich.refresh()

    def close(self) -> None:
        """Stop drawing; the bar stays as it was drawn last."""
        self._rich.stop()


class NotebookBar(_RichBar):
    """Bar below the running notebook cell.

    rich's own display in notebooks needs ipywidgets and is lost when the notebook is saved; this one is an ordinary
    output that is updated in place.
    """

    def __init__(self, first: Progress, elapsed_seconds: float) -> None:
        super().__init__(first, elapsed_seconds)
        from IPython.display import display  # noqa: PLC0415  of the kernel that this runs in

        self._display = display(self._rich, display_id=True)

    def draw(self, progress: Progress) -> None:
        """Draw a report, and the time that has passed."""
        self._update(progress)
        self._display.update(self._rich)

    def close(self) -> None:
        """Do nothing: the output stays as it was drawn last."""
