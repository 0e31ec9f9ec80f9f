"""What the credentials for a table may do, as a session policy of AWS: read its files.

Not the files of materialized tables' accumulators and of rejected records, which the catalogs do not serve either.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.io.table_directory.table_paths import TablePaths

_SCHEMES = frozenset({"s3", "s3a"})
_PLAIN_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]*")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.=@+-]+(?:/[A-Za-z0-9_.=@+-]+)*")
"""Names without characters that a policy gives a meaning ('*', '?', '$') or that need escapes."""
_LENGTH_MAX = 2048
"""Characters of a session policy that AWS takes."""


class _Place(NamedTuple):
    bucket: str
    key: str


def session_policy(table: str, view: str, *, partition: str = "aws") -> str:
    """Return the policy, a JSON document, for a table's directory and that of its Iceberg view in a Hadoop catalog.

    Both are URLs such as ``s3://lake/warehouse/shop.db/orders``. ``partition`` is that of the role's name (``aws-cn``
    in China). Raises ``InvalidInputError`` for a directory that is not in S3, or whose name can't be put into a policy.
    """
    places = [_place(each) for each in (table, view)]
    bucket, key = places[0]
    arn = f"arn:{partition}:s3:::"
    files = [f"{arn}{each.bucket}/{each.key}/*" for each in places]
    unserved = [f"{arn}{bucket}/{each}/*" for each in (TableName.states_in(key), TablePaths(key).rejected_directory)]
    prefixes = [f"{each.key}/*" for each in places]
    text = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                _statement("Allow", "s3:GetObject", files),
                _statement("Deny", "s3:GetObject", unserved),
                _statement("Allow", "s3:ListBucket", [f"{arn}{bucket}"])
                | {"Condition": {"StringLike": {"s3:prefix": prefixes}}},
                _statement("Allow", "s3:GetBucketLocation", [f"{arn}{bucket}"]),
            ],
        },
        separators=(",", ":"),
    )
    if len(text) > _LENGTH_MAX:
        message = (
            f"the path of the table is too long for credentials: their policy has {len(text)} characters, and the "
            f"token service takes {_LENGTH_MAX}"
        )
        raise InvalidInputError(message)
    return text


def _statement(effect: str, action: str, resources: list[str]) -> dict[str, Any]:
    return {"Effect": effect, "Action": action, "Resource": resources}


def _place(directory: str) -> _Place:
    parts = urlsplit(directory)
    key = parts.path.removeprefix("/")
    plain = _PLAIN_BUCKET.fullmatch(parts.netloc) and _PLAIN_KEY.fullmatch(key)
    if parts.scheme not in _SCHEMES or not plain or parts.query or parts.fragment:
        message = (
            f"no credentials can be made for {directory}: it has to be s3://<bucket>/<path>, of letters, digits and "
            "_.=@+-"
        )
        raise InvalidInputError(message)
    return _Place(parts.netloc, key)
