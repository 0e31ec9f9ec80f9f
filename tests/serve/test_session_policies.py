"""What the credentials for a table may do: the policy's text, and what no policy is made for."""

from __future__ import annotations

import json

import pytest

from storage_lib.errors import InvalidInputError
from tests.support.extras import needs

pytestmark = needs("fastapi", "uvicorn")

TABLE = "s3://lake/warehouse/shop.db/orders"


def _policy(*places: str, **more: bool | str) -> dict[str, list[dict[str, object]]]:
    from storage_lib.serve.vending.session_policy import session_policy

    return json.loads(session_policy(places, **more))  # type: ignore[arg-type]


def test_credentials_that_read_get_files_and_list_directories_of_the_table_only() -> None:
    statements = _policy(TABLE)["Statement"]

    assert statements == [
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject"],
            "Resource": [
                "arn:aws:s3:::lake/warehouse/shop.db/orders",
                "arn:aws:s3:::lake/warehouse/shop.db/orders/*",
            ],
        },
        {
            "Effect": "Allow",
            "Action": ["s3:ListBucket"],
            "Resource": ["arn:aws:s3:::lake"],
            "Condition": {"StringLike": {"s3:prefix": ["warehouse/shop.db/orders", "warehouse/shop.db/orders/*"]}},
        },
        {"Effect": "Allow", "Action": ["s3:GetBucketLocation"], "Resource": ["arn:aws:s3:::lake"]},
    ]


def test_credentials_that_write_reach_data_and_manifests_but_no_schema_or_snapshot() -> None:
    writes = _policy(TABLE, "s3://lake/warehouse/iceberg/shop/orders", may_write=True)["Statement"][-1]

    assert writes["Action"] == ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    assert writes["Resource"] == [
        f"arn:aws:s3:::lake/warehouse/shop.db/orders/{each}"
        for each in ("bucket-*", "*/bucket-*", "manifest/*", "index/*", "statistics/*")
    ]


def test_only_those_who_are_allowed_to_list_all_names_of_the_bucket() -> None:
    listing = [_policy(TABLE, may_write=True, may_list_all=each)["Statement"][1] for each in (False, True)]

    assert ["Condition" in each for each in listing] == [True, False]


def test_resources_are_named_in_the_partition_of_the_role() -> None:
    assert _policy(TABLE, partition="aws-cn")["Statement"][-1]["Resource"] == ["arn:aws-cn:s3:::lake"]


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
    with pytest.raises(InvalidInputError, match="the token service takes 2048"):
        _policy(f"s3://lake/{'long' * 200}/shop.db/orders")
