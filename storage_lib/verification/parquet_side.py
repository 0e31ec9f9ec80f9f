"""Parquet files, of a folder or a single one, as a side of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.verification.column_kind import ColumnKind, kind_of_arrow
from storage_lib.verification.compared_rows import KeyBounds


class ParquetSide:
    """Reads the files that are below the path now; ``column=value`` in a folder's name is a column.

    The files must not change meanwhile. The first file has the columns of all; a file without one has nulls in it.
    """

    def __init__(self, path: str) -> None:
        import pyarrow.dataset as ds

        self.name = path
        with _reporting(path):
            self._files = ds.dataset(path, format="parquet", partitioning="hive")
        self.position = f"{len(self._files.files)} files"
        if not self._files.files:
            message = f"{path} has no Parquet files"
            raise NotFoundError(message)
        self.kinds: Mapping[str, ColumnKind | None] = {
            field.name: kind_of_arrow(field.type) for field in self._files.schema
        }

    def batches(self, forms: Mapping[str, ColumnKind], bounds: KeyBounds | None) -> Iterator[pa.RecordBatch]:
        """Read the columns of ``forms``; row groups whose statistics rule the bounds out are skipped."""
        within = None if bounds is None else _within(bounds)
        with _reporting(self.name):
            yield from self._files.to_batches(columns=[*forms], filter=within)

    def close(self) -> None:
        """Nothing is held open."""


@contextmanager
def _reporting(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        message = f"{path} does not exist, or a file of it no longer does: {error}"
        raise NotFoundError(message) from error
    except (pa.ArrowException, OSError) as error:
        message = f"{path} can't be read as Parquet files: {error}"
        raise InvalidInputError(message) from error


def _within(bounds: KeyBounds) -> pc.Expression | None:
    column = pc.field(bounds.column)
    low = None if bounds.low is None else column >= bounds.low
    high = None if bounds.high is None else column <= bounds.high
    return high if low is None else low if high is None else low & high
