"""Options of one read or write: the table and how to access it. Keys that are not listed here are catalog options."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from storage_lib.catalog.declaration.connection_options import is_option_of_connection
from storage_lib.errors import InvalidInputError
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.schema.options.known_options import FREE_PREFIXES, is_passed_through
from storage_lib.schema.options.nearest import nearest
from storage_lib.schema.options.table_options import TableOptions, canonical_key
from storage_lib.spark.data_source.incremental_range import RANGE_OPTIONS, IncrementalRange
from storage_lib.spark.data_source.natively_read_files import NativeFiles
from storage_lib.spark.data_source.stream_reader import StreamScan
from storage_lib.table.protocol.source_offsets import SourceRange, ranges_of_json
from storage_lib.table.protocol.table_address import TableAddress
from storage_lib.table.protocol.write_context import OverwriteScope, WriteContext

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

SOURCE_NAME = "dynamic_table"

WAREHOUSE = "warehouse"
TABLE = "table"
PATH = "path"
STREAMING = "scan.streaming"
SNAPSHOT_ID = "scan.snapshot-id"
TAG_NAME = "scan.tag-name"
SCAN_TIMESTAMP_MILLIS = "scan.timestamp-millis"
BRANCH = "branch"
STARTUP = "log.scan"
TIMESTAMP_MILLIS = "log.scan.timestamp-millis"
NORMALIZE = "scan.normalize"
ON_UNTRACKED = "scan.on-untracked"
STATE_DIRECTORY = "scan.normalize.state-directory"
ROWS_PER_TRIGGER_MAX = "maxrowspertrigger"
CHANGE_TRACKING = "change-tracking"
COMMIT_USER = "commit-user"
COMMIT_IDENTIFIER = "commit-identifier"
OVERWRITE_PARTITION = "overwrite-partition"
BASED_ON = "based-on-snapshot"
ORDER = "write-order"
SOURCE_RANGES = "source-ranges"
WATERMARK = "commit-watermark"
ADDS_UP = "adds-up-answer"
WHOLE_COMMITS = "scan.whole-commits"
NATIVE_FILES = "scan.native-files"
OWN_SCANS = "scan.is-planned-for-each-query"
CHECKPOINT = "checkpointlocation"
UUID = "table-uuid"
_OF_SPARK = frozenset({"queryname", "outputmode"})
"""Options of Spark itself, which it passes on to the source."""
_FILE_SCHEMES = ("file://", "file:")

_OF_STATEMENT = frozenset(
    {
        WAREHOUSE,
        TABLE,
        PATH,
        STREAMING,
        SNAPSHOT_ID,
        TAG_NAME,
        SCAN_TIMESTAMP_MILLIS,
        BRANCH,
        *RANGE_OPTIONS,
        STARTUP,
        TIMESTAMP_MILLIS,
        NORMALIZE,
        ON_UNTRACKED,
        STATE_DIRECTORY,
        ROWS_PER_TRIGGER_MAX,
        CHANGE_TRACKING,
        COMMIT_USER,
        COMMIT_IDENTIFIER,
        OVERWRITE_PARTITION,
        BASED_ON,
        ORDER,
        SOURCE_RANGES,
        WATERMARK,
        ADDS_UP,
        WHOLE_COMMITS,
        NATIVE_FILES,
        OWN_SCANS,
        CHECKPOINT,
        UUID,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementOptions:
    """The options of a statement, in addition to those of its table. None: not given.

    ``table_uuid`` identifies the table that the statement was built for, even if another table has its name by now.
    ``adds_up`` as ``StreamPlan.adds_up``. ``based_on`` as for ``WriteBuilder.begin``; ``write_context`` is a commit
    that was already begun. ``sources`` and ``watermark`` as for ``TableBatchWriter``. ``native_files`` are read by
    Spark itself. ``has_own_scans``: each query has a plan of the source of its own, which may keep its filters.
    """

    address: TableAddress
    table_uuid: str | None = None
    streaming: bool = False
    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    native_files: NativeFiles | None = None
    has_own_scans: bool = False
    changes: IncrementalRange | None = None
    scan: StreamScan = field(default_factory=StreamScan)
    change_tracking: bool | None = None
    commit_user: str | None = None
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER
    overwrite: OverwriteScope = field(default_factory=OverwriteScope)
    based_on: int | None = None
    write_context: WriteContext | None = None
    sources: tuple[SourceRange, ...] = ()
    watermark: int | None = None
    adds_up: bool = False
    checkpoint_location: str | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> StatementOptions:
        """Parse Spark's options, whose keys are in lower case. Raises ``InvalidInputError`` naming the option."""
        given = {canonical_key(key.lower()): value for key, value in options.items()}
        address = _address(given)
        _refuse_unknown(address.options)
        return cls(
            address=address,
            table_uuid=given.get(UUID),
            streaming=_boolean(given, STREAMING) or False,
            snapshot_id=_integer(given, SNAPSHOT_ID),
            tag=given.get(TAG_NAME),
            timestamp_millis=_integer(given, SCAN_TIMESTAMP_MILLIS),
            native_files=NativeFiles.parse(given[NATIVE_FILES]) if NATIVE_FILES in given else None,
            has_own_scans=given.get(OWN_SCANS) == "true",
            changes=IncrementalRange.parse(given),
            scan=StreamScan(
                startup=_startup(given),
                timestamp_millis=_integer(given, TIMESTAMP_MILLIS),
                rows_per_trigger_max=_positive(given, ROWS_PER_TRIGGER_MAX),
                normalize=_normalize(given),
                on_untracked=_on_untracked(given),
                state_directory=given.get(STATE_DIRECTORY),
                whole_commits=_boolean(given, WHOLE_COMMITS) or False,
            ),
            change_tracking=_boolean(given, CHANGE_TRACKING),
            commit_user=given.get(COMMIT_USER),
            commit_identifier=_identifier(given),
            overwrite=_scope(given),
            based_on=_integer(given, BASED_ON),
            write_context=None if given.get(ORDER) is None else WriteContext.from_json(given[ORDER]),
            sources=ranges_of_json(given[SOURCE_RANGES]) if SOURCE_RANGES in given else (),
            watermark=_integer(given, WATERMARK),
            adds_up=_boolean(given, ADDS_UP) or False,
            checkpoint_location=given.get(CHECKPOINT),
        )


