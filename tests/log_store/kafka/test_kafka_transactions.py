"""The transaction protocol when coordinators move, responses are lost and markers are delayed."""

from __future__ import annotations

from dataclasses import replace

import kafka.errors
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_lib.errors import InvalidInputError, LeaseLostError, NotFoundError, UnavailableError
from storage_lib.log_store.kafka.kafka_transactions import KafkaTransactions
from storage_lib.log_store.log_store import EndOutcome
from tests.support.fake_coordinator import ANSWER_LOST, FINE, FakeCoordinator
from tests.support.fake_environment import FakeClock

PASSING = [
    FINE,
    ANSWER_LOST,
    kafka.errors.NotCoordinatorError,
    kafka.errors.CoordinatorLoadInProgressError,
    kafka.errors.CoordinatorNotAvailableError,
    kafka.errors.ConcurrentTransactionsError,
    kafka.errors.NodeNotReadyError,
    kafka.errors.KafkaConnectionError,
]
MISHAPS = st.lists(st.sampled_from(PASSING), max_size=12)


def transactions_on(broker: FakeCoordinator, clock: FakeClock | None = None) -> KafkaTransactions:
    return KafkaTransactions(broker, "t", clock or FakeClock())  # type: ignore[arg-type]


@given(MISHAPS, st.booleans())
@settings(deadline=None, derandomize=True, max_examples=200)
def test_what_may_pass_is_tried_again_until_it_is_done(mishaps: list[str | type[Exception]], commit: bool) -> None:  # noqa: FBT001
    broker = FakeCoordinator()
    transactions = transactions_on(broker)
    handle = transactions.begin("u-0", 60_000)
    broker.mishaps = list(mishaps)
    transactions.join(handle, [0, 1])
    broker.markers_missing = 2

    outcomes = transactions.end_all((handle,), commit=commit)

    assert outcomes == (EndOutcome.ENDED,)
    assert broker.states["u-0"] == ("CompleteCommit" if commit else "CompleteAbort")
    assert broker.markers_missing == 0


@given(MISHAPS)
@settings(deadline=None, derandomize=True)
def test_beginning_is_tried_again_and_gets_the_newest_epoch(mishaps: list[str | type[Exception]]) -> None:
    broker = FakeCoordinator(mishaps)

    handle = transactions_on(broker).begin("u-0", 60_000)

    assert handle.producer_epoch == broker.epochs["u-0"]


def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    broker = FakeCoordinator([kafka.errors.NotCoordinatorError])

    transactions_on(broker).begin("u-0", 60_000)

    assert broker.lookups == 1


def test_the_end_waits_until_the_markers_are_in_the_topic() -> None:
    clock, broker = FakeClock(), FakeCoordinator()
    transactions = transactions_on(broker, clock)
    handle = transactions.begin("u-0", 60_000)
    transactions.join(handle, [0])
    broker.markers_missing = 3

    transactions.end_all((handle,), commit=True)

    assert len(clock.slept) == 3


def test_markers_that_never_come_are_unavailable_not_endless() -> None:
    clock, broker = FakeClock(), FakeCoordinator(limit_ms=5_000)
    transactions = transactions_on(broker, clock)
    handle = transactions.begin("u-0", 60_000)
    transactions.join(handle, [0])
    broker.markers_missing = 1_000_000

    with pytest.raises(UnavailableError, match="commit 1 transactions on 't' within 5000 ms"):
        transactions.end_all((handle,), commit=True)
    assert sum(clock.slept) <= 5


def test_a_decision_that_was_acknowledged_stays_ended_even_if_a_successor_comes_in_between() -> None:
    broker = FakeCoordinator()
    transactions = transactions_on(broker)
    handle = transactions.begin("u-0", 60_000)
    transactions.join(handle, [0])
    broker.mishaps = [FINE, kafka.errors.ProducerFencedError]

    assert transactions.end_all((handle,), commit=True) == (EndOutcome.ENDED,)


@pytest.mark.parametrize(
    "error", [kafka.errors.ProducerFencedError, kafka.errors.InvalidProducerEpochError,
              kafka.errors.InvalidProducerIdMappingError],
)  # fmt: skip
def test_a_fenced_handle_is_told_apart_from_an_outage(error: type[Exception]) -> None:
    broker = FakeCoordinator()
    transactions = transactions_on(broker)
    handle = transactions.begin("u-0", 60_000)
    broker.mishaps = [error]

    assert transactions.end_all((handle,), commit=True) == (EndOutcome.FENCED,)


def test_a_fenced_writer_can_not_join_a_bucket() -> None:
    transactions = transactions_on(FakeCoordinator())
    handle = transactions.begin("u-0", 60_000)
    transactions.begin("u-0", 60_000)

    with pytest.raises(LeaseLostError):
        transactions.join(handle, [0])


def test_an_unknown_handle_is_fenced() -> None:
    transactions = transactions_on(FakeCoordinator())
    handle = transactions.begin("u-0", 60_000)

    unknown = replace(handle, transactional_id="u-1")

    assert transactions.end_all((unknown, handle), commit=True) == (EndOutcome.FENCED, EndOutcome.ENDED)


@pytest.mark.parametrize(
    ("error", "raised", "complaint"),
    [
        (kafka.errors.TransactionalIdAuthorizationFailedError, InvalidInputError, "grant it"),
        (kafka.errors.TopicAuthorizationFailedError, InvalidInputError, "grant it"),
        (kafka.errors.InvalidRequestError, InvalidInputError, "InvalidRequestError"),
    ],
)
def test_what_no_retry_will_change_is_said_at_once(
    error: type[Exception], raised: type[Exception], complaint: str
) -> None:
    clock, broker = FakeClock(), FakeCoordinator()
    transactions = transactions_on(broker, clock)
    handle = transactions.begin("u-0", 60_000)
    broker.mishaps = [error]

    with pytest.raises(raised, match=complaint):
        transactions.join(handle, [0])
    assert clock.slept == []


def test_a_topic_is_believed_to_be_gone_when_brokers_repeat_it_for_a_while() -> None:
    """A broker that restarts after a crash reports this for every topic until it has read its metadata."""
    clock, broker = FakeClock(), FakeCoordinator()
    transactions = transactions_on(broker, clock)
    handle = transactions.begin("u-0", 60_000)

    broker.mishaps = [kafka.errors.UnknownTopicOrPartitionError] * 3
    transactions.join(handle, [0])
    assert broker.mishaps == []

    broker.mishaps = [kafka.errors.UnknownTopicOrPartitionError] * 100
    before = clock.monotonic()
    with pytest.raises(NotFoundError, match="no topic 't'"):
        transactions.join(handle, [0])
    assert 4 < clock.monotonic() - before < 6, "a sixth of the limit, which is 30 seconds"


def test_an_exception_in_the_broker_is_asked_about_again() -> None:
    """Kafka 4.3.1 throws one when a transaction ends at the moment of its time-out."""
    broker = FakeCoordinator()
    transactions = transactions_on(broker)
    fenced, ended = transactions.begin("u-0", 60_000), transactions.begin("u-1", 60_000)
    broker.mishaps = [kafka.errors.UnknownError]
    transactions.join(ended, [1])
    broker.epochs["u-0"] += 1
    broker.mishaps = [kafka.errors.UnknownError, kafka.errors.UnknownError]

    assert transactions.end_all((fenced, ended), commit=True) == (EndOutcome.FENCED, EndOutcome.ENDED)
