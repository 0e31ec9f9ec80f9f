"""``sync_database``: makes tables follow all topics of a database, as many as match a pattern.

    topics ─▶ rules ─▶ tables, each with its topics ─▶ turns on a few threads ─▶ commits, each with its topic's offsets
              ▲                                        ▲
              └ new topics at each run                 └ a table that stops does not stop the others

No other state is kept: where a topic was read up to is in the newest snapshot of its table, as with ``ingest``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, StorageError
from storage_lib.log_store.external.external_format import ExternalFormat
from storage_lib.log_store.external.topic_list import KafkaTopicList
from storage_lib.progress.operation import Operation, operation, report_to
from storage_lib.sync.checks_of_tables import checked_by_table, warn_of_checks_without_topic
from storage_lib.sync.synced_table import SyncedTable, SyncSettings, TableSync
from storage_lib.sync.topic_rules import TopicRules

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.log_store.external.topic_list import TopicList
    from storage_lib.progress.progress import ProgressOption
    from storage_lib.table.sources.row_check import RowCheck

__all__ = ["SyncResult", "TableSync", "sync_database"]

_ROWS_PER_TURN = 100_000
_WORKERS = 4
_TOPIC = "log.kafka.topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """Result of a run, by table, in order of their names."""

    tables: tuple[TableSync, ...]

    @property
    def errors(self) -> tuple[Exception, ...]:
        """Errors of all tables."""
        return tuple(error for each in self.tables for error in each.errors.values())


def sync_database(
    catalog: Catalog,
    topics: str | Sequence[str],
    *,
    into: str,
    options: Mapping[str, str],
    format: str = ExternalFormat.DEBEZIUM_JSON_SCHEMA,  # noqa: A002  the field's word for it
    exclude: Sequence[str] = (),
    prefix: str = "",
    suffix: str = "",
    rename: Mapping[str, str] | None = None,
    merge_shards: bool = False,
    table_options: Mapping[str, str] | None = None,
    rows_per_turn: int = _ROWS_PER_TURN,
    workers: int = _WORKERS,
    skip_expired: bool = False,
    change_tracking: bool | None = None,
    expect: Mapping[str, RowCheck] | None = None,
    progress: ProgressOption = None,
) -> SyncResult:
    """Bring a table per topic up to the topics' ends; call it again, for example by a schedule, to follow them.

    Topics that match one of ``topics`` (``shop.public.*``) and none of ``exclude`` are read; those that appear later,
    by the next call. A topic becomes table ``into.<last part of its name>``; ``rename`` maps regular expressions for
    that part to names, ``prefix`` and ``suffix`` are added. Topics that get the same name are refused, as is a topic
    whose table has read only others, unless ``merge_shards``: then all are read into that table. A missing table is
    created from the first schema in its topic, with the key of the records' keys and ``table_options``; without a
    schema in the records it has to exist.
    Afterwards each topic is read as by ``ingest`` with the same ``options`` and ``format``, each record exactly once;
    the columns of tables follow those of the source. A topic stops where its records have another key than the table,
    unless ``options`` set ``source.key-change`` to ignore.

    ``expect`` has a check of new rows for some tables, by their names with the database (``shop.items``), as in
    ``ingest``; a check that fails stops the topics of its table. A table that no topic has yet is a warning in the log.

    A turn reads about ``rows_per_turn`` records of a table's topics; ``workers`` tables have their turn at once, and
    then those that waited longest. So the memory does not depend on the number of tables.

    An error stops its topic and is in the result; commits before it stay, and the next call tries again. Raises
    ``InvalidInputError`` for rules that can't be followed, ``NotFoundError`` if no topic matches, and
    ``UnavailableError`` if Kafka does not answer.
    """
    if rows_per_turn < 1 or workers < 1:
        message = f"rows_per_turn is {rows_per_turn} and workers is {workers}; give 1 or more"
        raise InvalidInputError(message)
    rules = TopicRules(
        topics=(topics,) if isinstance(topics, str) else tuple(topics),
        into=into,
        exclude=tuple(exclude),
        prefix=prefix,
        suffix=suffix,
        rename=dict(rename or {}),
        merge_shards=merge_shards,
    )
    settings = SyncSettings(
        options={**options, "log.format": format},
        table_options=dict(table_options or {}),
        rows_per_turn=rows_per_turn,
        skip_expired=skip_expired,
        change_tracking=change_tracking,
        expect=checked_by_table(expect or {}, into),
    )
    with report_to(progress):
        return sync_topics(catalog, KafkaTopicList(settings.options), rules, settings, workers=workers)


def sync_topics(
    catalog: Catalog, source: TopicList, rules: TopicRules, settings: SyncSettings, *, workers: int
) -> SyncResult:
    """Read the topics of ``source``; see ``sync_database``."""
    chosen = rules.chosen(source.names(), _logs(catalog))
    warn_of_checks_without_topic(settings.expect, chosen)
    tables = [
        SyncedTable(catalog, source, settings, name, of_table, merge_shards=rules.merge_shards)
        for name, of_table in chosen.items()
    ]
    _read_in_turns(tables, rules.into, workers)
    return SyncResult(tables=tuple(each.result for each in tables))


def _read_in_turns(tables: Sequence[SyncedTable], into: str, workers: int) -> None:
    with operation("sync", into, total=len(tables), unit="tables") as finished:
        if workers == 1:
            # In the caller's thread, so that an exception which a signal raises there ends the work.
            waiting = deque(tables)
            while waiting:
                table = waiting.popleft()
                if table.turn():
                    waiting.append(table)
                else:
                    finished.advance(1)
            return
        _read_on_threads(tables, workers, finished)


def _read_on_threads(tables: Sequence[SyncedTable], workers: int, finished: Operation) -> None:
    with ThreadPoolExecutor(workers, thread_name_prefix="sync") as pool:
        # The pool takes turns in the order of their submission.
        turns: dict[Future[bool], SyncedTable] = {pool.submit(each.turn): each for each in tables}
        try:
            while turns:
                done, _ = wait(turns, return_when=FIRST_COMPLETED)
                for each in done:
                    table = turns.pop(each)
                    if each.result():
                        turns[pool.submit(table.turn)] = table
                    else:
                        finished.advance(1)
        finally:
            pool.shutdown(cancel_futures=True)


def _logs(catalog: Catalog) -> dict[str, str]:
    """Return the catalog's tables by the topic of their log."""
    found = {}
    for name in catalog.list_tables():
        try:
            topic = catalog.load_table(name).schema.options.get(_TOPIC)
        except StorageError:
            topic = name  # what it is called by default; a damaged table does not stop the others
        if topic is not None:
            found[topic] = name
    return found
