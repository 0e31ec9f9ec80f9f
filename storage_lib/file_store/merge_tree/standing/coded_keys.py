"""Keys of a file as ascending integer codes, by which they are searched in an index.

The code of one integer column is the key itself. That of other keys is a hash, so rows with equal codes may have other
keys; who finds them compares the keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.merge_tree.known_keys import KnownKeys
from storage_lib.file_store.merge_tree.merge_keys import FrameKeys, Indices, IntegerKeys, MergeKeys, merge_keys
from storage_lib.file_store.merge_tree.merge_tree_reader import BATCH_ROWS_MAX

Codes = npt.NDArray[np.int64]

_HASHED = frozenset({pl.Int64, pl.String, pl.Binary, pl.Decimal})
"""Types of which equal values have equal hashes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedKeys:
    """Ascending distinct codes of all rows of a file, and their positions.

    ``keys`` are those of the rows in the order of the file, if codes are hashes; None if a code is the key.
    """

    codes: Codes
    positions: Indices
    keys: FrameKeys | None


class KeysOfFiles:
    """Reads keys of data files, or returns them from memory."""

    def __init__(self, reader: DataFileReader, key_value: KeyValueSchema, known: KnownKeys) -> None:
        self._reader = reader
        self._key_value = key_value
        self._known = known

    def coded(self, file: DataFileMeta) -> CodedKeys | None:
        """Return the codes of a file's keys; None if it is too large to keep them, or if two of its codes are equal.

        Raises as ``read_merged``.
        """
        places = self._reader.key_places(file, None)
        if places is not None:
            return _distinct(places[1], None)
        if file.file_size > self._known.packed_bytes_max:
            return None
        keys = self.known(file)
        if isinstance(keys, IntegerKeys):
            return _distinct(keys.values, None)
        return _distinct(_hashes(keys), keys) if isinstance(keys, FrameKeys) and _are_hashed(keys) else None

    def known(self, file: DataFileMeta) -> MergeKeys:
        """Return all keys of a file, which are kept. Raises as ``read_merged``."""
        return self._known.of(file, partial(self._all, file))

    def _all(self, file: DataFileMeta) -> MergeKeys:
        key_value = self._key_value
        parts = [
            merge_keys(key_value.key_columns(batch), key_value.key_types)
            for _, batch in self._reader.read_placed(file, key_value.key_names, batch_rows=BATCH_ROWS_MAX)
        ]
        return parts[0].concat(parts[1:])


def _distinct(codes: Codes, keys: FrameKeys | None) -> CodedKeys | None:
    """Return the codes in their order; None if two are equal."""
    positions = np.arange(len(codes))
    if not bool(np.all(codes[1:] > codes[:-1])):
        positions = np.argsort(codes)
        codes = codes[positions]
        if bool(np.any(codes[1:] == codes[:-1])):
            return None
    return CodedKeys(codes=codes, positions=positions, keys=keys)


def _hashes(keys: FrameKeys) -> Codes:
    return keys.frame.hash_rows().to_numpy().view(np.int64)


def _are_hashed(keys: FrameKeys) -> bool:
    return all(each.base_type() in _HASHED for each in keys.frame.dtypes)
