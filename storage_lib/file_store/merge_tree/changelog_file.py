"""Changelog files of replaced content, whose changes come neither from a compaction nor from written rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.merge_tree.merge_keys import merge_keys
from storage_lib.schema.options.table_options import ChangelogProducer, TableOptions

REPLACED_LEVEL = 0


def published_files(files: Iterable[DataFileMeta], options: TableOptions) -> list[DataFileMeta]:
    """Return the files whose rows are in the changelog; their compaction publishes rows of lower levels."""
    lowest = {
        ChangelogProducer.NONE: 0,
        ChangelogProducer.INPUT: 0,
        ChangelogProducer.LOOKUP: 1,
        ChangelogProducer.FULL_COMPACTION: options.effective_num_levels - 1,
    }
    return [file for file in files if file.level >= lowest[options.changelog_producer]]


def write_changes(
    layout: KeyValueSchema, data_files: DataFileWriter, changes: Sequence[tuple[pa.RecordBatch, pa.Array]]
) -> list[DataFileMeta]:
    """Write the changes (rows, int8 kinds) of one bucket to changelog files; those of one key keep their order."""
    rows = pa.Table.from_batches([each for each, _ in changes]).combine_chunks().to_batches()
    if not rows:
        return []
    kinds = pa.concat_arrays([each.cast(pa.int8()) for _, each in changes])
    order, _ = merge_keys(layout.key_columns(rows[0]), layout.key_types).grouped()
    taken = pa.array(order)
    series = data_files.changelog(level=REPLACED_LEVEL)
    try:
        series.add(layout.to_key_value(rows[0].take(taken), kinds.take(taken), np.zeros(len(order), dtype=np.int64)))
        return series.close()
    except BaseException:
        series.abandon()
        raise
