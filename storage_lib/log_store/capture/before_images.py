"""Whether the row ``before`` of a record is the whole row, or only its key with invented values in the other columns.

PostgreSQL logs only the key of a changed or deleted row (``REPLICA IDENTITY DEFAULT``), and Debezium then writes nulls
into the other columns of ``before``, or an invented value if they are NOT NULL. No record tells which of both it is.
The other databases log the whole row as long as Debezium runs with the settings that it demands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.options.source_options import BeforeImage

if TYPE_CHECKING:
    from storage_lib.schema.types.nested_arrays import Mask

_WHOLE = ("mysql", "mariadb", "sqlserver", "db2", "oracle", "informix")
"""Connectors whose ``before`` is the whole row."""


def holds_whole_before(setting: BeforeImage, connectors: pa.Array, keys: pa.Array) -> Mask:
    """Return the mask of the records whose ``before``, if there is one, is whole.

    ``connectors`` are the connectors' names, null for records of other programs, which write whole rows; ``keys`` are
    the records' keys: a source table without a key can only be logged with whole rows.
    """
    if setting is not BeforeImage.AUTO:
        return np.full(len(keys), setting is BeforeImage.WHOLE)
    is_known = pc.is_in(connectors, pa.array(_WHOLE))
    whole: Mask = pc.or_(pc.or_(is_known, connectors.is_null()), keys.is_null()).to_numpy(zero_copy_only=False)
    return whole
