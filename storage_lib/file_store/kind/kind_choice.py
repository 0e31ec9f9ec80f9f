"""Choice of a table's kind by its schema and options."""

from __future__ import annotations

from storage_lib.file_store.append.append_compaction import SmallFileCompaction
from storage_lib.file_store.append.append_layout import AppendLayout
from storage_lib.file_store.append.append_table import AppendTable
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.kind.table_kind import TableKind
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionStrategy
from storage_lib.file_store.merge_tree.compaction.full_after_commits import FullAfterCommits
from storage_lib.file_store.merge_tree.compaction.level0_at_once import Level0AtOnce
from storage_lib.file_store.merge_tree.compaction.leveled_compaction import LeveledCompaction
from storage_lib.file_store.merge_tree.compaction.universal_compaction import UniversalCompaction
from storage_lib.file_store.merge_tree.compaction.whole_bucket import WholeBucketWithDeletes
from storage_lib.file_store.merge_tree.key_value_table import KeyValueTable
from storage_lib.file_store.merge_tree.merge_function.layered import LayeredMergeFunction
from storage_lib.file_store.merge_tree.merge_function.merge_engine import merge_function_of
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.value_count.value_count_merge import VALUE_COUNT_MERGE
from storage_lib.file_store.value_count.value_count_schema import ValueCountSchema
from storage_lib.file_store.value_count.value_count_table import ValueCountTable
from storage_lib.schema.options.table_options import (
    ChangelogProducer,
    CompactionStrategyName,
    MergeEngine,
    TableOptions,
)
from storage_lib.schema.table_schema import TableSchema


def kind_of(table: str, schema: TableSchema, options: TableOptions) -> TableKind:
    """Return the kind of the table; ``table`` is its name in messages.

    Raises ``InvalidInputError`` for options that its kind does not support.
    """
    if schema.is_append_only:
        return AppendTable(
            layout=AppendLayout(schema=schema),
            strategy=SmallFileCompaction(
                target_file_size=options.target_file_size_bytes,
                min_file_count=options.compaction_min_file_num,
                only_neighbours=not schema.is_bucket_unaware,
            ),
            memtable_bytes_max=options.write_buffer_size_bytes,
        )
    if schema.counts_values:
        return ValueCountTable(
            counts=_merging(ValueCountSchema(schema=schema), VALUE_COUNT_MERGE, _compaction_strategy(options), options)
        )
    merge_function = merge_function_of(table, schema, options)
    strategy = _compaction_strategy(options)
    if options.looks_up:
        strategy = Level0AtOnce(strategy=strategy)
    elif isinstance(merge_function, LayeredMergeFunction):
        strategy = WholeBucketWithDeletes(strategy=strategy)
    if options.changelog_producer is ChangelogProducer.FULL_COMPACTION:
        strategy = FullAfterCommits(strategy=strategy, file_count=options.full_compaction_delta_commits)
    return _merging(KeyValueSchema(schema=schema), merge_function, strategy, options)


def _merging(
    layout: KeyValueSchema, merge_function: MergeFunction, strategy: CompactionStrategy, options: TableOptions
) -> KeyValueTable:
    return KeyValueTable(
        layout=layout,
        merge_function=merge_function,
        strategy=strategy,
        level_count=options.effective_num_levels,
        memtable_bytes_max=options.write_buffer_size_bytes,
        has_deletion_vectors=options.deletion_vectors_enabled,
        looks_up=options.looks_up and bool(layout.schema.primary_keys),
        producer=options.changelog_producer if layout.schema.primary_keys else ChangelogProducer.NONE,
        skips_equal_changes=options.changelog_row_deduplicate,
        keeps_deletes=options.compaction_keep_deletes,
        keeps_first=options.merge_engine is MergeEngine.FIRST_ROW,
        combines=options.merge_engine not in (MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW),
    )


def _compaction_strategy(options: TableOptions) -> CompactionStrategy:
    if options.compaction_strategy is CompactionStrategyName.LEVELED:
        return LeveledCompaction(
            level0_trigger=options.compaction_level0_file_num_trigger,
            level_base_bytes=options.compaction_max_bytes_for_level_base,
            level_multiplier=options.compaction_max_bytes_for_level_multiplier,
        )
    return UniversalCompaction(
        max_size_amplification_percent=options.compaction_max_size_amplification_percent,
        size_ratio_percent=options.compaction_size_ratio,
        compaction_trigger=options.num_sorted_run_compaction_trigger,
    )
