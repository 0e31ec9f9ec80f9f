"""Interface of codecs that convert batches of changes to the keys and values of a topic and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

if TYPE_CHECKING:
    import numpy as np


class CorruptRecordError(ValueError):
    """The value at ``index`` of a decoded batch is not a change of this table."""

    def __init__(self, index: int, reason: str) -> None:
        """Keep the index; ``reason`` is the message."""
        super().__init__(reason)
        self.index = index


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedChanges:
    """Records ready for a log: ``keys`` and ``values`` are binary arrays of equal length; keys may be null."""

    keys: pa.Array
    values: pa.Array


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedChanges:
    """Changes read from a log; ``record_indices[i]`` (int64, ascending) is the record that row ``i`` came from."""

    rows: pa.RecordBatch
    kinds: pa.Array
    record_indices: np.ndarray[tuple[int], np.dtype[np.int64]]


class ChangeDecoder(Protocol):
    """Decodes a topic's records."""

    @property
    def name(self) -> str:
        """Name of the format."""

    def decode(self, values: pa.Array, keys: pa.Array) -> DecodedChanges:
        """Decode records (binary, keys and values may be null) to the table's types.

        Raises ``CorruptRecordError`` for the first record that is not a change of this table.
        """


@runtime_checkable
class TopicSchemas(Protocol):
    """Operations of a codec that stores its schemas outside of the records."""

    def refuse_taken(self) -> bool:
        """Raise ``AlreadyExistsError`` if schemas of another table exist; return whether none exist at all."""

    def register(self) -> None:
        """Register the schemas if they are missing. Idempotent."""

    def unregister(self) -> None:
        """Delete the table's own schemas, if they exist."""


class LogCodec(ChangeDecoder, Protocol):
    """Decodes and encodes a topic's records."""

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array) -> Iterator[EncodedChanges]:
        """Encode the changes, some thousands of rows at a time.

        ``rows`` has the table's columns, ``kinds`` int8 codes of ``RowKind``. Raises ``InvalidInputError`` for values
        that the format can't represent.
        """
