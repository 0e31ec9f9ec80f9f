"""Refuse log options with which a table's log would differ from the table."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.nearest import nearest
from storage_lib.schema.options.option_values import spelled_millis
from storage_lib.schema.options.table_options import (
    ChangelogMode,
    LogConsistency,
    LogSystem,
    MergeEngine,
    TableOptions,
    UpdateBeforeSource,
)
from storage_lib.schema.table_schema import BUCKET_UNAWARE

_SERVERS = "bootstrap.servers"
_TIERINGS_RETAINED_MIN = 10
"""Number of tierings in a row that may fail before the log loses a record that is in no file."""


def refuse_log(name: str, options: TableOptions, *, has_primary_key: bool) -> None:
    """Raise ``InvalidInputError`` for a bad combination of log options, naming the option and the remedy."""
    refuse_log_of_dynamic_buckets(name, options, has_primary_key=has_primary_key)
    _refuse_log_of_unmerged_rows(name, options)
    _refuse_updates_without_old_rows(name, options, has_primary_key=has_primary_key)
    if options.log_consistency is LogConsistency.EVENTUAL:
        _refuse_eventual(name, options, has_primary_key=has_primary_key)


def refuse_log_of_dynamic_buckets(name: str, options: TableOptions, *, has_primary_key: bool) -> None:
    """Raise ``InvalidInputError`` for dynamic buckets with a log: the number of a topic's partitions is fixed."""
    if not has_primary_key or options.bucket != BUCKET_UNAWARE or options.effective_log_system is LogSystem.NONE:
        return
    message = (
        f"table {name}: option log.system={options.effective_log_system} can't be combined with "
        f"bucket={BUCKET_UNAWARE}: "
        "the number of dynamic buckets grows, that of a topic's partitions is fixed. Declare a number of buckets, or "
        f"log.system={LogSystem.NONE}, and its streams follow the snapshots"
    )
    raise InvalidInputError(message)


def refuse_client_without_servers(name: str, options: TableOptions) -> None:
    """Raise ``InvalidInputError`` for options of the Kafka client without servers.

    Otherwise the table would silently have no log.
    """
    if options.log_kafka_bootstrap_servers is not None or options.log_system is LogSystem.NONE:
        return
    given = sorted(options.log_kafka_client)
    if given:
        near = nearest(_SERVERS, given)
        misspelt = f" (is log.kafka.{near} a misspelling of it?)" if near else ""
        message = (
            f"table {name}: option log.kafka.{near or given[0]} configures a log in Kafka, but log.kafka.{_SERVERS} "
            f"is not set{misspelt}. Set it, or log.system=none"
        )
        raise InvalidInputError(message)


def _refuse_eventual(name: str, options: TableOptions, *, has_primary_key: bool) -> None:
    option = f"table {name}: option log.consistency={LogConsistency.EVENTUAL}"
    if options.effective_log_system is LogSystem.NONE:
        message = (
            f"{option} writes the log's records into files, but the table has no log; open the catalog with "
            "log.kafka.bootstrap.servers, "
            "or leave it out"
        )
        raise InvalidInputError(message)
    if not has_primary_key:
        message = (
            f"{option} needs a primary key: a row that gets into the log twice would count twice. Declare "
            f"primary_key=[...], or log.consistency={LogConsistency.TRANSACTIONAL}"
        )
        raise InvalidInputError(message)
    if options.log_changelog_mode is ChangelogMode.ALL:
        message = (
            f"{option} goes with log.changelog-mode={ChangelogMode.UPSERT} only: the row before an update is not known "
            f"for sure when the update is written. Leave log.changelog-mode out, or declare log.consistency="
            f"{LogConsistency.TRANSACTIONAL}"
        )
        raise InvalidInputError(message)
    least = _TIERINGS_RETAINED_MIN * options.log_tier_interval_ms
    if options.log_retention_ms is not None and options.log_retention_ms < least:
        message = (
            f"{option} with log.retention={spelled_millis(options.log_retention_ms)} would lose rows when files are "
            f"late: records have to stay for {_TIERINGS_RETAINED_MIN} times log.tier-interval="
            f"{spelled_millis(options.log_tier_interval_ms)} at least; declare log.retention={spelled_millis(least)}"
        )
        raise InvalidInputError(message)


def _refuse_updates_without_old_rows(name: str, options: TableOptions, *, has_primary_key: bool) -> None:
    is_all = has_primary_key and options.log_changelog_mode is ChangelogMode.ALL
    if is_all and options.ignore_delete and options.write_produce_update_before is UpdateBeforeSource.INPUT:
        message = (
            f"table {name}: option ignore-delete=true drops each -U, which log.changelog-mode=all with "
            "write.produce-update-before=input needs; declare write.produce-update-before=lookup"
        )
        raise InvalidInputError(message)


def _refuse_log_of_unmerged_rows(name: str, options: TableOptions) -> None:
    # Changes of counts add up in the log just as in the files.
    adds_up = options.merge_engine is MergeEngine.VALUE_COUNT
    if options.newest_wins or adds_up or options.effective_log_system is LogSystem.NONE:
        return
    by_engine = options.merge_engine is not MergeEngine.DEDUPLICATE
    cause = f"merge-engine={options.merge_engine}" if by_engine else "sequence.field"
    message = (
        f"table {name}: option log.system={options.effective_log_system} can't be had with {cause}: the log would hold "
        "the rows as they came in, not as they are merged. Declare log.system=none, and its streams follow the "
        "snapshots"
    )
    raise InvalidInputError(message)
