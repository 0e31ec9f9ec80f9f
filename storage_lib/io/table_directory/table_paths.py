"""Build and parse all paths in a table's directory (docs/format.md, 1.1); only ``LeasePaths`` does so as well."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.io.table_directory.lease_paths import number_after

_BUCKET = "bucket-"
_BRANCH = "branch-"
_TAG = "tag-"
_CONSUMER = "consumer-"
_POSTPONED_BUCKET = -2
MAIN_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class TablePaths:
    """Layout below ``root``, the table's directory (without a trailing slash).

    A branch has its own schemas, snapshots, tags, consumers, commits and leases below ``branch/branch-<name>``; all
    branches share manifests, statistics, indexes, rejected records and data files.
    """

    root: str
    branch: str = MAIN_BRANCH

    def of_branch(self, branch: str) -> TablePaths:
        """Return the paths of another branch of the table."""
        return TablePaths(self.root, branch)

    @property
    def branches_directory(self) -> str:
        """Directory with one directory per branch, except the main branch."""
        return f"{self.root}/branch"

    @property
    def history_directory(self) -> str:
        """Directory of a branch's own files; for the main branch, the table's directory."""
        return self.root if self.branch == MAIN_BRANCH else f"{self.branches_directory}/{_BRANCH}{self.branch}"

    @property
    def branch_origin_path(self) -> str:
        """File that names the snapshot from which the branch was created. Not part of Paimon's format."""
        return f"{self.history_directory}/created-from"

    @staticmethod
    def branch_of_directory(directory_name: str) -> str | None:
        """Return the branch of a directory name; None for other entries."""
        return directory_name.removeprefix(_BRANCH) if directory_name.startswith(_BRANCH) else None

    @property
    def dropped_path(self) -> str:
        """File that marks a drop in progress; holds the schema, so that any process can complete the drop."""
        return f"{self.root}/dropped"

    @property
    def schema_directory(self) -> str:
        """Directory of ``schema-<n>``, n from 0."""
        return f"{self.history_directory}/schema"

    def schema_path(self, schema_id: int) -> str:
        """Path of one version of the schema."""
        return f"{self.schema_directory}/schema-{schema_id}"

    @property
    def snapshot_directory(self) -> str:
        """Directory of ``snapshot-<n>``, n from 1, LATEST and EARLIEST."""
        return f"{self.history_directory}/snapshot"

    def snapshot_path(self, snapshot_id: int) -> str:
        """Path of a snapshot, the file whose creation is the commit."""
        return f"{self.snapshot_directory}/snapshot-{snapshot_id}"

    @property
    def manifest_directory(self) -> str:
        """Directory of manifests, manifest lists and index manifests."""
        return f"{self.root}/manifest"

    def manifest_path(self, name: str) -> str:
        """Path of a manifest, manifest list or index manifest."""
        return f"{self.manifest_directory}/{name}"

    @property
    def index_directory(self) -> str:
        """Directory of deletion vectors and hash indexes."""
        return f"{self.root}/index"

    def index_path(self, name: str) -> str:
        """Path of an index file."""
        return f"{self.index_directory}/{name}"

    @property
    def statistics_directory(self) -> str:
        """Directory of the statistics that ANALYZE computes."""
        return f"{self.root}/statistics"

    def statistics_path(self, name: str) -> str:
        """Path of a statistics file."""
        return f"{self.statistics_directory}/{name}"

    @property
    def changelog_directory(self) -> str:
        """Directory of ``changelog-<n>``, which other engines keep of expired snapshots."""
        return f"{self.history_directory}/changelog"

    @property
    def tag_directory(self) -> str:
        """Directory of ``tag-<name>``, snapshots kept by name."""
        return f"{self.history_directory}/tag"

    def tag_path(self, tag: str) -> str:
        """Path of the snapshot kept as ``tag``."""
        return f"{self.tag_directory}/{_TAG}{tag}"

    @staticmethod
    def tag_of_file(file_name: str) -> str | None:
        """Return the tag of a file name; None for other entries."""
        return file_name.removeprefix(_TAG) if file_name.startswith(_TAG) else None

    @property
    def consumer_directory(self) -> str:
        """Directory of ``consumer-<id>``, readers that need old snapshots."""
        return f"{self.history_directory}/consumer"

    def consumer_path(self, consumer_id: str) -> str:
        """Path of the progress of one consumer."""
        return f"{self.consumer_directory}/{_CONSUMER}{consumer_id}"

    @staticmethod
    def consumer_of_file(file_name: str) -> str | None:
        """Return the consumer of a file name; None for other entries."""
        return file_name.removeprefix(_CONSUMER) if file_name.startswith(_CONSUMER) else None

    @property
    def lease_directory(self) -> str:
        """Directory of writers' leases and waiting writers' tickets; see ``LeasePaths``."""
        return f"{self.history_directory}/lease"

    @property
    def commit_directory(self) -> str:
        """Directory of the commits whose snapshots have expired. Not part of Paimon's format."""
        return f"{self.history_directory}/commits"

    @property
    def rejected_directory(self) -> str:
        """Directory of rejected records and their lists. Not part of Paimon's format."""
        return f"{self.root}/rejected"

    def rejected_path(self, name: str) -> str:
        """Path of a file of rejected records, or of a list of such files."""
        return f"{self.rejected_directory}/{name}"

    def partition_directory(self, partition_path: str) -> str:
        """Directory of a partition; ``partition_path`` is like ``dt=2024-05-14/``, empty for an unpartitioned table."""
        return f"{self.root}/{partition_path}".rstrip("/")

    @staticmethod
    def relative_bucket_directory(partition_path: str, bucket: int) -> str:
        """Directory of a bucket relative to the table's directory and to each external data directory."""
        name = "postpone" if bucket == _POSTPONED_BUCKET else str(bucket)
        return f"{partition_path}{_BUCKET}{name}"

    def bucket_directory(self, partition_path: str, bucket: int) -> str:
        """Directory of the data files of one bucket."""
        return f"{self.root}/{self.relative_bucket_directory(partition_path, bucket)}"

    def data_file_path(self, partition_path: str, bucket: int, file_name: str) -> str:
        """Path of a data or changelog file."""
        return f"{self.bucket_directory(partition_path, bucket)}/{file_name}"

    @staticmethod
    def bucket_of_directory(directory_name: str) -> int | None:
        """Return the bucket of a directory name; None for other directories."""
        if directory_name == f"{_BUCKET}postpone":
            return _POSTPONED_BUCKET
        return number_after(_BUCKET, directory_name)

    @staticmethod
    def new_data_file_name(writer_uuid: str, counter: int, extension: str) -> str:
        """Name of a data file; ``extension``, without a dot, tells readers the file's format."""
        return f"data-{writer_uuid}-{counter}.{extension}"

    @staticmethod
    def new_changelog_file_name(writer_uuid: str, counter: int, extension: str) -> str:
        """Name of a changelog file; arguments as for ``new_data_file_name``."""
        return f"changelog-{writer_uuid}-{counter}.{extension}"

    def long_lived_changelog_path(self, snapshot_id: int) -> str:
        """Path of the changelog metadata that outlives an expired snapshot."""
        return f"{self.changelog_directory}/changelog-{snapshot_id}"

    @staticmethod
    def new_statistics_name(writer_uuid: str, counter: int) -> str:
        """Name of the statistics file of one ANALYZE."""
        return f"stat-{writer_uuid}-{counter}"

    @staticmethod
    def new_rejected_file_name(writer_uuid: str) -> str:
        """Name of a file of rejected records."""
        return f"rejected-{writer_uuid}.parquet"

    @staticmethod
    def new_rejected_list_name(writer_uuid: str) -> str:
        """Name of a list of files of rejected records."""
        return f"rejected-list-{writer_uuid}"

    @staticmethod
    def new_manifest_name(writer_uuid: str, counter: int) -> str:
        """Name of a manifest with the entries of one commit or of several merged ones."""
        return f"manifest-{writer_uuid}-{counter}"

    @staticmethod
    def new_manifest_run_name(writer_uuid: str, counter: int) -> str:
        """Name of one of several manifests that a fold writes, each for different partitions."""
        return f"manifest-{writer_uuid}-run-{counter}"

    @staticmethod
    def new_index_name(writer_uuid: str, counter: int) -> str:
        """Name of an index file, which holds the deletion vectors of a bucket."""
        return f"index-{writer_uuid}-{counter}"

    @staticmethod
    def new_index_manifest_name(writer_uuid: str, counter: int) -> str:
        """Name of an index manifest, which lists every index file of a snapshot."""
        return f"index-manifest-{writer_uuid}-{counter}"

    @staticmethod
    def new_manifest_list_name(writer_uuid: str, counter: int) -> str:
        """Name of a manifest list."""
        return f"manifest-list-{writer_uuid}-{counter}"
