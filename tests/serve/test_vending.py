"""Credentials for clients: for which tables, how long they are kept, and what happens without a token service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, UnavailableError
from tests.support.extras import needs
from tests.support.fake_environment import FakeClock
from tests.support.granted_credentials import GrantedCredentials

if TYPE_CHECKING:
    from storage_lib.serve.vending.vending import Vending

pytestmark = needs("fastapi", "uvicorn")

WAREHOUSE = "s3://lake/warehouse"
ORDERS, PLACE = TableName.parse("shop.orders"), f"{WAREHOUSE}/shop.db/orders"
KEYS = {"s3.access-key": "key", "s3.secret-key": "secret"}
HALF_AN_HOUR = 1800


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


def test_each_client_table_and_right_has_credentials_of_its_own(service: GrantedCredentials, clock: FakeClock) -> None:
    vending = _vending(service, clock)
    other = TableName.parse("shop.others")
    clients = ["reports", "loader", "loader", "reports"]

    made = [
        vending.credentials("reports", ORDERS, PLACE),
        vending.credentials("loader", ORDERS, PLACE),
        vending.credentials("loader", ORDERS, PLACE, may_write=True),
        vending.credentials("reports", other, f"{WAREHOUSE}/shop.db/others"),
    ]

    assert len({each.session_token for each in made}) == 4
    assert [each.session for each in service.asked] == [f"client-{each}" for each in clients]
    assert ["PutObject" in each.policy for each in service.asked] == [False, False, True, False]


def test_a_name_of_a_session_has_a_length_that_the_service_takes(service: GrantedCredentials, clock: FakeClock) -> None:
    vending = _vending(service, clock)

    for client in ("a", "x" * 64):
        vending.credentials(client, ORDERS, PLACE)

    assert all(re.fullmatch(r"[\w+=,.@-]{2,64}", each.session) for each in service.asked)


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

    assert vending.credentials("reports", ORDERS, PLACE).access_key == KEYS["s3.access-key"]


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


@pytest.mark.parametrize("role", ["", "reports", "arn:aws:iam::12:role/a", "arn:aws:iam::000000000000:user/a"])
@needs("botocore")
def test_a_name_that_is_not_a_role_s_is_refused(role: str) -> None:
    from storage_lib.serve.vending.assumed_role import AssumedRole

    with pytest.raises(InvalidInputError, match="is not the name of a role"):
        AssumedRole(role, KEYS)


@needs("botocore")
def test_a_token_service_that_does_not_answer_is_unavailable(unused_address: str) -> None:
    from storage_lib.serve.vending.assumed_role import AssumedRole

    service = AssumedRole("arn:aws-cn:iam::000000000000:role/a/b", KEYS, address=unused_address)

    assert service.partition == "aws-cn"
    with pytest.raises(UnavailableError, match="gave no credentials of the role"):
        service.credentials(session="client-a", policy="{}", seconds=900)


@needs("botocore")
def test_an_address_that_is_none_is_refused() -> None:
    from storage_lib.serve.vending.assumed_role import AssumedRole

    with pytest.raises(InvalidInputError, match="can't use the token service nowhere"):
        AssumedRole("arn:aws:iam::000000000000:role/a", KEYS, address="nowhere")


@pytest.fixture
def unused_address() -> str:
    from local_process import LOOPBACK, free_port

    return f"http://{LOOPBACK}:{free_port()}"
