"""Checks of the command ``doctor``: Java, Kafka, the warehouse, each table's files, and its Iceberg view."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from storage_lib.cli.finding import Finding
from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError, StorageError
from storage_lib.io.environment import SystemClock
from storage_lib.spark.runtime.spark_java import REMEDY, java_problem, java_version

if TYPE_CHECKING:
    from storage_lib import DynamicTable
    from storage_lib.cli.context import Settings
    from storage_lib.file_store.manifest.manifest_entry import ManifestEntry

_FIRST_PROBLEMS = 5


def examine(settings: Settings, table: str | None, *, deep: bool = False) -> list[Finding]:
    """Run every check that applies, dependencies first; ``deep`` also reads every byte of the data files."""
    findings = [java_finding(), *_kafka(settings)]
    try:
        catalog = settings.catalog()
        names = catalog.list_tables() if table is None else [table]
        findings.append(Finding(what="warehouse", is_well=True, text=f"{catalog.warehouse}: {len(names)} table(s)"))
    except (StorageError, OSError) as error:
        return [*findings, Finding(what="warehouse", is_well=False, text=str(error))]
    for name in names:
        findings += [_table(settings, name, deep=deep), *_view(settings, name)]
    return findings


def java_finding() -> Finding:
    """Return whether Spark can run on the Java that it would start; all is well if there is no Spark."""
    problem = java_problem()
    if problem is None:
        return Finding(what="java", is_well=True, text=java_version() or "")
    is_needed = find_spec("pyspark") is not None
    text = (
        f"{problem}. {REMEDY}" if is_needed else f"{problem}; only Spark needs it, and the extra spark is not installed"
    )
    return Finding(what="java", is_well=not is_needed, text=text)


def _kafka(settings: Settings) -> Iterator[Finding]:
    if "log.kafka.bootstrap.servers" not in settings.options:
        return
    try:
        with importing_for("the check of Kafka", InvalidInputError):
            from storage_lib.log_store.kafka.kafka_check import count_brokers

        count = count_brokers(settings.options, SystemClock())
        yield Finding(what="kafka", is_well=True, text=f"{count} broker(s) answer")
    except StorageError as error:
        yield Finding(what="kafka", is_well=False, text=str(error))


def _table(settings: Settings, name: str, *, deep: bool) -> Finding:
    try:
        table = settings.table(name)
        problems = list(_problems(table))
        seen = "every file of the newest snapshot exists"
        if deep and not problems:
            unchecked = 0
            for problem in _damage(table):
                problems += [problem] if problem else []
                unchecked += not problem
            seen = "every file of the newest snapshot exists and can be read"
            if unchecked:
                seen += f"; {unchecked} have no checksum because another engine wrote them"
    except (StorageError, OSError) as error:
        return Finding(what=name, is_well=False, text=f"{type(error).__name__}: {error}")
    if not problems:
        return Finding(what=name, is_well=True, text=seen)
    more = len(problems) - _FIRST_PROBLEMS
    shown = "; ".join(problems[:_FIRST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
    return Finding(what=name, is_well=False, text=f"{shown}. Roll back to a complete snapshot or tag")


def _view(settings: Settings, name: str) -> Iterator[Finding]:
    """Yield a finding if the table's Iceberg view, or its entry in a catalog of others, is behind or wrong."""
    try:
        health = settings.table(name).inspect.health()
    except (StorageError, OSError):
        return  # told with the table
    problems = [f"it lacks the newest {health.view_lag} snapshot(s)"] if health.view_lag else []
    problems += [] if health.view_problem is None else [health.view_problem]
    if problems:
        text = f"its Iceberg view: {'; '.join(problems)}. table.maintenance.publish_iceberg() mends it, or says why not"
        yield Finding(what=name, is_well=False, text=text)


def _damage(table: DynamicTable) -> list[str | None]:
    """Return the problems with the files' content, and None for each file whose checksum is unknown."""
    from storage_lib.progress.operation import operation

    damage: list[str | None] = []
    read = table.new_read()
    plan = read.plan()
    with operation("check", table.name, total=len(plan.entries), unit="files") as files:
        for entry in plan.entries:
            damage += _wrong_bytes(table, entry)
            files.advance()
    with operation("read", table.name, total=len(plan.entries), unit="files") as files:
        try:
            for split in plan.splits(table.options.source_split_target_size_bytes):
                for _ in read.read_split(split):
                    pass
                files.advance(len(split.files))
        except StorageError as error:
            damage.append(str(error))
    return damage


def _wrong_bytes(table: DynamicTable, entry: ManifestEntry) -> list[str | None]:
    """Return the problems with the bytes of a file: none, a text, or None if its checksum is unknown."""
    from storage_lib.file_store.data_file.file_checksum import check_bytes, checksum_in

    expected = checksum_in(entry.file.embedded_file_index)
    if expected is None:
        return [None]
    path = table.inspect.file_path(entry)
    try:
        with table.environment.stores.open_input(path) as source:
            check_bytes(source, expected, path)
    except StorageError as error:
        return [str(error)]
    return []


def _problems(table: DynamicTable) -> Iterator[str]:
    """Yield files that are missing or differ in size from their manifest, and expired tags."""
    file_io = table.environment.stores
    sizes: dict[str, dict[str, int]] = {}
    for entry in table.new_read().plan().entries:
        path = table.inspect.file_path(entry)
        directory, _, name = path.rpartition("/")
        if directory not in sizes:
            sizes[directory] = {each.name: each.size_bytes for each in file_io.list_directory(directory)}
        size = sizes[directory].get(name)
        if size is None:
            yield f"{path} is missing"
        elif size != entry.file.file_size:
            yield f"{path} has {size} bytes, not {entry.file.file_size}"
    for tag in table.tags.list():
        if tag.is_expired(table.environment.clock.now_millis()):
            yield f"tag {tag.name} is past its retention time; run `tags expire`"
