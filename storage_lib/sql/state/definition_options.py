"""Refusal of options that hold a materialized table's definition, where a statement gives options of a table."""

from __future__ import annotations

from collections.abc import Iterable

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.materialized_table import PREFIX
from storage_lib.schema.options.table_options import canonical_key


def refuse_definition_options(owner: str, keys: Iterable[str]) -> None:
    """Raise ``InvalidInputError`` for an option of a definition: it would be stored without a check of its query.

    ``owner`` names the table or the session in the message.
    """
    for key in keys:
        if canonical_key(key).startswith(PREFIX):
            message = (
                f"{owner}: option {key} is part of the definition of a materialized table, which only CREATE and ALTER "
                "MATERIALIZED TABLE set"
            )
            raise InvalidInputError(message)
