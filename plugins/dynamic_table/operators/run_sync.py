"""Makes tables follow all topics of a database.

Airflow emits the asset events of a task only if it succeeds. So where some topics stop, the task that has read the
others can report that in its result, and a task after it fails.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.rendered_argument import (
    checked_choice,
    checked_count,
    checked_flag,
    checked_mapping,
    checked_names,
    checked_options,
    checked_text,
    is_nothing,
)
from dynamic_table.events.progress_log import progress_in_log
from dynamic_table.operators.table_operator import CatalogOperator
from dynamic_table.policies.allowed_servers import (
    OPTIONS_OF_A_TOPIC,
    refuse_options_of_form,
    refuse_table_options_of_form,
)
from dynamic_table.policies.first_try import seen_by_first_try
from dynamic_table.policies.last_of_source import last_of_source
from dynamic_table.policies.stopped_topics import TopicsStoppedError, stopped_topics
from dynamic_table.quality.row_expectations import row_checks
from dynamic_table.table_events import announce, with_table_events

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context
    from pydantic import JsonValue

    from storage_lib import Catalog, SyncResult, TableSync

BEFORE_KEY = "snapshots_before"  # key in the task's state store
FAIL, REPORT = "fail", "report"
ERROR_LENGTH_MAX = 500  # in the result; the log has the whole text

__all__ = ["SyncDatabaseOperator"]


class SyncDatabaseOperator(CatalogOperator):
    """Reads all topics that match a pattern up to their ends, each into a table of its own, which it creates.

    Repeat it by a schedule: each run picks up new topics, and continues where the tables' snapshots say. A topic that
    stops does not stop the others; afterwards the task fails and names it. It is retried if another try may help.

    A failed task has no asset events. With ``on_stopped="report"`` the task succeeds after its last try, so that the
    tables of the other topics are announced; let a ``CheckSyncOperator`` fail after it.

    :param topics: topics to read, such as ``shop.public.*``, on the connection's Kafka. (templated)
    :param into: database of the tables. (templated)
    :param format: format of the topics, which has schemas: ``debezium-json-schema``, ``debezium-avro``. (templated)
    :param exclude: topics to leave out. (templated)
    :param prefix: beginning of the tables' names. (templated)
    :param suffix: end of the tables' names. (templated)
    :param rename: regular expressions for the last part of a topic's name, with the table's names. (templated)
    :param merge_shards: read topics that get the same name into one table. (templated)
    :param options: options of the source, such as ``source.on-reject``. (templated)
    :param table_options: options of new tables, such as ``bucket``. (templated)
    :param workers: tables that are read at once, each by a thread; only 1 ends at once with the task. (templated)
    :param expectations: expectations by table (``shop.items``), each as for ``IngestOperator``: rows that do not meet
        one of severity ``reject`` are refused, as option ``source.on-reject`` says. (templated)
    :param skip_expired: continue after records that a topic no longer holds.
    :param on_stopped: ``fail`` (default), or ``report`` the errors in the result.
    """

    template_fields: Sequence[str] = (
        "topics",
        "into",
        "format",
        "exclude",
        "prefix",
        "suffix",
        "rename",
        "merge_shards",
        "options",
        "table_options",
        "workers",
        "expectations",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"expectations": "json"}
    ui_color = "#dceaf2"

    def __init__(
        self,
        *,
        topics: Sequence[str] | str,
        into: str,
        format: str = "debezium-json-schema",  # noqa: A002  the field's word for it
        exclude: Sequence[str] | str | None = None,
        prefix: str | None = None,
        suffix: str | None = None,
        rename: Mapping[str, str] | str | None = None,
        merge_shards: bool | str = False,
        options: Mapping[str, str] | str | None = None,
        table_options: Mapping[str, str] | str | None = None,
        workers: int | str = 4,
        expectations: Mapping[str, Any] | str | None = None,
        skip_expired: bool = False,
        on_stopped: str = FAIL,
        **kwargs: Any,
    ) -> None:
        super().__init__(**with_table_events(kwargs))
        self.topics: Any = topics
        self.into = into
        self.format = format
        self.exclude: Any = exclude
        self.prefix = prefix
        self.suffix = suffix
        self.rename: Any = rename
        self.merge_shards: Any = merge_shards
        self.options: Any = options
        self.table_options: Any = table_options
        self.workers: Any = workers
        self.expectations: Any = expectations
        self.skip_expired = skip_expired
        self.on_stopped = on_stopped

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Read, and return for each table its last snapshot's id (None without new records) and what was done."""
        from storage_lib import sync_database

        checked_choice(self.on_stopped, "on_stopped", (FAIL, REPORT))
        options = {} if is_nothing(self.options) else checked_options(self.options, "options")
        table_options = {} if is_nothing(self.table_options) else checked_options(self.table_options, "table_options")
        refuse_options_of_form(options, self.hook, of_source=OPTIONS_OF_A_TOPIC)
        refuse_table_options_of_form(f"{self.into}.*", table_options, self.hook)
        rename = {} if is_nothing(self.rename) else checked_mapping(self.rename, "rename")
        expect = {} if is_nothing(self.expectations) else row_checks(self.expectations, Path(context["dag"].folder))
        catalog = self.hook.get_conn()
        into = checked_text(self.into, "into")
        before = seen_by_first_try(context, BEFORE_KEY, lambda: _newest_snapshots(catalog, into))
        topics = [self.topics] if isinstance(self.topics, str) else list(checked_names(self.topics, "topics"))
        with progress_in_log(self.log):
            result = sync_database(
                catalog,
                topics,
                into=into,
                options={**self.hook.options, **options},
                format=checked_text(self.format, "format"),
                exclude=checked_names(self.exclude, "exclude"),
                prefix="" if is_nothing(self.prefix) else checked_text(self.prefix, "prefix"),
                suffix="" if is_nothing(self.suffix) else checked_text(self.suffix, "suffix"),
                rename={each: checked_text(name, "rename") for each, name in rename.items()},
                merge_shards=checked_flag(self.merge_shards, "merge_shards"),
                table_options=table_options,
                workers=checked_count(self.workers, "workers", least=1),
                skip_expired=self.skip_expired is True,
                expect=expect,
            )
        for each in result.tables:
            self.log.info("%s", _said(each))
        self._fail_if_stopped(context, result)
        return [_announced(context, catalog, each, before.get(each.table, 0)) for each in result.tables]

    def _fail_if_stopped(self, context: Context, result: SyncResult) -> None:
        from storage_lib.errors import RetryableError

        if not result.errors:
            return
        message = stopped_topics({topic: str(error) for each in result.tables for topic, error in each.errors.items()})
        self.log.error("%s", message)
        transient = next((each for each in result.errors if isinstance(each, RetryableError)), None)
        is_last_try = context["ti"].try_number > context["ti"].max_tries
        if self.on_stopped == REPORT and (transient is None or is_last_try):
            return
        raise transient or TopicsStoppedError(message)


