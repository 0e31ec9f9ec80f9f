"""Which kind of table a CREATE makes: what follows for its options, and what contradicts itself."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.errors import InvalidInputError
from storage_lib.schema.table_options import TableOptions, WriteMode
from storage_lib.schema.table_schema import BUCKET_UNAWARE


def with_kind_options(name: str, options: Mapping[str, str], *, has_primary_key: bool) -> dict[str, str]:
    """The options with the defaults of the table's kind filled in.

    Raises ``InvalidInputError`` for options that no such table can have.
    """
    is_append_only = TableOptions.parse(options).write_mode is WriteMode.APPEND_ONLY
    if has_primary_key:
        if is_append_only:
            message = (
                f"table {name} has a primary key, so later rows replace earlier ones, but option write-mode says "
                "append-only; leave one of them out"
            )
            raise InvalidInputError(message)
        return {"bucket": "1", **options}
    if not is_append_only:
        message = (
            f"table {name} has no primary key and takes updates and deletions, which this version can't store yet; "
            "declare primary_key=[...], or option write-mode=append-only if rows are only ever added"
        )
        raise InvalidInputError(message)
    if "merge-engine" in options:
        message = f"table {name} is append-only and merges nothing; leave option merge-engine out"
        raise InvalidInputError(message)
    return {"bucket": str(BUCKET_UNAWARE), **options}
