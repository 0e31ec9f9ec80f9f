"""Finds values that a record leaves out as unchanged, although a refused record of its key may have changed them.

    offset 1    id 7, note "a"                 in the table
    offset 2    id 7, note "b", name too long  refused
    offset 3    id 7, note unchanged           "b" in the source, and "a" in the table

So the record at offset 3 is refused as well, until the one at offset 2 has been re-ingested or deleted. A record that
was refused but leaves out the same value as unchanged has not changed it, and does not count if it can be decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.log_store.codec.log_columns import LogColumns

if TYPE_CHECKING:
    from storage_lib.log_store.external.captured_topic import CapturedTopic, RefusedRecord
    from storage_lib.schema.types.nested_arrays import Mask
    from storage_lib.table.sources.gathered_changes import GatheredChanges

_CANDIDATE = "candidate"
_STORED = -1
"""Offset of the rejected records that the table has: they precede every record that is read."""


class UnsureValues:
    """Judges the changes of one topic. ``stored`` are the rejected records of their keys that the table has."""

    def __init__(self, captured: CapturedTopic, changes: GatheredChanges, stored: pa.Table) -> None:
        self._captured = captured
        self._changes = changes
        self._stored = stored

    def problems(
        self, left_out: Mapping[str, Mask], refused: Sequence[RefusedRecord]
    ) -> dict[int, tuple[str | None, str]]:
        """Return the positions of changes with such a value, with its column and the reason to refuse them.

        ``left_out`` are masks of the unchanged values by column, ``refused`` the refused records among the changes.
        """
        candidates = self._candidates(refused)
        if not candidates.height:
            return {}
        keeps = self._keeping(candidates, list(left_out))
        rows = pl.DataFrame(
            {
                "key": pl.Series(self._changes.keys.combine_chunks(), dtype=pl.Binary),
                "bucket": self._changes.buckets,
                "offset": self._changes.offsets,
            }
        ).with_row_index("place")
        found: dict[int, tuple[str | None, str]] = {}
        for name, mask in left_out.items():
            changing = candidates.filter(~pl.Series(keeps[name]))
            # Records without a key may be changes of any.
            pairs = rows.filter(pl.Series(mask)).join(changing, on="key", suffix="_before", nulls_equal=True)
            # Only offsets of one partition tell what comes first.
            is_before = (pl.col("offset_before") < pl.col("offset")) | (pl.col("bucket_before") != pl.col("bucket"))
            last = pairs.filter(is_before).unique("place", keep="last", maintain_order=True)
            for place, where in zip(last["place"], last["position"], strict=True):
                found.setdefault(place, (name, self._reason(where)))
        return found

    def _reason(self, where: str) -> str:
        return (
            f"the record leaves out the value because it has not changed, but a record of the same key before it "
            f"({where}) was rejected, which may have changed it. Re-ingest or delete that one first, then this one"
        )

    def _candidates(self, refused: Sequence[RefusedRecord]) -> pl.DataFrame:
        """Return refused records with a key of the changes, those of the table first: key, value and position."""
        stored = self._stored
        here = [each for each in refused if each.key in self._keys]
        positions = [
            f"partition {partition}, offset {offset}"
            for partition, offset in [
                *zip(stored["partition"].to_pylist(), stored["offset"].to_pylist(), strict=True),
                *((each.partition, each.offset) for each in here),
            ]
        ]
        count = stored.num_rows
        return pl.DataFrame(
            {
                "key": pl.Series([*stored["key"].to_pylist(), *(each.key for each in here)], dtype=pl.Binary),
                "value": pl.Series([*stored["value"].to_pylist(), *(each.value for each in here)], dtype=pl.Binary),
                "bucket": pl.Series([_STORED] * count + [each.partition for each in here], dtype=pl.Int64),
                "offset": pl.Series([_STORED] * count + [each.offset for each in here], dtype=pl.Int64),
                "position": pl.Series(positions, dtype=pl.String),
            }
        )

    @property
    def _keys(self) -> frozenset[bytes | None]:
        return frozenset(self._changes.keys.unique().to_pylist())

    def _keeping(self, candidates: pl.DataFrame, names: Sequence[str]) -> dict[str, Mask]:
        """Return by column the mask of the refused records that also leave out the value as unchanged."""
        count = candidates.height
        columns = LogColumns(
            keys=candidates["key"].to_arrow().cast(pa.binary()),
            values=candidates["value"].to_arrow().cast(pa.binary()),
            offsets=np.arange(count),
            timestamps=np.zeros(count, np.int64),
            repairs=pa.nulls(count, pa.int64()),
        )
        changes = self._captured.decoder.captured(columns)
        is_new = ~retracts(changes.kinds)
        keeps = {name: np.zeros(count, bool) for name in names}
        for name in keeps.keys() & changes.unavailable.keys():
            keeps[name][changes.record_indices[changes.unavailable[name] & is_new]] = True
        return keeps
