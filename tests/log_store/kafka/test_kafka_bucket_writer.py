"""Batches are stored once and in order, whatever happens to requests and responses."""

from __future__ import annotations

import itertools

import kafka.errors
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_lib.errors import InvalidInputError, LeaseLostError, UnavailableError
from storage_lib.log_store.kafka.kafka_batch_encoding import BatchOwner, encode_batch
from storage_lib.log_store.kafka.kafka_bucket_writer import KafkaBucketWriter
from storage_lib.log_store.kafka.kafka_compression import Compression
from storage_lib.log_store.log_store import TransactionHandle, WrittenRange
from tests.support.fake_broker import ANSWER_LOST, FINE, REFUSED, UNSENT, FakeBroker
from tests.support.fake_environment import FakeClock

HANDLE = TransactionHandle(transactional_id="uuid-0", producer_id=1, producer_epoch=0)


def writer_on(broker: FakeBroker, clock: FakeClock | None = None) -> KafkaBucketWriter:
    return KafkaBucketWriter(broker, "t", 0, HANDLE, clock or FakeClock(), 30_000)  # type: ignore[arg-type]


def send(writer: KafkaBucketWriter, record_count: int) -> None:
    values = pa.array([b"v"] * record_count, pa.binary())
    batch = encode_batch(
        pa.nulls(record_count, pa.binary()),
        values,
        headers=b"\0",
        timestamp_millis=0,
        owner=BatchOwner(producer_id=1, producer_epoch=0, first_sequence=writer.next_sequence),
        compression=Compression.NONE,
    )
    writer.send(batch, record_count)


@given(st.lists(st.sampled_from([FINE, REFUSED, UNSENT, ANSWER_LOST]), max_size=25), st.lists(st.integers(1, 4)))
@settings(deadline=None, derandomize=True, max_examples=300)
def test_any_run_of_mishaps_stores_each_batch_once_and_in_order(mishaps: list[str], counts: list[int]) -> None:
    broker = FakeBroker(mishaps)
    writer = writer_on(broker)

    for count in counts:
        send(writer, count)
    written = writer.flush()

    starts = [0, *itertools.accumulate(counts)]
    assert broker.stored == list(zip(starts, counts, strict=False))
    expected = WrittenRange(bucket=0, first_offset=0, next_offset=starts[-1]) if counts else None
    assert written == expected


def test_at_most_five_batches_are_on_their_way() -> None:
    class Silent(FakeBroker):
        answered = 0

        def answer(self, pending: object) -> object:
            assert len(self.requests) - self.answered <= 5
            self.answered += 1
            return super().answer(pending)  # type: ignore[arg-type]

    broker = Silent()
    writer = writer_on(broker)
    for _ in range(20):
        send(writer, 1)

    assert writer.flush() == WrittenRange(bucket=0, first_offset=0, next_offset=20)


def test_what_was_lost_goes_before_what_follows() -> None:
    """A broker that crashed and lost a producer's first batch would accept the second in its place, then refuse it."""
    broker = FakeBroker([UNSENT])
    writer = writer_on(broker)
    send(writer, 1)
    send(writer, 1)
    writer.flush()

    assert broker.requests == [0, 0, 1]


def test_nothing_follows_the_first_batch_before_it_is_stored() -> None:
    """A broker that refused the first batch and accepted the second as the first would refuse the first forever."""
    broker = FakeBroker([REFUSED])
    writer = writer_on(broker)
    send(writer, 2)
    send(writer, 1)
    written = writer.flush()

    assert written == WrittenRange(bucket=0, first_offset=0, next_offset=3)
    assert broker.requests == [0, 0, 2]


def test_a_moved_leader_is_looked_up_again() -> None:
    broker = FakeBroker([REFUSED, FINE])
    writer = writer_on(broker)
    send(writer, 1)
    writer.flush()

    assert broker.leader_lookups == 1
    assert broker.requests == [0, 0]


@pytest.mark.parametrize(
    "error",
    [
        kafka.errors.ProducerFencedError,
        kafka.errors.InvalidProducerEpochError,
        kafka.errors.InvalidTxnStateError,
        kafka.errors.InvalidProducerIdMappingError,
    ],
)
def test_a_fenced_writer_loses_its_lease(error: type[Exception]) -> None:
    writer = writer_on(FakeBroker([error]))
    send(writer, 1)

    with pytest.raises(LeaseLostError, match="begin again with a new lease"):
        writer.flush()


def test_a_batch_too_large_is_refused_with_the_remedy() -> None:
    writer = writer_on(FakeBroker([kafka.errors.MessageSizeTooLargeError]))
    send(writer, 1)

    with pytest.raises(InvalidInputError, match=r"max\.message\.bytes"):
        writer.flush()


def test_a_broker_that_stays_away_is_unavailable_after_the_limit() -> None:
    clock = FakeClock()
    writer = writer_on(FakeBroker([UNSENT] * 10_000, limit_ms=5_000), clock)
    send(writer, 1)

    with pytest.raises(UnavailableError, match=r"write to bucket 0 of 't' within 5000 ms.*Kafka running at fake:9092"):
        writer.flush()
    assert 4 < sum(clock.slept) <= 5


def test_an_answer_that_means_lost_data_asks_to_begin_again() -> None:
    writer = writer_on(FakeBroker([kafka.errors.OutOfOrderSequenceNumberError]))
    send(writer, 1)

    with pytest.raises(UnavailableError, match="begin the transaction again"):
        writer.flush()
