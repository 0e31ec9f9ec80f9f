"""What the credentials for a table may do, by the rules of AWS's policies, and what no policy is made for."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

import pytest

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.io.table_directory.table_paths import TablePaths
from tests.support.extras import needs

pytestmark = needs("fastapi", "uvicorn")

BUCKET, TABLE, VIEW = "lake", "warehouse/shop.db/orders", "warehouse/iceberg/shop/orders"


def _policy(table: str = f"s3://{BUCKET}/{TABLE}", **more: str) -> str:
    from storage_lib.serve.vending.session_policy import session_policy

    return session_policy(table, f"s3://{BUCKET}/{VIEW}", **more)


def _allows(policy: str, action: str, resource: str, **keys: str) -> bool:
    """Return whether a policy allows a request: a denial wins. '*' matches '/' too."""
    found = set()
    for each in json.loads(policy)["Statement"]:
        conditions: dict[str, list[str]] = each.get("Condition", {}).get("StringLike", {})
        holds = all(any(fnmatchcase(keys.get(key, ""), one) for one in form) for key, form in conditions.items())
        if each["Action"] == action and any(fnmatchcase(resource, one) for one in each["Resource"]) and holds:
            found.add(each["Effect"])
    return found == {"Allow"}


@pytest.mark.parametrize(
    "key",
    [
        *(f"{TABLE}/{each}" for each in ("schema/schema-0", "snapshot/snapshot-1", "bucket-0/a", "dt=1/bucket-0/a")),
        *(f"{TABLE}/{each}" for each in ("branch/branch-b/schema/schema-0", "metadata/v1.metadata.json", "index/i")),
        f"{VIEW}/metadata/v1.metadata.json",
    ],
)
def test_every_file_of_the_table_and_its_view_is_read(key: str) -> None:
    assert _allows(_policy(), "s3:GetObject", f"arn:aws:s3:::{BUCKET}/{key}")


@pytest.mark.parametrize(
    "key",
    [
        f"{TABLE}2/schema/schema-0",
        f"{VIEW}2/metadata/v1.metadata.json",
        "warehouse/shop.db/others/schema/schema-0",
        "warehouse/hidden.db/salaries/snapshot/snapshot-1",
        f"{TABLE}/{TableName.states_in('')}/one/schema/schema-0".replace("//", "/"),
        TablePaths(TABLE).rejected_path("list-1"),
        TABLE,
    ],
)
def test_no_other_file_is_read(key: str) -> None:
    assert not _allows(_policy(), "s3:GetObject", f"arn:aws:s3:::{BUCKET}/{key}")
    assert not _allows(_policy(), "s3:GetObject", f"arn:aws:s3:::other/{TABLE}/schema/schema-0")


@pytest.mark.parametrize(
    ("prefix", "is_listed"),
    [
        (f"{TABLE}/", True),
        (f"{TABLE}/snapshot/", True),
        (f"{VIEW}/metadata/", True),
        ("", False),
        ("warehouse/", False),
        ("warehouse/shop.db/", False),
        (TABLE, False),
        (f"{TABLE}2/", False),
    ],
)
def test_names_are_listed_below_the_table_only(prefix: str, *, is_listed: bool) -> None:
    bucket = f"arn:aws:s3:::{BUCKET}"
    assert _allows(_policy(), "s3:ListBucket", bucket, **{"s3:prefix": prefix}) is is_listed
    assert not _allows(_policy(), "s3:ListBucket", bucket)


def test_nothing_is_written() -> None:
    actions = {each["Action"] for each in json.loads(_policy())["Statement"] if each["Effect"] == "Allow"}

    assert actions == {"s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation"}


def test_resources_are_named_in_the_partition_of_the_role() -> None:
    named: list[Any] = [each["Resource"] for each in json.loads(_policy(partition="aws-cn"))["Statement"]]

    assert all(one.startswith("arn:aws-cn:s3:::lake") for each in named for one in each)


@pytest.mark.parametrize(
    "place",
    [
        "/data/warehouse/shop.db/orders",
        "gs://lake/warehouse/shop.db/orders",
        "s3://lake",
        "s3://lake/",
        "s3://lake/a//b",
        "s3://lake/all*/shop.db/orders",
        "s3://lake/a?/shop.db/orders",
        "s3://lake/${aws:username}/shop.db/orders",
        "s3://*/warehouse/shop.db/orders",
        's3://lake/a"b/shop.db/orders',
        "s3://lake/a b/shop.db/orders",
        "s3://user@lake/warehouse/shop.db/orders",
    ],
)
def test_no_policy_is_made_for_names_that_mean_more_than_themselves(place: str) -> None:
    with pytest.raises(InvalidInputError, match="no credentials can be made for"):
        _policy(place)


def test_a_path_that_makes_the_policy_too_long_is_refused() -> None:
    assert _policy(f"s3://lake/{'long' * 60}/shop.db/orders")
    with pytest.raises(InvalidInputError, match="the token service takes 2048"):
        _policy(f"s3://lake/{'long' * 100}/shop.db/orders")
