"""Hashes of rows whose sum does not depend on the order of the rows.

The hashes of a row's columns are mixed with their position, so that values that two rows have exchanged change the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

Hashes = npt.NDArray[np.uint64]

_SEED = 0x5DEECE66D
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def row_hashes(frame: pl.DataFrame, columns: Sequence[str]) -> Hashes:
    """Return a hash of these columns for each row; NaN equals NaN, and null is a value."""
    mixed = np.full(frame.height, _STEP, dtype=np.uint64)
    for name in columns:
        mixed = _mixed((mixed + frame[name].hash(_SEED).to_numpy()) * _STEP)
    return mixed


def _mixed(values: Hashes) -> Hashes:
    """Let each bit of the input change half of the bits of the result (the finaliser of splitmix64)."""
    values = (values ^ (values >> _SHIFTS[0])) * _FACTORS[0]
    values = (values ^ (values >> _SHIFTS[1])) * _FACTORS[1]
    mixed: Hashes = values ^ (values >> _SHIFTS[2])
    return mixed
