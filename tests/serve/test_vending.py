"""Credentials for clients: for which tables, how long they are kept, and what happens without a token service."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, UnavailableError
from tests.support.extras import needs
from tests.support.fake_environment import FakeClock
from tests.support.granted_credentials import GrantedCredentials
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from storage_lib.serve.vending.vending import Vending

pytestmark = needs("fastapi", "uvicorn")

WAREHOUSE = "s3://lake/warehouse"
ORDERS, PLACE = TableName.parse("shop.orders"), f"{WAREHOUSE}/shop.db/orders"
KEYS = {"s3.access-key": "key", "s3.secret-key": "secret"}
HALF_AN_HOUR = 1800
SECONDS_AFTER_FAILURE = 5


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def service(clock: FakeClock) -> GrantedCredentials:
    return GrantedCredentials(KEYS, clock)


def _vending(service: GrantedCredentials, clock: FakeClock, warehouse: str = WAREHOUSE) -> Vending:
    from storage_lib.serve.vending.vending import Vending

    return Vending(service, clock, warehouse=warehouse)


def test_credentials_are_kept_until_half_of_their_life_is_over(service: GrantedCredentials, clock: FakeClock) -> None:
    vending = _vending(service, clock)

    first = vending.credentials("reports", ORDERS, PLACE)
    clock.pass_time(HALF_AN_HOUR - 1)
    again = vending.credentials("reports", ORDERS, PLACE)
    clock.pass_time(1)
    renewed = vending.credentials("reports", ORDERS, PLACE)

    assert again == first
    assert renewed != first
    assert renewed.expires_millis == clock.now_millis() + 2 * HALF_AN_HOUR * 1000


def test_each_client_and_table_has_credentials_of_its_own(service: GrantedCredentials, clock: FakeClock) -> None:
    vending = _vending(service, clock)
    other = TableName.parse("shop.others")
    clients = ["reports", "loader", "reports"]

    made = [
        vending.credentials("reports", ORDERS, PLACE),
        vending.credentials("loader", ORDERS, PLACE),
        vending.credentials("reports", other, f"{WAREHOUSE}/shop.db/others"),
    ]

    assert len({each.session_token for each in made}) == 3
    assert [each.session for each in service.asked] == [f"client-{each}" for each in clients]


def test_a_name_of_a_session_has_a_length_that_the_service_takes(service: GrantedCredentials, clock: FakeClock) -> None:
    vending = _vending(service, clock)

    for client in ("a", "x" * 64, "x" * 63 + "y"):
        vending.credentials(client, ORDERS, PLACE)

    assert all(re.fullmatch(r"[\w+=,.@-]{2,64}", each.session) for each in service.asked)
    assert len({each.session for each in service.asked}) == 3


def test_a_table_in_a_directory_of_its_own_gets_none(service: GrantedCredentials, clock: FakeClock) -> None:
    with pytest.raises(InvalidInputError, match="a directory of its own"):
        _vending(service, clock).credentials("reports", ORDERS, "s3://lake/warehouse/secret.db/salaries")
    assert service.asked == []


def test_another_spelling_of_the_scheme_is_the_same_directory(service: GrantedCredentials, clock: FakeClock) -> None:
    _vending(service, clock).credentials("reports", ORDERS, PLACE.replace("s3:", "s3a:"))

    assert len(service.asked) == 1


@pytest.mark.parametrize("warehouse", ["/data/warehouse", "gs://lake/warehouse", "s3://lake/ware*house"])
def test_a_warehouse_whose_tables_get_no_credentials_is_refused_at_once(
    service: GrantedCredentials, clock: FakeClock, warehouse: str
) -> None:
    with pytest.raises(InvalidInputError, match="no credentials can be made"):
        _vending(service, clock, warehouse)


def test_nothing_is_kept_of_a_failure(service: GrantedCredentials, clock: FakeClock) -> None:
    vending = _vending(service, clock)
    service.is_down = True
    with pytest.raises(UnavailableError):
        vending.credentials("reports", ORDERS, PLACE)

    service.is_down = False
    clock.pass_time(SECONDS_AFTER_FAILURE)

    assert vending.credentials("reports", ORDERS, PLACE).access_key == KEYS["s3.access-key"]


def test_a_service_that_is_down_is_not_asked_by_every_request(service: GrantedCredentials, clock: FakeClock) -> None:
    vending = _vending(service, clock)
    service.is_down = True

    for moment in range(3):
        for client in ("reports", "loader", "reports"):
            with pytest.raises(UnavailableError):
                vending.credentials(client, ORDERS, PLACE)
        assert len(service.asked) == moment + 1
        clock.pass_time(SECONDS_AFTER_FAILURE)


def test_requests_at_the_same_time_ask_once_for_each_table(service: GrantedCredentials, clock: FakeClock) -> None:
    vending = _vending(service, clock)
    service.answers.clear()

    with ThreadPoolExecutor(8) as threads:
        made = [threads.submit(vending.credentials, "reports", ORDERS, PLACE) for _ in range(8)]
        wait_until(lambda: service.asked)
        service.answers.set()

    assert len({each.result().session_token for each in made}) == 1
    assert len(service.asked) == 1


def test_a_slow_service_holds_few_requests_up(
    service: GrantedCredentials, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage_lib.serve.vending.vending._SECONDS_TO_WAIT", 0.01)
    vending = _vending(service, clock)
    service.answers.clear()
    try:
        with ThreadPoolExecutor(8) as threads:
            slow = [threads.submit(vending.credentials, f"client{each}", ORDERS, PLACE) for each in range(8)]
            wait_until(lambda: len(service.asked) == 8)
            for client in ("client0", "another"):
                with pytest.raises(UnavailableError, match="does not answer in time"):
                    vending.credentials(client, ORDERS, PLACE)
            service.answers.set()
    finally:
        service.answers.set()

    assert len({each.result().session_token for each in slow}) == 8


def test_kept_credentials_are_bounded(
    service: GrantedCredentials, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage_lib.serve.vending.vending._KEPT_MAX", 2)
    vending = _vending(service, clock)

    for client in ("a", "b", "c", "c"):
        vending.credentials(client, ORDERS, PLACE)
    assert len(service.asked) == 4
    clock.pass_time(2 * HALF_AN_HOUR)
    for client in ("c", "c"):
        vending.credentials(client, ORDERS, PLACE)

    assert len(service.asked) == 5


def test_the_text_of_credentials_contains_no_secret(service: GrantedCredentials, clock: FakeClock) -> None:
    found = _vending(service, clock).credentials("reports", ORDERS, PLACE)

    assert "secret'" not in repr(found)
    assert found.session_token not in repr(found)
