"""Field ids of the columns of data files, including nested fields (docs/format.md, 1.11).

Our readers resolve columns by name; the ids are for tools and for engines that evolve schemas by id.
"""

from __future__ import annotations

import pyarrow as pa

from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType

FIELD_ID_KEY = b"PARQUET:field_id"
_ELEMENT_BASE = 536_870_911
_PER_FIELD = 1_024


def with_field_id(field: pa.Field, field_id: int, of: DataType | None = None) -> pa.Field:
    """Return the Arrow field with an id; ``of`` is the type of a column, whose nested fields get ids as well.

    Elements and map values have base + 1024 * id + depth, map keys base - 1024 * id - depth, ROW fields their own, the
    two parts of a VARIANT 0 and 1.
    """
    typed = field if of is None else field.with_type(_with_ids(of, field_id, 0))
    return typed.with_metadata({FIELD_ID_KEY: str(field_id).encode()})


def _with_ids(of: DataType, field_id: int, depth: int) -> pa.DataType:
    match of:
        case ArrayType():
            return pa.list_(_part(of.arrow.value_field, of.element, field_id, depth + 1))
        case MapType() | MultisetType():
            key = of.key if isinstance(of, MapType) else of.element
            value = of.value if isinstance(of, MapType) else None
            return pa.map_(
                _part(of.arrow.key_field, key, field_id, depth + 1, is_key=True),
                _part(of.arrow.item_field, value, field_id, depth + 1),
            )
        case RowType():
            pairs = zip(of.arrow, of.fields, strict=True)
            return pa.struct([with_field_id(arrow, each.id, each.type) for arrow, each in pairs])
        case _ if of.root is TypeRoot.VARIANT:
            ids = [{FIELD_ID_KEY: str(index).encode()} for index in range(of.arrow.num_fields)]
            return pa.struct(
                [part.with_metadata({**(part.metadata or {}), **own}) for part, own in zip(of.arrow, ids, strict=True)]
            )
        case _:
            return of.arrow


def _part(field: pa.Field, of: DataType | None, field_id: int, depth: int, *, is_key: bool = False) -> pa.Field:
    distance = _PER_FIELD * field_id + depth
    own_id = _ELEMENT_BASE - distance if is_key else _ELEMENT_BASE + distance
    typed = field if of is None else field.with_type(_with_ids(of, field_id, depth))
    return typed.with_metadata({FIELD_ID_KEY: str(own_id).encode()})