def options_of(table: DynamicTable) -> dict[str, str]:
    """Return the options from which ``parse`` finds this table, and not one recreated under its name.

    Catalog options that are also statement options are omitted: in the catalog they are defaults of new tables, not
    settings of a read or write. Keys that ``parse`` does not know are omitted as well.
    """
    address = table.address
    unknown = _unknown(address.options)
    catalog = {key: value for key, value in address.options.items() if key not in _OF_STATEMENT and key not in unknown}
    return {**catalog, WAREHOUSE: _absolute(address.warehouse), TABLE: address.name, UUID: table.uuid}


def _unknown(catalog: Mapping[str, str]) -> list[str]:
    """Return the keys that have no effect in a statement: not options of a table or a connection, or Paimon's own."""
    others = TableOptions.parse(catalog).others
    return [
        key
        for key in others
        if not key.startswith(FREE_PREFIXES) and (not is_option_of_connection(key) or is_passed_through(key))
    ]


def _is_of_spark(key: str) -> bool:
    return key in _OF_SPARK or key.startswith("__")


def _refuse_unknown(catalog: Mapping[str, str]) -> None:
    """Refuse unknown options: one that is ignored may have been meant to select the rows to read or to replace."""
    for key in _unknown(catalog):
        near = nearest(key.replace("_", "-"), sorted(_OF_STATEMENT), like_enough=0.7)
        spelled = ", ".join(sorted(_OF_STATEMENT - {STREAMING, UUID, ADDS_UP, SOURCE_RANGES, WATERMARK}))
        hint = f"did you mean {near!r}?" if near else f"a statement's own are {spelled}"
        message = f'format("{SOURCE_NAME}") has no option {key!r}; {hint}'
        raise InvalidInputError(message)


def _address(given: Mapping[str, str]) -> TableAddress:
    address = _plain_address(given)
    if BRANCH not in given:
        return address
    if "$branch_" in address.name:
        message = f"table {address.name} names a branch already; leave option {BRANCH} = {given[BRANCH]!r} out"
        raise InvalidInputError(message)
    name, *system_table = address.name.split("$", maxsplit=1)
    return replace(address, name="$".join([name, f"branch_{given[BRANCH]}", *system_table]))