def _newest_snapshots(catalog: Catalog, database: str) -> dict[str, JsonValue]:
    """Return the newest snapshots of the tables of a database that may be loaded."""
    from storage_lib.errors import StorageError

    found: dict[str, JsonValue] = {}
    for name in catalog.list_tables(database) if catalog.database_exists(database) else ():
        with suppress(StorageError):  # the sync names it
            found[name] = catalog.load_table(name).inspect.latest_snapshot_id() or 0
    return found


def _announced(context: Context, catalog: Catalog, table: TableSync, before: int) -> dict[str, Any]:
    version = table.snapshot_id
    if version is None and not table.is_waiting:
        version = _of_earlier_try(catalog, table, before)
    return announce(context, table=table.table, op="sync", version=version, **_facts(table))


def _of_earlier_try(catalog: Catalog, table: TableSync, before: int) -> int | None:
    """Return the newest snapshot after ``before`` that read one of the topics; the event of its try was lost."""
    from storage_lib.errors import StorageError

    try:
        opened = catalog.load_table(table.table)
        return max((last_of_source(opened, each, before) or 0 for each in table.topics), default=0) or None
    except StorageError:
        if table.errors:
            return None  # it was not created, or can't be read: its topics have stopped for that
        raise


def _facts(table: TableSync) -> dict[str, Any]:
    return {
        "topics": list(table.topics),
        "created": table.is_created,
        "rows": table.row_count,
        "rejected": table.rejected_count,
        "skipped": table.skipped_count,
        "schema_changes": table.schema_change_count,
        "lag": table.lag,
        "errors": {topic: str(error)[:ERROR_LENGTH_MAX] for topic, error in table.errors.items()},
    }


def _said(table: TableSync) -> str:
    if table.is_waiting:
        return f"{table.table}: waiting for the first row of {', '.join(table.topics)}"
    facts = {name: value for name, value in _facts(table).items() if value and name not in ("topics", "errors")}
    return f"{table.table}: {', '.join(f'{name} {value}' for name, value in facts.items()) or 'nothing new'}"
