"""Commands that maintain a table's files and history."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from storage_lib.cli.command_line_options import parsed_pairs
from storage_lib.cli.context import Settings, reporting, settings_of
from storage_lib.cli.inspect_commands import Partition, TableName
from storage_lib.cli.output import print_fields, print_rows
from storage_lib.errors import InvalidInputError

_HOUR_MILLIS = 3_600_000

tags = typer.Typer(no_args_is_help=True, help="List, create and delete tags, which keep snapshots from expiring.")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (compact, expire, orphans, rewrite, rollback):
        app.command()(reporting(command))
    for name, tag_command in (
        ("list", list_tags),
        ("create", create_tag),
        ("delete", delete_tag),
        ("expire", expire_tags),
    ):
        tags.command(name)(reporting(tag_command))
    app.add_typer(tags, name="tags")


def compact(
    context: typer.Context,
    table: TableName,
    partition: Partition = None,
    full: Annotated[bool, typer.Option(help="Compact everything, or only what is due.")] = True,
) -> None:
    """Compact a table: merge its files."""
    settings = settings_of(context)
    wanted = parsed_pairs(partition or (), "--partition")
    snapshot = settings.table(table).compact(partition=wanted or None, full=full)
    print_fields({"snapshot": "nothing to do" if snapshot is None else snapshot.id}, as_json=settings.as_json)


def expire(
    context: typer.Context,
    table: TableName,
    retain_last: Annotated[int, typer.Option(min=1, help="Always keep this many of the newest snapshots.")] = 10,
    older_than_hours: Annotated[
        float | None, typer.Option(min=0, help="Expire only snapshots older than this.")
    ] = None,
) -> None:
    """Expire old snapshots, and delete the files that only they need."""
    settings = settings_of(context)
    opened = settings.table(table)
    now = opened.environment.clock.now_millis()
    until = None if older_than_hours is None else int(now - older_than_hours * _HOUR_MILLIS)
    expired = opened.maintenance.expire_snapshots(retain_last=retain_last, older_than_millis=until)
    counts = {"snapshots": expired.snapshot_count, "data files": expired.data_file_count}
    print_fields(counts, as_json=settings.as_json)


def orphans(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(help="database.table; default: the whole catalog.")] = None,
    older_than_hours: Annotated[
        float, typer.Option(min=0, help="Keep files younger than this; a running write may need them.")
    ] = 24,
    delete: Annotated[bool, typer.Option(help="Delete the orphans; default: only list them.")] = False,
    register: Annotated[bool, typer.Option(help="Add catalog entries for tables that have none.")] = False,
    topics: Annotated[bool, typer.Option(help="List Kafka topics that no table uses, instead of files.")] = False,
    sole_catalog: Annotated[
        bool,
        typer.Option(help="Also delete topics of unknown tables; use only if no other warehouse shares the brokers."),
    ] = False,
) -> None:
    """List or delete files that no snapshot, tag or branch needs, and incomplete tables of a catalog."""
    settings = settings_of(context)
    if topics:
        _orphan_topics(settings, delete=delete, is_sole_catalog=sole_catalog)
        return
    if table is None:
        _catalog_orphans(settings, older_than_hours, delete=delete, register=register)
        return
    found = settings.table(table).maintenance.remove_orphan_files(
        older_than=timedelta(hours=older_than_hours), dry_run=not delete
    )
    print_rows([{"file": path} for path in found.paths], as_json=settings.as_json)


def _catalog_orphans(settings: Settings, older_than_hours: float, *, delete: bool, register: bool) -> None:
    from storage_lib.io.environment import SystemClock

    catalog = settings.catalog()
    until = SystemClock().now_millis() - older_than_hours * _HOUR_MILLIS
    rows = []
    for each in catalog.orphans.find():
        is_old = each.modified_ms <= until
        done = "younger than asked for" if not is_old else ""
        if register and catalog.orphans.register(each):
            done = "registered"
        elif delete and is_old:
            done = "deleted" if catalog.orphans.mend(each) else "kept: it holds rows"
        rows.append({"table": str(each.name), "what": str(each.kind), "where": each.location, "done": done})
    print_rows(rows, as_json=settings.as_json)


def _orphan_topics(settings: Settings, *, delete: bool, is_sole_catalog: bool) -> None:
    found = settings.catalog().orphan_topics()
    rows = []
    for each in list(found.find()):
        is_due = delete and (each.table is not None or is_sole_catalog)
        done = "may belong to another catalog: see --sole-catalog" if delete else ""
        if is_due:
            found.delete(each, is_sole_catalog=is_sole_catalog)
            done = "deleted"
        rows.append({"topic": each.topic, "what": each.what, "done": done})
    print_rows(rows, as_json=settings.as_json)


def rewrite(
    context: typer.Context,
    table: TableName,
    primary_key: Annotated[
        str | None, typer.Option(help="Primary key for a table that has none, for example id,dt.")
    ] = None,
    bucket: Annotated[int | None, typer.Option(min=1, help="New number of buckets.")] = None,
    bucket_key: Annotated[
        str | None, typer.Option(help="New columns to distribute rows by, for example id,dt.")
    ] = None,
) -> None:
    """Rewrite every row of a table, with a primary key or into other buckets."""
    options = {key: str(value) for key, value in (("bucket", bucket), ("bucket-key", bucket_key)) if value is not None}
    if primary_key is None and not options:
        message = "specify what to change: --primary-key, --bucket or --bucket-key"
        raise InvalidInputError(message)
    settings = settings_of(context)
    keys = [] if primary_key is None else [name.strip() for name in primary_key.split(",")]
    opened = settings.table(table)
    rewritten = opened.rewrite(primary_key=keys, options=options)
    done = "nothing to do" if rewritten.schema.id == opened.schema.id else rewritten.schema.id
    print_fields({"schema": done}, as_json=settings.as_json)


def rollback(
    context: typer.Context,
    table: TableName,
    snapshot: Annotated[int | None, typer.Option(help="Roll back to this snapshot.")] = None,
    tag: Annotated[str | None, typer.Option(help="Roll back to this tag.")] = None,
) -> None:
    """Restore a table to an older snapshot or tag, in a new snapshot."""
    if (snapshot is None) == (tag is None):
        message = "specify either --snapshot or --tag to roll back to"
        raise InvalidInputError(message)
    settings = settings_of(context)
    made = settings.table(table).rollback_to(snapshot_id=snapshot, tag=tag)
    print_fields({"snapshot": "nothing to do" if made is None else made.id}, as_json=settings.as_json)


def list_tags(context: typer.Context, table: TableName) -> None:
    """List a table's tags."""
    settings = settings_of(context)
    rows = [
        {"tag": tag.name, "snapshot": tag.snapshot.id, "retained for ms": tag.time_retained_ms}
        for tag in settings.table(table).tags.list()
    ]
    print_rows(rows, as_json=settings.as_json)


def create_tag(
    context: typer.Context,
    table: TableName,
    tag: str,
    snapshot: Annotated[int | None, typer.Option(help="Default: the newest.")] = None,
    time_retained: Annotated[
        str | None, typer.Option(help="How long to keep it, for example '7 d'; default: until it is deleted.")
    ] = None,
) -> None:
    """Create a tag, which keeps a snapshot from expiring."""
    settings = settings_of(context)
    made = settings.table(table).tags.create(tag, snapshot, time_retained=time_retained)
    print_fields({"tag": made.name, "snapshot": made.snapshot.id}, as_json=settings.as_json)


def delete_tag(context: typer.Context, table: TableName, tag: str) -> None:
    """Delete a tag, and the files that only it kept."""
    settings_of(context).table(table).tags.delete(tag)


def expire_tags(context: typer.Context, table: TableName) -> None:
    """Delete the tags whose retention time has passed."""
    settings = settings_of(context)
    print_rows([{"tag": name} for name in settings.table(table).tags.expire()], as_json=settings.as_json)
