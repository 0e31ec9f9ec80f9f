"""How a reader treats what the records of a source say: options ``source.*``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.capture.before_images import BeforeImage
from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.external.reject_limit import RejectLimit
from storage_lib.log_store.external.skipped_offsets import skipped_offsets
from storage_lib.schema.options.source_options import (
    BEFORE_IMAGE,
    ON_REJECT,
    ON_TRUNCATE,
    REJECT_MAX,
    SCHEMA_CHANGE,
    SKIP,
)
from storage_lib.schema.options.table_options import OnCorrupt

if TYPE_CHECKING:
    from typing import TypeVar

    Word = TypeVar("Word", bound=StrEnum)

ON_CORRUPT = "log.scan.on-corrupt"
"""Older name of ``source.on-reject``, with the values fail and skip."""


class OnTruncate(StrEnum):
    """Values of option ``source.on-truncate``: what a TRUNCATE of the source does."""

    FAIL = "fail"
    APPLY = "apply"
    IGNORE = "ignore"


class SchemaChangeOfSource(StrEnum):
    """Values of option ``source.schema-change``: what new columns and wider types in the schemas of records do."""

    EVOLVE = "evolve"
    FAIL = "fail"
    IGNORE = "ignore"


class OnReject(StrEnum):
    """Values of option ``source.on-reject``: what happens with a record that can't be decoded or does not fit."""

    FAIL = "fail"
    SKIP = "skip"
    QUARANTINE = "quarantine"
    """Keep it in the table's rejected records, with the commit that passes over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """Parsed options of a source; ``schema_change`` None leaves the choice to the reader."""

    before_image: BeforeImage = BeforeImage.AUTO
    on_truncate: OnTruncate = OnTruncate.FAIL
    on_reject: OnReject = OnReject.FAIL
    reject_limit: RejectLimit = field(default_factory=RejectLimit)
    schema_change: SchemaChangeOfSource | None = None
    skipped: frozenset[tuple[int, int]] = frozenset()
    modes: CaptureModes = field(default_factory=CaptureModes)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceSettings:
        """Read the options; other keys are ignored. Raises ``InvalidInputError`` for an unknown word."""
        on_reject = _word(options, ON_REJECT, OnReject.FAIL)
        if ON_REJECT not in options:
            on_reject = OnReject(_word(options, ON_CORRUPT, OnCorrupt.FAIL))
        return cls(
            before_image=_word(options, BEFORE_IMAGE, BeforeImage.AUTO),
            on_truncate=_word(options, ON_TRUNCATE, OnTruncate.FAIL),
            on_reject=on_reject,
            reject_limit=RejectLimit.parse(options.get(REJECT_MAX)),
            skipped=skipped_offsets(options.get(SKIP)),
            schema_change=(
                _word(options, SCHEMA_CHANGE, SchemaChangeOfSource.EVOLVE) if SCHEMA_CHANGE in options else None
            ),
            modes=CaptureModes.parse(options),
        )


def _word(options: Mapping[str, str], key: str, default: Word) -> Word:
    given = options.get(key, default)
    try:
        return type(default)(given)
    except ValueError as error:
        message = f"option {key} is {given!r}; it has to be one of {', '.join(type(default))}"
        raise InvalidInputError(message) from error
