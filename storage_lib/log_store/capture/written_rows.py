"""Converts the columns of rows, as they were written, to images in the table's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.log_store.capture.captured_changes import Refusal
from storage_lib.log_store.capture.placeholders import is_placeholder
from storage_lib.log_store.capture.row_images import RowImages
from storage_lib.log_store.conversion.captured_values import converted

if TYPE_CHECKING:
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.conversion.captured_value_type import ValueType
    from storage_lib.schema.types.nested_arrays import Mask


def images_of(
    table: CapturedTable,
    columns: Mapping[str, tuple[pa.Array, ValueType]],
    is_there: Mask,
    absent: Mapping[str, Mask],
) -> RowImages:
    """Return one row per record, null where ``is_there`` is not.

    ``columns`` hold written values with their types; a column that is missing there is absent from all rows. ``absent``
    are masks of further rows that lack a column.
    """
    arrays: dict[str, pa.Array] = {}
    unavailable: dict[str, Mask] = {}
    missing = dict(absent)
    refusals: list[Refusal] = []
    for field in table.schema.fields:
        if field.name not in columns:
            arrays[field.name] = pa.nulls(len(is_there), field.type.arrow)
            missing[field.name] = is_there
            continue
        column, written = columns[field.name]
        placeholders = is_placeholder(column, written, table.modes.placeholder)
        if placeholders is not None and (placeholders := placeholders & is_there).any():
            unavailable[field.name] = placeholders
            column = column.take(pa.array(np.arange(len(column)), mask=placeholders))
        result = converted(column, written, field, table.modes)
        arrays[field.name] = result.array
        for each in result.refusals:
            refusals += [
                Refusal(record_index=index, column=field.name, reason=each.reason)
                for index in np.flatnonzero(each.mask & is_there).tolist()
            ]
    return RowImages(
        columns=arrays, is_there=is_there, unavailable=unavailable, absent=missing, refusals=tuple(refusals)
    )
