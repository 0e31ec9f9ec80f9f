"""Damaged JSON metadata is a ``CorruptFileError`` that names its file, whatever the damage."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from storage_lib import CorruptFileError, DynamicTable, InvalidInputError
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.errors import StorageError
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.table.protocol.snapshot_log_properties import COVERS_FROM, OFFSETS, TRANSACTIONS
from storage_lib.table.protocol.source_offsets import SOURCES
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.orders_table import COLUMNS, NAME, content, rows

DAMAGE = (b"", b"{", b"[]", b"null", b"7", b"\xff\xfe{", b"[" * 100_000, b'{"a":' * 100_000)


def catalog(files: MemoryFileIO, names: str = "made") -> WarehouseCatalog:
    return WarehouseCatalog("memory", environment=fake_environment(files, clock=FakeClock(), names=names))


def table_in(files: MemoryFileIO, **options: str) -> DynamicTable:
    made = catalog(files).create_table(
        NAME,
        COLUMNS,
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"log.system": "none", "bucket": "1", **options},
    )
    made.append(rows("+I a 1 10"))
    return made


def statistics(table: DynamicTable) -> str:
    table.maintenance.analyze()
    (name,) = table.environment.file_io.list_directory(f"{table.location}/statistics")
    return f"{table.location}/statistics/{name.name}"


def consumer(table: DynamicTable) -> str:
    table.context.file_store.consumers.put("reader", 1)
    return f"{table.location}/consumer/consumer-reader"


def branch_origin(table: DynamicTable) -> str:
    table.branches.create("dev")
    return f"{table.location}/branch/branch-dev/created-from"


KINDS: dict[str, tuple[Callable[[DynamicTable], str], Callable[[DynamicTable], object]]] = {
    "consumer": (consumer, lambda table: table.context.file_store.consumers.load_all()),
    "statistics": (statistics, lambda table: table.inspect.system_table("statistics")),
    "branch origin": (branch_origin, lambda table: table.context.file_store.branches.origin("dev")),
    "snapshot": (lambda table: f"{table.location}/snapshot/snapshot-1", lambda table: table.to_arrow()),
    "schema": (lambda table: f"{table.location}/schema/schema-0", lambda table: table.inspect.system_table("schemas")),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_file_is_named(kind: str, damage: bytes) -> None:
    files = MemoryFileIO()
    prepare, use = KINDS[kind]
    path = prepare(table_in(files))
    files.replace(path, damage)
    with pytest.raises(CorruptFileError, match=path):
        use(catalog(files, "used").load_table(NAME))


@pytest.mark.parametrize("number", ["Infinity", "NaN", str(2**63)])
def test_a_consumer_that_needs_an_impossible_snapshot_is_damaged(number: str) -> None:
    files = MemoryFileIO()
    table = table_in(files)
    path = consumer(table)
    files.replace(path, f'{{"nextSnapshot": {number}}}'.encode())
    with pytest.raises(CorruptFileError, match=path):
        table.context.file_store.consumers.load_all()


@pytest.mark.parametrize("key", ["id", "schemaId", "timeMillis", "totalRecordCount", "commitIdentifier"])
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**40])
def test_a_number_of_a_snapshot_that_does_not_fit_64_bits_is_damage(key: str, number: int) -> None:
    files = MemoryFileIO()
    path = f"{table_in(files).location}/snapshot/snapshot-1"
    document = json.loads(files.read_bytes(path)) | {key: number}
    files.replace(path, json.dumps(document).encode())
    with pytest.raises(CorruptFileError, match=f"{path}.*{key}.*64 bits"):
        catalog(files, "used").load_table(NAME).inspect.snapshots()


@pytest.mark.parametrize(
    ("damaged", "claimed"),
    [(damaged, claimed) for damaged in (1, 2, 3) for claimed in (0, 1, 2, 3, 7) if damaged != claimed],
)
def test_a_snapshot_that_claims_the_id_of_another_file_is_never_built_upon_or_expired(
    damaged: int, claimed: int
) -> None:
    files = MemoryFileIO()
    table = table_in(files)
    table.append(rows("+I b 1 1"))
    table.append(rows("+I c 1 1"))
    path = f"{table.location}/snapshot/snapshot-{damaged}"
    sound = files.read_bytes(path)
    files.replace(path, json.dumps(json.loads(sound) | {"id": claimed}).encode())
    uses: tuple[Callable[[DynamicTable], object], ...] = (
        lambda found: found.inspect.snapshots(),
        lambda found: found.compact(),
        lambda found: found.to_arrow(snapshot_id=damaged),
        lambda found: found.maintenance.expire_snapshots(retain_last=1),
    )
    for use in uses:
        with pytest.raises(CorruptFileError, match=f"{path} .*'id' is {claimed}"):
            use(catalog(files, "used").load_table(NAME))
    files.replace(path, sound)
    assert content(catalog(files, "used").load_table(NAME)) == {"a 1 10", "b 1 1", "c 1 1"}


@pytest.mark.parametrize("damage", ["", "{", "7", "null", "[" * 100_000, '{"0": Infinity}', '{"a": 1}'])
@pytest.mark.parametrize("key", [OFFSETS, TRANSACTIONS, COVERS_FROM, SOURCES])
def test_properties_of_a_snapshot_that_can_not_be_decoded_name_its_file(key: str, damage: str) -> None:
    files = MemoryFileIO()
    table = table_in(files)
    path = f"{table.location}/snapshot/snapshot-1"
    document = json.loads(files.read_bytes(path))
    document["properties"][key] = damage
    files.replace(path, json.dumps(document).encode())
    uses: dict[str, Callable[[DynamicTable], object]] = {
        "describe": lambda found: found.describe(),
        "snapshots": lambda found: found.inspect.snapshots(),
        "append": lambda found: found.append(rows("+I b 1 1")),
    }
    failures = []
    for use in uses.values():
        try:
            use(catalog(files, "used").load_table(NAME))
        except CorruptFileError as error:
            assert path in str(error)  # noqa: PT017  not each use decodes each property
            failures.append(error)
    assert failures or key == SOURCES


def test_an_option_with_a_flipped_letter_is_refused_with_the_files_name() -> None:
    files = MemoryFileIO()
    table = table_in(files, **{"sequence.field": "price"})
    path = f"{table.location}/schema/schema-0"
    sound = files.read_bytes(path)
    for key in ("sequence.field", "bucket", "log.system"):
        for place in range(len(key)):
            flipped = f"{key[:place]}/{key[place + 1 :]}"
            files.replace(path, sound.replace(f'"{key}":'.encode(), f'"{flipped}":'.encode()))
            with pytest.raises(InvalidInputError, match=f"{NAME}.*{path}.*unknown option '{flipped}'.*'{key}'"):
                catalog(files, "used").load_table(NAME)


def test_no_flipped_bit_of_a_schemas_options_is_a_bare_error() -> None:
    files = MemoryFileIO()
    path = f"{table_in(files, **{'log.kafka.topic': 'orders'}).location}/schema/schema-0"
    sound = files.read_bytes(path)
    for place in range(sound.index(b'"options"'), len(sound)):
        for bit in (0, 1, 5, 7):
            files.replace(path, sound[:place] + bytes([sound[place] ^ 1 << bit]) + sound[place + 1 :])
            try:
                catalog(files, "used").load_table(NAME).to_arrow()
            except StorageError as error:
                assert path in str(error) or NAME in str(error)  # noqa: PT017  most damage is only another option


def test_an_unknown_option_of_another_writer_is_kept() -> None:
    files = MemoryFileIO()
    path = f"{table_in(files).location}/schema/schema-0"
    files.replace(path, files.read_bytes(path).replace(b'"bucket":', b'"engine-of-others/setting": "x", "bucket":'))
    found = catalog(files, "used").load_table(NAME)
    assert found.schema.options["engine-of-others/setting"] == "x"
    found.append(rows("+I b 1 1"))
    assert content(found) == {"a 1 10", "b 1 1"}
