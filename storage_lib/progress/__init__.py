"""Progress of long operations: a bar on a terminal and in notebooks, or a callback.

with report_to(print):
    table.compact()

The bar needs the extra ``cli`` (rich), which is imported only when a bar is drawn.
"""

from __future__ import annotations

from storage_lib.progress.operation import report_to
from storage_lib.progress.progress import Progress, ProgressCallback, ProgressOption

__all__ = ["Progress", "ProgressCallback", "ProgressOption", "report_to"]
