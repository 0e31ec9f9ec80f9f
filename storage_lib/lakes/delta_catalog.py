"""Tables of Delta Lake in the directories of a warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from storage_lib.errors import InvalidInputError
from storage_lib.io.file_io_factory import store_family
from storage_lib.lakes.delta_history import DeltaHistory
from storage_lib.lakes.delta_table import DeltaVersion, version_of
from storage_lib.lakes.lake_directories import LakeDirectories
from storage_lib.lakes.lake_version import NEWEST, AsOf

_LOG = "_delta_log"


class DeltaCatalog(LakeDirectories):
    """The tables of Delta Lake below a directory: a ``LakeCatalog``."""

    def __init__(self, name: str, warehouse: str, options: Mapping[str, str]) -> None:
        """``options`` are those of the warehouse's store; raises as ``LakeDirectories``."""
        super().__init__(name, warehouse, options, marker=_LOG, readers="tables of Delta Lake")
        self._storage_options = _storage_options_of(self.root, options)

    def version(self, database: str, table: str, as_of: AsOf = NEWEST) -> DeltaVersion:
        """See ``LakeCatalog``."""
        name = f"{self.name}.{database}.{table}"
        if as_of.tag is not None:
            message = f"table {name} of Delta Lake has no tags; write VERSION AS OF and a number"
            raise InvalidInputError(message)
        location = self.location(database, table)
        if as_of.before is not None:
            self._refuse_earlier(name, location, as_of.before)
        if "%" in location:
            message = f"table {name} is in {location}; delta-rs opens no directory that has a % in its name"
            raise InvalidInputError(message)
        return version_of(name, location, self._storage_options, as_of)

    def history(self, database: str, table: str) -> DeltaHistory:
        """See ``LakeCatalog``."""
        return DeltaHistory.of(self.version(database, table), self.file_io)

    def _refuse_earlier(self, name: str, location: str, before: datetime) -> None:
        """Refuse a time before the oldest commit, for which delta-rs returns that commit."""
        log = self.file_io.list_directory(f"{location}/{_LOG}")
        millis = min((each.modified_ms for each in log if each.name.endswith(".json")), default=0)
        oldest = datetime.fromtimestamp(millis / 1000, UTC)
        if before < oldest:
            message = f"table {name} has no version until {before}; its oldest one is of {oldest}"
            raise InvalidInputError(message)


def _storage_options_of(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the warehouse's store as delta-rs names them, which opens stores by the same library."""
    if store_family(root) == "file":
        return {}
    from storage_lib.io.remote.object_store_settings import settings_by_store_name

    return settings_by_store_name(root, options)
