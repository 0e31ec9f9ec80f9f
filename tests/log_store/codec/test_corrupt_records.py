"""The cost of skipping corrupt records is linear in the number of records, however many are corrupt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from storage_lib.log_store.codec.corrupt_records import decode_but_corrupt
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.schema.table_schema import new_table_schema

if TYPE_CHECKING:
    from storage_lib.log_store.codec.log_codec import DecodedChanges

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False)])
SCHEMA = new_table_schema(COLUMNS, primary_keys=["id"], options={"bucket": "1"}, time_millis=0)


@dataclass
class CountingDecoder:
    decoder: DebeziumJson = field(default_factory=lambda: DebeziumJson(SCHEMA, with_update_before=False))
    value_count: int = 0
    name: str = "debezium-json"

    def decode(self, values: pa.Array, keys: pa.Array) -> DecodedChanges:
        self.value_count += len(values)
        return self.decoder.decode(values, keys)


@pytest.mark.parametrize("count", [1, 2, 256])
@pytest.mark.parametrize("bad", [range(256), range(0, 256, 2), range(64, 192), range(0), [0], [1], [255]])
def test_many_bad_records_do_not_have_the_good_ones_read_for_each(count: int, bad: range | list[int]) -> None:
    values = [b"hello" if at in bad else f'{{"after":{{"id":{at}}},"op":"c"}}'.encode() for at in range(count)]
    counting, told = CountingDecoder(), list[int]()

    changes = decode_but_corrupt(
        counting, pa.array(values, pa.binary()), pa.nulls(count, pa.binary()), lambda index, _: told.append(index)
    )

    good = [at for at in range(count) if at not in bad]
    assert changes.rows["id"].to_pylist() == changes.record_indices.tolist() == good
    assert len(changes.kinds) == len(good)
    assert told == [at for at in range(count) if at in bad]
    assert counting.value_count <= 8 * count
