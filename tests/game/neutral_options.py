"""Options that change files, costs and the log's records, but never the rows: the model need not know them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

ANY: Mapping[str, tuple[str, ...]] = {
    "file.compression": ("none", "zstd", "snappy"),
    "lookup.cache-max-memory-size": ("1 b", "64 mb"),
    "manifest.full-compaction-threshold-size": ("1 b",),
    "manifest.merge-min-count": ("2", "30"),
    "manifest.target-file-size": ("1 kb",),
    "scan.normalize": ("lookup", "none"),
    "source.split.target-size": ("1 b", "1 kb"),
    "target-file-size": ("1 kb",),
    "write-buffer-size": ("1 kb",),
    "write-only": ("true", "false"),
}
KEYED: Mapping[str, tuple[str, ...]] = {
    "changelog-producer": ("none", "input", "lookup", "full-compaction"),
    "changelog-producer.row-deduplicate": ("true",),
    "changelog.time-retained": ("1 d",),
    "compaction.level0-file-num-trigger": ("2",),
    "compaction.max-bytes-for-level-base": ("1 kb",),
    "compaction.max-bytes-for-level-multiplier": ("2",),
    "compaction.max-size-amplification-percent": ("1", "100000"),
    "compaction.size-ratio": ("50",),
    "compaction.strategy": ("universal", "leveled"),
    "deletion-vectors.enabled": ("false", "true"),
    "dynamic-bucket.initial-buckets": ("2",),
    "dynamic-bucket.max-buckets": ("2",),
    "dynamic-bucket.target-row-num": ("3", "2000000"),
    "file.compression.per.level": ("0:none",),
    "file.format.per.level": ("0:avro", "0:parquet,5:orc"),
    "force-lookup": ("true",),
    "full-compaction.delta-commits": ("2",),
    "num-levels": ("2", "3", "7"),
    "num-sorted-run.compaction-trigger": ("2", "3", "5"),
    "num-sorted-run.stop-trigger": ("2", "4"),
}
BAGS: Mapping[str, tuple[str, ...]] = {"compaction.min.file-num": ("2",)}


def neutral_options(*, is_keyed: bool) -> dict[str, tuple[str, ...]]:
    """Return the options of a table with or without a key, with their values."""
    return {**ANY, **(KEYED if is_keyed else BAGS)}


def drawn_neutral(rng: Random, *, is_keyed: bool) -> dict[str, str]:
    return {
        name: rng.choice(values) for name, values in neutral_options(is_keyed=is_keyed).items() if rng.random() < 0.2
    }
