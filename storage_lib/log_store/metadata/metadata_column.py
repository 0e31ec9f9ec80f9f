"""A column of a table that is filled from the metadata of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.conversion.captured_value_type import Meaning, Spelling, ValueType
from storage_lib.log_store.conversion.captured_values import Converted, converted, is_convertible
from storage_lib.log_store.conversion.number_values import TEXT_ROOTS
from storage_lib.schema.options.source_options import OutOfRange, TimePrecision
from storage_lib.schema.types.data_types import TypeRoot

if TYPE_CHECKING:
    from storage_lib.log_store.metadata.metadata_names import Metadata
    from storage_lib.schema.types.data_field import DataField

_EXACTLY = CaptureModes(out_of_range=OutOfRange.REJECT, time_precision=TimePrecision.REJECT)
_MOMENTS = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataColumn:
    """``place`` is its position in the table. ``is_required``: a record without a value is refused."""

    field: DataField
    place: int
    metadata: Metadata
    is_required: bool = False

    def converted(self, values: pa.Array, written: ValueType) -> Converted:
        """Convert values exactly. Raises ``InvalidInputError`` if no value of the type can be one of the column."""
        return converted(values, self._meant(written), self.field, _EXACTLY)

    def takes(self, written: ValueType) -> bool:
        """Whether values of a type can be those of the column."""
        return is_convertible(self._meant(written), self.field.type, _EXACTLY)

    def _meant(self, written: ValueType) -> ValueType:
        root = self.field.type.root
        if self.metadata.is_digits and written.meaning is Meaning.TEXT and root not in TEXT_ROOTS:
            return ValueType(meaning=Meaning.DECIMAL, spelling=Spelling.TEXT)
        unit = self.metadata.unit
        is_number = written.meaning is Meaning.INTEGER
        if unit is None or not is_number or root not in _MOMENTS:
            return written
        return ValueType(meaning=Meaning.MOMENT, unit=unit)
