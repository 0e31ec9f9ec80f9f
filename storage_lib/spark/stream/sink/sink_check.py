"""Check of a sink's new rows, made in the sink's process by the function that its specification names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from storage_lib.spark.stream.sink.sink_spec import SinkCheck
    from storage_lib.table.sources.row_check import RowCheck


def check_of(named: SinkCheck | None) -> RowCheck | None:
    """Return the check; None without one. Raises ``InvalidInputError`` if this Python does not have its function."""
    if named is None:
        return None
    module, _, name = named.function.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        message = (
            f"the check of new rows, {named.function}, can't be imported here: {error}. Install what it needs in the "
            "Python of the sink, or leave the expectations out"
        )
        raise InvalidInputError(message) from error
    return cast("RowCheck", function(named.given))
