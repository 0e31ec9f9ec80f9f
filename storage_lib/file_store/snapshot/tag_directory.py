"""Tags of one branch: create, load, list, delete. A tag is immutable."""

from __future__ import annotations

from functools import partial

from storage_lib.errors import NotFoundError
from storage_lib.file_store.snapshot.sure_deletion import delete_surely
from storage_lib.file_store.snapshot.tag import Tag, check_reference_name, decode_tag, encode_tag
from storage_lib.io.environment import Clock
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.overwritten_file import read_overwritten
from storage_lib.io.table_directory.table_paths import TablePaths


class TagDirectory:
    """Stores one file per tag; a file that another engine is writing is read again.

    Whether the files that a tag needs still exist is checked where it is created (``TableTags``).
    """

    def __init__(self, file_io: FileIO, paths: TablePaths, clock: Clock | None) -> None:
        self._file_io = file_io
        self._clock = clock
        self._paths = paths

    def create(self, tag: Tag) -> bool:
        """Create the tag; False if one of that name exists."""
        check_reference_name("tag", tag.name)
        return self._file_io.create_if_absent(self._paths.tag_path(tag.name), encode_tag(tag))

    def load(self, name: str) -> Tag:
        """Return the tag; raises ``NotFoundError`` listing the existing ones."""
        path = self._paths.tag_path(name)
        try:
            return read_overwritten(self._clock, partial(self._decoded, name))
        except NotFoundError:
            known = ", ".join(self.names()) or "none"
            message = f"there is no tag {name!r} ({path}); tags there: {known}"
            raise NotFoundError(message) from None

    def exists(self, name: str) -> bool:
        """Return whether a tag of that name exists."""
        return self._file_io.exists(self._paths.tag_path(name))

    def names(self) -> list[str]:
        """Return the names of all tags, sorted."""
        entries = self._file_io.list_directory(self._paths.tag_directory)
        return sorted(name for entry in entries if (name := self._paths.tag_of_file(entry.name)) is not None)

    def load_all(self) -> list[Tag]:
        """Return every tag, sorted by name; one deleted meanwhile is omitted."""
        tags = []
        for name in self.names():
            try:
                tags.append(read_overwritten(self._clock, partial(self._decoded, name), is_listed=True))
            except NotFoundError:
                continue
        return tags

    def delete(self, name: str) -> None:
        """Delete the tag's file, if it exists. Raises ``InvalidInputError`` if it is behind a symbolic link."""
        delete_surely(self._file_io, self._paths.tag_path(name), what=f"tag {name!r}", below=self._paths.root)

    def _decoded(self, name: str) -> Tag:
        path = self._paths.tag_path(name)
        return decode_tag(name, self._file_io.read_bytes(path), path)
