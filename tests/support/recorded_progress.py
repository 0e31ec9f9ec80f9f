"""Progress callback that records its calls."""

from __future__ import annotations

from itertools import pairwise

from storage_lib.progress import Progress


class RecordedProgress:
    """Raises ``error``, unless None, at the report with ``fails_at`` steps done."""

    def __init__(self, *, fails_at: int | None = None, error: BaseException | None = None) -> None:
        self.reports: list[Progress] = []
        self._fails_at = fails_at
        self._error = error

    def __call__(self, progress: Progress) -> None:
        self.reports.append(progress)
        if self._error is not None and progress.done == self._fails_at:
            raise self._error

    @property
    def operations(self) -> list[tuple[str, int | None, str]]:
        """Name, total and unit of each operation; asserts that each was reported completely and in order."""
        whole: list[list[Progress]] = []
        for report in self.reports:
            if not whole or report.operation != whole[-1][0].operation:
                whole.append([])
            whole[-1].append(report)
        for reports in whole:
            assert reports[0].done == 0
            assert all(earlier.done <= later.done for earlier, later in pairwise(reports)), reports
            assert [report for report in reports if report.done == report.total] == reports[-1:]
        return [(reports[-1].operation, reports[-1].total, reports[-1].unit) for reports in whole]
