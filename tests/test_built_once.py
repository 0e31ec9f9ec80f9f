"""Parts of shared objects are built once, whichever threads ask for them first."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from storage_lib.built_once import built_once

THREADS = 16
WAIT_SECONDS = 60


@dataclass
class House:
    """An object with parts that depend on each other; ``built`` lists the parts in the order of construction."""

    number: int = 1
    built: list[str] = field(default_factory=list)
    pauses: Callable[[str], None] = lambda _: None

    @built_once
    def cellar(self) -> object:
        """The lowest part."""
        return self._new("cellar")

    @built_once
    def roof(self) -> tuple[object, object]:
        return self.cellar, self._new("roof")

    @built_once
    def attic(self) -> tuple[object, object]:
        return self.roof, self.cellar

    @built_once
    def stairs(self) -> object:
        return self.stairs

    @built_once
    def well(self) -> object:
        self.built.append("well")
        if len(self.built) == 1:
            message = "dry"
            raise OSError(message)
        return self.number

    def _new(self, name: str) -> object:
        self.pauses(name)
        self.built.append(name)
        return object()


def busily(_: str) -> None:
    """Let other threads run during a construction."""
    for _number in range(1000):
        pass


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Switch threads as often as Python can, so that a missing lock is noticed."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def at_once(*uses: Callable[[], object]) -> list[object]:
    """Run ``uses`` in one thread each, all released together, and return their results."""
    ready = threading.Barrier(len(uses))

    def used(use: Callable[[], object]) -> object:
        ready.wait(WAIT_SECONDS)
        return use()

    with ThreadPoolExecutor(len(uses)) as pool:
        return [each.result(WAIT_SECONDS) for each in [pool.submit(used, use) for use in uses]]


def test_a_part_is_built_when_it_is_first_used() -> None:
    house = House()
    assert house.built == []

    roof = house.roof

    assert house.built == ["cellar", "roof"]
    assert house.roof is roof
    assert vars(house)["roof"] is roof


@pytest.mark.usefixtures("frequent_switches")
def test_threads_that_ask_together_get_one_part() -> None:
    for _ in range(50):
        house = House(pauses=busily)

        roofs = at_once(*[lambda: house.roof] * THREADS)  # noqa: B023  used before the next house

        assert all(roof is house.roof for roof in roofs)
        assert house.built == ["cellar", "roof"]


@pytest.mark.usefixtures("frequent_switches")
def test_threads_that_ask_for_different_parts_do_not_deadlock() -> None:
    for _ in range(50):
        house = House(pauses=busily)

        at_once(*[lambda: house.attic, lambda: house.cellar, lambda: house.roof] * 4)  # noqa: B023  as above

        assert sorted(house.built) == ["cellar", "roof"]


def test_objects_whose_parts_need_each_other_crosswise_do_not_deadlock() -> None:
    """With one lock per object, each thread would hold one house and wait for the other."""
    both_have_begun = threading.Barrier(2)

    class Neighbour(House):
        other: House

        @built_once
        def fence(self) -> object:
            both_have_begun.wait(WAIT_SECONDS)
            return self.other.cellar

    one, two = Neighbour(), Neighbour()
    one.other, two.other = two, one

    assert at_once(lambda: one.fence, lambda: two.fence) == [two.cellar, one.cellar]


def test_a_part_is_built_while_another_object_builds_the_same_part() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def pauses(_: str) -> None:
        begun.set()
        assert may_end.wait(WAIT_SECONDS)

    slow, quick = House(pauses=pauses), House()
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(lambda: slow.cellar)
        assert begun.wait(WAIT_SECONDS)

        assert quick.cellar is quick.cellar

        may_end.set()
        assert building.result(WAIT_SECONDS) is slow.cellar


def test_a_part_that_cannot_be_built_is_tried_again() -> None:
    house = House()
    with pytest.raises(OSError, match="dry"):
        _ = house.well

    assert house.well == 1
    assert house.built == ["well", "well"]


def test_a_part_that_depends_on_itself_is_an_error() -> None:
    with pytest.raises(RecursionError):
        _ = House().stairs


def test_an_object_with_parts_is_pickled_copied_and_replaced() -> None:
    house = House(number=3, built=["well"])
    assert house.well == 3

    pickled = pickle.loads(pickle.dumps(replace(house, pauses=print)))  # noqa: S301  our own bytes
    copied = copy.copy(house)
    replaced = replace(house, number=4)

    assert vars(house).keys() == {"number", "built", "pauses", "well"}
    assert "well" not in vars(pickled)
    assert copied.well == 3
    assert replaced.well == 4


def test_no_lock_outlives_the_construction() -> None:
    house = House()
    assert house.roof
    gc.collect()

    assert not House.roof._locks
    assert House.cellar.__doc__ == "The lowest part."
