"""What the credentials for a table may do, as a session policy of AWS.

    read       get every file of the table, list its directories
    write      and put and delete data files, changelog files, manifests, indexes and statistics
    list all   and list the names in the whole bucket, which PyArrow needs to write: it first asks for the bucket

Snapshots, schemas, tags, branches and Iceberg metadata are written by the server alone. A client that could put a
schema file could name servers and expressions in it, which every process that opens the table would follow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from storage_lib.errors import InvalidInputError

_SCHEMES = frozenset({"s3", "s3a"})
_PLAIN_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]*")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.=@+-]+(?:/[A-Za-z0-9_.=@+-]+)*")
"""Names without characters that a policy gives a meaning ('*', '?', '$') or that need escapes."""
_WRITTEN = ("bucket-*", "*/bucket-*", "manifest/*", "index/*", "statistics/*")
_LENGTH_MAX = 2048
"""Characters of a session policy that AWS takes."""


def session_policy(
    places: Sequence[str], *, partition: str = "aws", may_write: bool = False, may_list_all: bool = False
) -> str:
    """Return the policy, a JSON document, for directories such as ``s3://lake/warehouse/shop.db/orders``.

    ``partition`` is that of the role's name (``aws-cn`` in China). Only the first directory, the table's own, may be
    written. Raises ``InvalidInputError`` for a directory that is not in S3, or whose name can't be put into a policy.
    """
    found = [_bucket_and_key(each) for each in places]
    arn = f"arn:{partition}:s3:::"
    read = [f"{arn}{bucket}/{key}{end}" for bucket, key in found for end in ("", "/*")]
    statements = [_statement(["s3:GetObject"], read)]
    for each in sorted({bucket for bucket, _ in found}):
        keys = [key for bucket, key in found if bucket == each]
        prefixes = [pattern for key in keys for pattern in (key, f"{key}/*")]
        listed = _statement(["s3:ListBucket"], [f"{arn}{each}"])
        condition = {} if may_list_all else {"Condition": {"StringLike": {"s3:prefix": prefixes}}}
        statements.append({**listed, **condition})
        statements.append(_statement(["s3:GetBucketLocation"], [f"{arn}{each}"]))
    if may_write:
        bucket, key = found[0]
        actions = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
        statements.append(_statement(actions, [f"{arn}{bucket}/{key}/{pattern}" for pattern in _WRITTEN]))
    text = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    if len(text) > _LENGTH_MAX:
        message = (
            f"the path of the table is too long for credentials: their policy has {len(text)} characters, and the "
            f"token service takes {_LENGTH_MAX}"
        )
        raise InvalidInputError(message)
    return text


def _statement(actions: list[str], resources: list[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources}


def _bucket_and_key(place: str) -> tuple[str, str]:
    parts = urlsplit(place)
    key = parts.path.removeprefix("/")
    plain = _PLAIN_BUCKET.fullmatch(parts.netloc) and _PLAIN_KEY.fullmatch(key)
    if parts.scheme not in _SCHEMES or not plain or parts.query or parts.fragment:
        message = (
            f"no credentials can be made for {place}: it has to be s3://<bucket>/<path>, of letters, digits and _.=@+-"
        )
        raise InvalidInputError(message)
    return parts.netloc, key
