"""Murmur3-x86-32 over BinaryRows by 4-byte words with seed 42, for whole columns (docs/format.md, 1.10).

Public domain algorithm by Austin Appleby. A row's length is a multiple of 8, so there is no tail. Rows are hashed in
chunks that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.schema.encoding.binary_columns import RaggedWords, RowWords, Words, row_words
from storage_lib.schema.types.data_types import DataType

Hashes: TypeAlias = npt.NDArray[np.uint32]

_SEED = np.uint32(42)
_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_FIVE = np.uint32(5)
_ADDEND = np.uint32(0xE6546B64)
_FINAL_1 = np.uint32(0x85EBCA6B)
_FINAL_2 = np.uint32(0xC2B2AE35)
_CHUNK_ROWS = 1 << 14
_FEW_ROWS = 32
_MASK = 0xFFFFFFFF


def hash_rows(columns: Sequence[pa.Array], types: Sequence[DataType]) -> npt.NDArray[np.int32]:
    """Hash each row as a BinaryRow without arity; ``columns`` (one or more) have the Arrow types of ``types``."""
    row_count = len(columns[0])
    hashes = np.empty(row_count, dtype=np.uint32)
    for start in range(0, row_count, _CHUNK_ROWS):
        chunk = [column.slice(start, _CHUNK_ROWS) for column in columns]
        hashes[start : start + _CHUNK_ROWS] = _hash_chunk(row_words(chunk, types))
    return hashes.view(np.int32)


def _hash_chunk(words: RowWords) -> Hashes:
    hashes = np.full(words.row_count, _SEED)
    scratch = np.empty_like(hashes)
    fixed: list[Words | None] = [*words.null_words, *words.slots]
    for word in fixed:
        _mix_word(hashes, word, scratch)
    for part in words.variable:
        if isinstance(part, list):
            for word in part:
                _mix_word(hashes, word, scratch)
        else:
            _mix_ragged(hashes, part)
    return _finalized(hashes, np.asarray(words.byte_lengths).astype(np.uint32))


def _mix_word(hashes: Hashes, word: Words | None, scratch: Hashes) -> None:
    """Mix one 8-byte word of every row into its hash, in place."""
    if word is None:
        _stir(hashes, scratch)
        _stir(hashes, scratch)
        return
    halves = word.view(np.uint32).reshape(-1, 2)
    for half in (halves[:, 0], halves[:, 1]):
        key = half * _C1
        np.right_shift(key, 17, out=scratch)
        np.left_shift(key, 15, out=key)
        np.bitwise_or(key, scratch, out=key)
        np.multiply(key, _C2, out=key)
        np.bitwise_xor(hashes, key, out=hashes)
        _stir(hashes, scratch)


def _stir(hashes: Hashes, scratch: Hashes) -> None:
    np.right_shift(hashes, 19, out=scratch)
    np.left_shift(hashes, 13, out=hashes)
    np.bitwise_or(hashes, scratch, out=hashes)
    np.multiply(hashes, _FIVE, out=hashes)
    np.add(hashes, _ADDEND, out=hashes)


def _mix_ragged(hashes: Hashes, part: RaggedWords) -> None:
    """Mix in strings word by word: the first words of all rows, then the second of all that have one, and so on."""
    common = int(part.counts.min())
    scratch = np.empty_like(hashes)
    for number in range(common):
        _mix_word(hashes, part.word(number, slice(None)), scratch)
    number = common
    active = np.flatnonzero(part.counts > number)
    while len(active) > _FEW_ROWS:
        some = hashes[active]
        _mix_word(some, part.word(number, active), np.empty_like(some))
        hashes[active] = some
        number += 1
        active = active[part.counts[active] > number]
    for row in active:  # a few long strings, one by one
        hashes[row] = _hash_on(int(hashes[row]), part.of_row(int(row))[number:])


def _hash_on(hashed: int, words: Words) -> int:
    """Continue one row's hash with its remaining words."""
    keys = words.view(np.uint32) * _C1
    keys = ((keys << np.uint32(15)) | (keys >> np.uint32(17))) * _C2
    for key in keys.tolist():
        hashed ^= key
        hashed = ((hashed << 13 | hashed >> 19) * 5 + 0xE6546B64) & _MASK
    return hashed


def _finalized(hashes: Hashes, byte_lengths: npt.NDArray[np.uint32]) -> Hashes:
    hashes ^= byte_lengths
    hashes ^= hashes >> np.uint32(16)
    hashes *= _FINAL_1
    hashes ^= hashes >> np.uint32(13)
    hashes *= _FINAL_2
    hashes ^= hashes >> np.uint32(16)
    return hashes
