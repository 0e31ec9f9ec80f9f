"""Hanging transactions are aborted by the next writer, or by a user with the permission."""

from __future__ import annotations

from typing import Any

import kafka.errors
import pytest

from storage_lib.errors import InvalidInputError, UnavailableError
from storage_lib.log_store.kafka.kafka_forgotten_transactions import forgotten_aborted
from tests.support.fake_environment import FakeClock
from tests.support.fake_leader import FakeLeader

MINE, THEIRS = 5, 6


def look(leader: Any) -> list[str]:
    done: list[str] = []
    with forgotten_aborted(leader, "orders", 0, MINE, FakeClock()):
        done.append("joined")
    return done


def test_what_the_same_producer_left_open_is_aborted_and_nothing_else() -> None:
    leader = FakeLeader({MINE: 17, THEIRS: 20})

    assert look(leader) == ["joined"]

    assert leader.aborted == [MINE]
    assert look(FakeLeader({MINE: -1})) == ["joined"]
    assert look(FakeLeader({})) == ["joined"]


def test_who_may_not_end_it_is_told_the_command_and_the_right_it_lacks() -> None:
    leader = FakeLeader({MINE: 17}, [kafka.errors.ClusterAuthorizationFailedError])

    with pytest.raises(
        InvalidInputError,
        match=r"abort --topic orders --partition 0 --start-offset 17, or grant it CLUSTER_ACTION",
    ):
        look(leader)

    assert leader.aborted == []


def test_an_answer_that_may_pass_is_asked_for_again() -> None:
    leader = FakeLeader({MINE: 17}, [kafka.errors.NotLeaderForPartitionError])

    look(leader)

    assert (leader.aborted, leader.leader_lookups) == ([MINE], 1)


def test_an_outage_that_does_not_pass_is_one() -> None:
    with pytest.raises(UnavailableError, match="look for forgotten transactions in bucket 0 of 'orders'"):
        look(FakeLeader({MINE: 17}, [kafka.errors.NotLeaderForPartitionError] * 10_000))


def test_an_answer_that_nobody_expects_is_named() -> None:
    with pytest.raises(InvalidInputError, match="Kafka answers InvalidRequestError about producers"):
        look(FakeLeader({MINE: 17}, [kafka.errors.InvalidRequestError]))