def _plain_address(given: Mapping[str, str]) -> TableAddress:
    catalog = {key: value for key, value in given.items() if key not in _OF_STATEMENT and not _is_of_spark(key)}
    if TABLE in given and WAREHOUSE in given:
        return TableAddress(warehouse=_local(given[WAREHOUSE]), name=given[TABLE], options=catalog)
    if PATH in given:
        return _address_of_path(given[PATH], catalog)
    message = (
        f'format("{SOURCE_NAME}") needs .option("warehouse", <directory>) with .option("table", "db.name"), '
        'or .option("path", <warehouse>/db.db/name)'
    )
    raise InvalidInputError(message)


def _address_of_path(path: str, catalog: Mapping[str, str]) -> TableAddress:
    parent, _, name = _local(path).rstrip("/").rpartition("/")
    warehouse, _, database = parent.rpartition("/")
    if not warehouse or not database.endswith(".db"):
        message = f"path {path!r} is not a table's path; write <warehouse>/<database>.db/<name>"
        raise InvalidInputError(message)
    return TableAddress(warehouse=warehouse, name=f"{database.removesuffix('.db')}.{name}", options=catalog)


def _local(path: str) -> str:
    """Return a path without the scheme of local paths (``file:/a``, ``file:///a``)."""
    for scheme in _FILE_SCHEMES:
        path = path.removeprefix(scheme)
    return path


def _absolute(warehouse: str) -> str:
    """Return a relative path as an absolute one: Spark's processes have other working directories."""
    is_plain = "://" not in warehouse and not warehouse.startswith(_FILE_SCHEMES)
    return os.path.abspath(warehouse) if is_plain else warehouse  # noqa: PTH100  nothing is looked up on the disk


def _startup(given: Mapping[str, str]) -> str | None:
    """Return where a stream starts, with older spellings replaced by the current ones; None if not given."""
    return str(TableOptions.parse({STARTUP: given[STARTUP]}).log_scan) if STARTUP in given else None


def _normalize(given: Mapping[str, str]) -> str | None:
    return str(TableOptions.parse({NORMALIZE: given[NORMALIZE]}).scan_normalize) if NORMALIZE in given else None


def _on_untracked(given: Mapping[str, str]) -> str | None:
    if ON_UNTRACKED not in given:
        return None
    return str(TableOptions.parse({ON_UNTRACKED: given[ON_UNTRACKED]}).scan_on_untracked)


def _positive(given: Mapping[str, str], key: str) -> int | None:
    value = _integer(given, key)
    if value is not None and value < 1:
        message = f"option {key} = {value}; use 1 or more, or leave it out for no limit"
        raise InvalidInputError(message)
    return value


def _integer(given: Mapping[str, str], key: str) -> int | None:
    if key not in given:
        return None
    try:
        return int(given[key])
    except ValueError as error:
        message = f"option {key} = {given[key]!r} is not a whole number"
        raise InvalidInputError(message) from error


def _identifier(given: Mapping[str, str]) -> int:
    identifier = _integer(given, COMMIT_IDENTIFIER)
    return BATCH_COMMIT_IDENTIFIER if identifier is None else identifier


def _boolean(given: Mapping[str, str], key: str) -> bool | None:
    if key not in given:
        return None
    value = given[key].lower()
    if value not in ("true", "false"):
        message = f"option {key} = {given[key]!r}; use true or false"
        raise InvalidInputError(message)
    return value == "true"


def _scope(given: Mapping[str, str]) -> OverwriteScope:
    if OVERWRITE_PARTITION not in given:
        return OverwriteScope()
    try:
        values = json.loads(given[OVERWRITE_PARTITION])
        return OverwriteScope.of(values)
    except (ValueError, AttributeError) as error:
        message = (
            f"option {OVERWRITE_PARTITION} = {given[OVERWRITE_PARTITION]!r} is no JSON object; "
            'write {"dt": "2024-05-14"}, or {} for the whole table'
        )
        raise InvalidInputError(message) from error
