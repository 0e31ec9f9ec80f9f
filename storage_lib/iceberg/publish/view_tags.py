"""Tags that keep the snapshot which a view shows from expiring: ``iceberg-view-<n>``.

The view of a table whose rows have to be merged stays at one snapshot until a compaction has merged newer ones. An
expiry that passes it tags it first; so other engines keep its files as well. When the view has shown a newer snapshot
for ten minutes, the next expiry deletes the tag, and the files that only the tag kept.
"""

from __future__ import annotations

from storage_lib.errors import NotFoundError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.tag import VIEW_TAG_PREFIX, Tag
from storage_lib.file_store.store import FileStore
from storage_lib.iceberg.encode.table_metadata import ViewMetadata
from storage_lib.iceberg.publish.view_directory import KEPT_MILLIS
from storage_lib.iceberg.publish.view_publisher import identity_of


def hold(store: FileStore, shown: ViewMetadata, *, first_retained: int, now_millis: int) -> None:
    """Tag the snapshot that a view shows if it is below ``first_retained`` and its files may still be there."""
    number = shown.snapshot_id
    if not 0 < number < first_retained:
        return
    snapshot = store.snapshots.load_expired(number)
    if snapshot is None or identity_of(snapshot) != shown.identity:
        return
    tag = Tag(name=f"{VIEW_TAG_PREFIX}{number}", snapshot=snapshot, create_time_ms=now_millis)
    if not store.tags.create(tag) and store.tags.load(tag.name).snapshot != snapshot:
        # Left by another snapshot with this id, before another engine rolled the table back.
        store.tags.delete(tag.name)
        store.tags.create(tag)


def release(store: FileStore, shown: ViewMetadata | None, *, now_millis: int) -> list[Snapshot]:
    """Delete the tags of snapshots that the view showed before; return those snapshots.

    The caller drops them from the view, and then calls ``delete_released``.
    """
    if shown is not None and shown.updated_millis + KEPT_MILLIS > now_millis:
        return []
    released = []
    for name in store.tags.names():
        if name.startswith(VIEW_TAG_PREFIX) and (shown is None or name != f"{VIEW_TAG_PREFIX}{shown.snapshot_id}"):
            try:
                released.append(store.tags.load(name).snapshot)
            except NotFoundError:
                continue
            store.tags.delete(name)
    return released


def delete_released(store: FileStore, released: list[Snapshot]) -> None:
    """Delete the files that only the deleted tags of these snapshots kept."""
    earliest_id = store.snapshots.earliest_id() or 0
    for snapshot in released:
        if snapshot.id >= earliest_id:
            continue
        files = store.references.all_of(snapshot)
        needed = store.references.of_others()
        needed |= store.references.of_own(store.snapshots)
        store.deletion.delete_all((files - needed).in_order())
