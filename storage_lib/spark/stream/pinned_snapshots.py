"""The snapshots at which a stream reads other tables, kept in its checkpoint: the same ones whenever it is started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.spark.stream.checkpoint_identity import settled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SNAPSHOTS_FILE = "dynamic-table-snapshots"


def pinned_snapshots(
    spark: SparkSession, table: str, checkpoint: str | None, newest: Mapping[str, int]
) -> dict[str, int]:
    """The snapshots (0: the empty table) of the tables in ``newest`` that the stream into ``table`` began with.

    At its first start these are ``newest``. Without a checkpoint nothing is kept. Raises ``InvalidInputError`` for a
    checkpoint of a stream that read other tables.
    """
    if checkpoint is None:
        return dict(newest)
    text = settled(spark, f"{checkpoint.rstrip('/')}/{SNAPSHOTS_FILE}", json.dumps(dict(newest), sort_keys=True))
    kept: dict[str, int] = json.loads(text)
    missing = sorted(set(newest) - set(kept))
    if missing:
        message = (
            f"table {table}: the stream of checkpoint {checkpoint} reads {', '.join(sorted(kept))} at fixed snapshots, "
            f"and did not read {', '.join(missing)} when it began. Give the new query a checkpoint of its own"
        )
        raise InvalidInputError(message)
    return {name: int(kept[name]) for name in newest}
