"""Options under which a table would not hold exactly the rows that are written into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.schema.options.table_options import LogConsistency, MergeEngine, WriteMode

if TYPE_CHECKING:
    from storage_lib.schema.options.table_options import TableOptions


def unfit_option(options: TableOptions, *, takes_append_only: bool = False) -> str | None:
    """Return the first option that does not fit a table with the answer of a query; None if all fit."""
    unfit = {
        "merge-engine": options.merge_engine not in (MergeEngine.DEDUPLICATE, MergeEngine.VALUE_COUNT),
        "write-mode": not takes_append_only and options.write_mode is not WriteMode.CHANGE_LOG,
        "sequence.field": bool(options.sequence_field),
        "ignore-delete": options.ignore_delete,
        "log.consistency": options.log_consistency is LogConsistency.EVENTUAL,
    }
    return next((option for option, is_unfit in unfit.items() if is_unfit), None)
