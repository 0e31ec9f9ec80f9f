"""Commits of Paimon's engines through the server: the snapshot that an engine has made becomes the next one, or not.

The engine has written all files of the snapshot. What is left is the one step that decides: creating the snapshot's
file if no other commit has taken its number. An engine that loses rebases its commit and tries again, so a lost race is
an answer and no error.
"""

from __future__ import annotations

import json
import re
from typing import Any

from storage_lib.errors import CorruptFileError, NotFoundError, SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot
from storage_lib.io.table_directory.numbered_files import DisplacedError
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.requests.json_body import texts
from storage_lib.table.dynamic_table import DynamicTable

_FIRST_ID = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def commit_snapshot(table: DynamicTable, snapshot: object, base_uuid: object) -> bool:
    """Create a snapshot as the next of a table; False if another commit was faster. Idempotent.

    ``base_uuid`` is the uuid of the snapshot before it, as far as the engine knows it. Raises ``RefusedRequestError``
    for a snapshot that can't be read, names files that do not exist, or has a schema that the table does not have.
    """
    wanted = _decoded(snapshot)
    store = table.context.file_store
    latest = _latest(table)
    if latest is not None and wanted.id <= latest.id:
        return _is_made(table, wanted)
    if wanted.id != (_FIRST_ID if latest is None else latest.id + 1):
        return False
    if latest is not None and isinstance(base_uuid, str) and latest.uuid not in (None, base_uuid):
        return False
    _require_files(table, wanted)
    try:
        is_made = store.snapshots.append_if_absent(wanted, latest)
    except DisplacedError:
        return False
    if is_made and table.context.iceberg_view is not None:
        table.context.iceberg_view.publish(wanted)
    return is_made


def _decoded(value: object) -> Snapshot:
    # A boolean would pass for a number.
    if not isinstance(value, dict) or any(isinstance(each, bool) for each in value.values()):
        message = "snapshot has to be a JSON object"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    texts(value, "properties")
    number: Any = value.get("id")
    try:
        return decode_snapshot(json.dumps(value, ensure_ascii=False).encode(), "the request", snapshot_id=number)
    except CorruptFileError as error:
        message = "snapshot is not one of Paimon's snapshots"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message) from error


def _latest(table: DynamicTable) -> Snapshot | None:
    return table.context.file_store.snapshots.latest()


def _is_made(table: DynamicTable, wanted: Snapshot) -> bool:
    """Return whether a snapshot is already there: an engine repeats a commit whose answer it has lost."""
    try:
        return table.context.file_store.snapshots.load(wanted.id) == wanted
    except (NotFoundError, SnapshotExpiredError):
        return False


def _require_files(table: DynamicTable, wanted: Snapshot) -> None:
    """Raise ``RefusedRequestError`` if the table could not be read after the commit."""
    context = table.context
    files = context.environment.file_io
    names = (
        wanted.base_manifest_list,
        wanted.delta_manifest_list,
        wanted.changelog_manifest_list,
        wanted.index_manifest,
    )
    for name in names:
        # The name becomes a path.
        if name is not None and not (_NAME.fullmatch(name) and files.exists(context.paths.manifest_path(name))):
            message = "the snapshot names a manifest that is not in the table's directory"
            raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    try:
        context.file_store.version(wanted.schema_id)
    except NotFoundError as error:
        message = f"the table has no schema {wanted.schema_id}"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message) from error
