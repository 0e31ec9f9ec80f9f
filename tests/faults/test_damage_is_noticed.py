"""Damaged bytes cause an error that names the file, and never wrong rows."""

from __future__ import annotations

import json
import warnings
import zlib
from contextlib import suppress
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
import zstandard
from typer.testing import CliRunner

from storage_lib import CorruptFileError, DynamicTable, open_catalog
from storage_lib.catalog.warehouse.memory_catalog import MemoryCatalog
from storage_lib.cli.app import app
from storage_lib.file_store.data_file.file_checksum import checksum_in, encode_checksum
from storage_lib.format.avro_container import decode_container, encode_container
from storage_lib.format.avro_format import AvroFormat
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import NAME, content, orders, reopened, rows

FORMATS = ("parquet", "orc", "avro")
SCHEMA = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]})


def table_of(file_format: str) -> DynamicTable:
    table = orders(MemoryCatalog(environment=fake_environment()), **{"log.system": "none", "file.format": file_format})
    table.append(rows(*(f"+I a {number} {number * 7}" for number in range(2_000))))
    return table


def path_of_the_data(table: DynamicTable) -> str:
    (path,) = (table.context.file_store.path_of(entry) for entry in table.new_read().plan().entries)
    return path


@pytest.mark.parametrize("file_format", FORMATS)
def test_no_flipped_bit_of_a_data_file_is_read_or_compacted(file_format: str) -> None:
    table = table_of(file_format)
    table.append(rows("+U a 1 8"))
    (path, *_) = sorted(table.context.file_store.path_of(entry) for entry in table.new_read().plan().entries)
    files = table.environment.file_io
    sound, truth = files.read_bytes(path), content(table)
    for place in range(0, len(sound), max(1, len(sound) // 60)):
        files.replace(path, sound[:place] + bytes([sound[place] ^ 0x10]) + sound[place + 1 :])
        with suppress(CorruptFileError):
            assert content(reopened(table)) == truth
        with pytest.raises(CorruptFileError, match=path.rpartition("/")[2]):
            reopened(table).compact()
    files.replace(path, sound)
    reopened(table).compact()
    assert len(content(table)) == 2_000


def every_row(table: DynamicTable) -> list[str]:
    return sorted(str(row) for row in table.to_arrow().to_pylist())


def every_change(table: DynamicTable) -> list[str]:
    splits = table.new_read().plan_changes(start_snapshot_id=1, end_snapshot_id=2)
    return sorted(
        str(row) for split in splits for batch in table.new_read().read_changes(split) for row in batch.to_pylist()
    )


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("keyed", [True, False])
def test_no_flipped_bit_of_a_single_file_is_read_whatever_the_kind_of_table(file_format: str, keyed: bool) -> None:  # noqa: FBT001
    columns = pa.schema([("id", pa.int64()), ("price", pa.int64())])
    options = {"log.system": "none", "bucket": "1", "file.format": file_format}
    key = ["id"] if keyed else []
    catalog = MemoryCatalog(environment=fake_environment())
    table = catalog.create_table("shop.t", columns, primary_key=key, options=options)
    table.append(pa.table({"id": [1_000_000], "price": [0]}))
    table.append(pa.table({"id": range(200), "price": [number % 9 * 1_000 for number in range(200)]}))
    (path,) = (
        table.context.file_store.path_of(each) for each in table.new_read().plan().entries if each.file.row_count == 200
    )
    files = table.environment.file_io
    sound, rows_there, changes_there = files.read_bytes(path), every_row(table), every_change(table)
    # Page checksums cover the compressed rows; this damages everything else.
    for place in range(0, len(sound), 5):
        files.replace(path, sound[:place] + bytes([sound[place] ^ 1 << place % 8]) + sound[place + 1 :])
        with suppress(CorruptFileError):
            assert every_row(reopened(table)) == rows_there, place
        with suppress(CorruptFileError):
            assert every_change(reopened(table)) == changes_there, place


@pytest.mark.parametrize("file_format", FORMATS)
def test_some_columns_of_a_damaged_file_are_not_read_either(file_format: str) -> None:
    table = table_of(file_format)
    path, files = path_of_the_data(table), table.environment.file_io
    sound = files.read_bytes(path)
    truth = table.to_arrow(columns=["price"]).to_pydict()
    for place in range(0, len(sound), max(1, len(sound) // 60)):
        files.replace(path, sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        try:
            found = reopened(table).to_arrow(columns=["price"]).to_pydict()
        except CorruptFileError as error:
            named = str(error)
        else:
            named = path
            assert file_format == "parquet"
            assert found == truth
        assert path.rpartition("/")[2] in named


def test_a_checksum_is_found_in_the_index_of_an_entry_and_in_nothing_else() -> None:
    assert checksum_in(encode_checksum(0xDEADBEEF)) == 0xDEADBEEF
    for other in (None, b"", b"\x00" * 64, encode_checksum(7)[:-1], encode_checksum(7) + b"\x00"):
        assert checksum_in(other) is None


def test_the_newest_snapshot_that_is_missing_is_no_reason_to_show_the_one_before() -> None:
    table = table_of("parquet")
    table.append(rows("+I b 1 1"))
    files, newest = table.environment.file_io, f"{table.location}/snapshot/snapshot-2"
    data = files.read_bytes(newest)
    files.delete(newest)

    for use in (lambda: reopened(table).to_arrow(), lambda: reopened(table).append(rows("+I c 1 1"))):
        with pytest.raises(CorruptFileError, match=r"snapshot-2 is missing, although .*LATEST names it.*snapshot-1"):
            use()

    files.replace(newest, data)
    assert "b 1 1" in content(reopened(table))
    files.delete(newest)
    files.delete(f"{table.location}/snapshot/LATEST")
    assert "b 1 1" not in content(reopened(table))


def test_a_hint_that_lags_behind_or_is_damaged_is_only_a_hint() -> None:
    table = table_of("parquet")
    for price in range(1, 15):
        table.append(rows(f"+U a 1 {price}"))
    table.maintenance.expire_snapshots(retain_last=2)
    for hint in (b"1", b"", b"\xff", b"x", b"-3"):
        table.environment.file_io.replace(f"{table.location}/snapshot/LATEST", hint)
        assert "a 1 14" in content(reopened(table))


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b"\xff\x00", b'{"holder": 1}', b"[" * 10_000, b"null"])
def test_a_damaged_lease_or_ticket_leaves_the_table_writable(garbage: bytes) -> None:
    table = table_of("parquet")
    files = table.environment.file_io
    newest = table.context.leases.newest()
    assert newest is not None
    for number in (newest, newest + 1):
        files.replace(f"{table.location}/lease/lease-{number}", garbage)
    files.replace(f"{table.location}/lease/waiting-somebody", garbage)

    reopened(table).append(rows("+I b 1 1"))

    assert "b 1 1" in content(table)


@pytest.mark.parametrize("codec", ["zstandard", "deflate"])
def test_a_manifest_that_expands_to_gigabytes_is_refused_early(codec: str) -> None:
    zeros = bytes(3 << 20)
    zstd, deflate = zstandard.ZstdCompressor().compressobj(), zlib.compressobj(wbits=-zlib.MAX_WBITS)
    compressor = zstd if codec == "zstandard" else deflate
    block = b"".join([*(compressor.compress(zeros) for _ in range(200)), compressor.flush()])
    sound = encode_container(SCHEMA, [{"a": b"x"}])
    sync = sound[-16:]
    header = sound[: sound.index(sync)].replace(b"\x12zstandard", bytes([2 * len(codec)]) + codec.encode())

    def long(value: int) -> bytes:
        out, value = bytearray(), value << 1
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*out, value])

    bomb = header + sync + long(1) + long(len(block)) + block + sync
    with pytest.raises(CorruptFileError, match=r"the-manifest expands to more than"):
        decode_container(bomb, "the-manifest")


def test_what_is_no_schema_in_a_containers_header_is_corrupt() -> None:
    sound = encode_container(SCHEMA, [{"a": b"x"}])
    with pytest.raises(CorruptFileError, match="the-manifest"):
        decode_container(sound.replace(b'"bytes"', b'"bytez"'), "the-manifest")
    with pytest.raises(CorruptFileError, match="the-manifest"):
        decode_container(sound.replace(b'"name": "a"', b'"name": "b"'), "the-manifest")


def test_a_length_below_zero_in_a_containers_header_is_corrupt() -> None:
    one_entry_of_minus_one_byte = b"Obj\x01\x02\x02a\x01"
    with pytest.raises(CorruptFileError, match="the-manifest"):
        decode_container(one_entry_of_minus_one_byte, "the-manifest")
    source = pa.BufferReader(one_entry_of_minus_one_byte)
    with pytest.raises(CorruptFileError, match="the-file"):
        AvroFormat().reader(source, "the-file")


def test_other_readers_pass_over_what_is_ours_in_a_container(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(encode_container(SCHEMA, [{"a": b"x"}]))
    with warnings.catch_warnings(), (tmp_path / "file").open("rb") as file:
        warnings.simplefilter("ignore")
        assert fastavro.reader(file).metadata["dynamic-table.sync"] == "blake2b"


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_deep_look_finds_a_changed_byte_and_says_which_files_it_can_not_judge(
    file_format: str, tmp_path: Path
) -> None:
    table = orders(open_catalog(str(tmp_path)), **{"log.system": "none", "file.format": file_format})
    table.append(rows(*(f"+I a {number} {number * 7}" for number in range(2_000))))

    def look(*more: str) -> tuple[int, str]:
        ran = CliRunner().invoke(app, ["-w", str(tmp_path), "--json", "doctor", NAME, *more])
        return ran.exit_code, next(each["text"] for each in json.loads(ran.stdout) if each["what"] == NAME)

    assert "exists and can be read" in look("--deep")[1]
    path = Path(path_of_the_data(table))
    sound = path.read_bytes()
    path.write_bytes(sound[:200] + bytes([sound[200] ^ 1]) + sound[201:])
    assert "newest snapshot exists" in look()[1]
    code, text = look("--deep")
    assert (code, path.name in text, "CRC-32C" in text) == (1, True, True)
