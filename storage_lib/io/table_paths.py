"""Every file name of a table's layout, made and parsed in this one place (docs/format.md, "Layout")."""

from __future__ import annotations

from dataclasses import dataclass

_LEASE_PREFIXES = ("lease-", "beat-", "released-")
_WAITING_PREFIX = "waiting-"


@dataclass(frozen=True, slots=True)
class TablePaths:
    """Paths below ``root``, the table's directory (no trailing ``/``)."""

    root: str

    @property
    def schema_directory(self) -> str:
        """Where ``schema-<N>`` are."""
        return f"{self.root}/schema"

    def schema_path(self, schema_id: int) -> str:
        """One version of the schema, from 0."""
        return f"{self.schema_directory}/schema-{schema_id}"

    @property
    def snapshot_directory(self) -> str:
        """Where ``snapshot-<N>``, LATEST and EARLIEST are."""
        return f"{self.root}/snapshot"

    def snapshot_path(self, snapshot_id: int) -> str:
        """One snapshot, from 1."""
        return f"{self.snapshot_directory}/snapshot-{snapshot_id}"

    @property
    def manifest_directory(self) -> str:
        """Where manifests, manifest lists and index manifests are."""
        return f"{self.root}/manifest"

    def manifest_path(self, name: str) -> str:
        """A manifest or manifest list by its name."""
        return f"{self.manifest_directory}/{name}"

    @property
    def tag_directory(self) -> str:
        """Where ``tag-<name>`` are."""
        return f"{self.root}/tag"

    @property
    def consumer_directory(self) -> str:
        """Where ``consumer-<id>`` are."""
        return f"{self.root}/consumer"

    def bucket_directory(self, partition_path: str, bucket: int) -> str:
        """Where the data files of one bucket are; ``partition_path`` as ``dt=2024-01-01/``, empty without partitions."""
        return f"{self.root}/{partition_path}bucket-{bucket}"

    def data_file_path(self, partition_path: str, bucket: int, name: str) -> str:
        """One data file."""
        return f"{self.bucket_directory(partition_path, bucket)}/{name}"

    @property
    def lease_directory(self) -> str:
        """Where turns are held (``storage_lib.table.turn``)."""
        return f"{self.root}/lease"

    def lease_path(self, number: int) -> str:
        """Who holds turn ``number``."""
        return f"{self.lease_directory}/lease-{number}"

    def lease_beat_path(self, number: int) -> str:
        """Rewritten while the holder of turn ``number`` works."""
        return f"{self.lease_directory}/beat-{number}"

    def lease_released_path(self, number: int) -> str:
        """There once turn ``number`` has been given back."""
        return f"{self.lease_directory}/released-{number}"

    def waiting_path(self, name: str) -> str:
        """The ticket of a waiter."""
        return f"{self.lease_directory}/{_WAITING_PREFIX}{name}"

    def waiting_path_of(self, file_name: str) -> str:
        """The path of a ticket seen in the directory."""
        return f"{self.lease_directory}/{file_name}"

    @staticmethod
    def is_waiting_name(file_name: str) -> bool:
        """Whether a file of the lease directory is a ticket."""
        return file_name.startswith(_WAITING_PREFIX)

    @staticmethod
    def lease_number(file_name: str) -> int | None:
        """N of ``lease-<N>``; None for any other file of the lease directory."""
        return _number(file_name, "lease-")

    @staticmethod
    def lease_file_number(file_name: str) -> int | None:
        """The turn that a file of the lease directory belongs to; None for tickets and strangers."""
        for prefix in _LEASE_PREFIXES:
            number = _number(file_name, prefix)
            if number is not None:
                return number
        return None

    @staticmethod
    def new_data_file_name(writer_uuid: str, counter: int, extension: str) -> str:
        """``data-<uuid>-<i>.parquet``: readers take the format from the extension."""
        return f"data-{writer_uuid}-{counter}.{extension}"

    @staticmethod
    def new_manifest_name(writer_uuid: str, counter: int) -> str:
        """``manifest-<uuid>-<i>``."""
        return f"manifest-{writer_uuid}-{counter}"

    @staticmethod
    def new_manifest_list_name(writer_uuid: str, counter: int) -> str:
        """``manifest-list-<uuid>-<i>``."""
        return f"manifest-list-{writer_uuid}-{counter}"


def _number(file_name: str, prefix: str) -> int | None:
    rest = file_name.removeprefix(prefix)
    return int(rest) if rest != file_name and rest.isdigit() else None
