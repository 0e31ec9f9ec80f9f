"""How a reader treats what the records of a source say: options ``source.*``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.external.reject_limit import RejectLimit
from storage_lib.log_store.external.skipped_offsets import skipped_offsets
from storage_lib.log_store.external.source_metadata import metadata_of
from storage_lib.log_store.metadata.metadata_names import Metadata
from storage_lib.schema.options.source_options import (
    BEFORE_IMAGE,
    KEY_CHANGE,
    METADATA,
    ON_REJECT,
    ON_TRUNCATE,
    REJECT_MAX,
    SCHEMA_CHANGE,
    SKIP,
    BeforeImage,
    KeyChange,
    OnReject,
    OnTruncate,
    SchemaChangeOfSource,
    word_option,
)
from storage_lib.schema.options.table_options import OnCorrupt

ON_CORRUPT = "log.scan.on-corrupt"
"""Older name of ``source.on-reject``, with the values fail and skip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """Parsed options of a source; ``schema_change`` None leaves the choice to the reader."""

    before_image: BeforeImage = BeforeImage.AUTO
    on_truncate: OnTruncate = OnTruncate.FAIL
    on_reject: OnReject = OnReject.FAIL
    reject_limit: RejectLimit = field(default_factory=RejectLimit)
    schema_change: SchemaChangeOfSource | None = None
    key_change: KeyChange = KeyChange.IGNORE
    skipped: frozenset[tuple[int, int]] = frozenset()
    modes: CaptureModes = field(default_factory=CaptureModes)
    metadata: Mapping[str, Metadata] = field(default_factory=dict)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceSettings:
        """Read the options; other keys are ignored. Raises ``InvalidInputError`` for an unknown word."""
        on_reject = word_option(options, ON_REJECT, OnReject)
        if on_reject is None:
            on_reject = OnReject(word_option(options, ON_CORRUPT, OnCorrupt) or OnReject.FAIL)
        return cls(
            before_image=word_option(options, BEFORE_IMAGE, BeforeImage) or BeforeImage.AUTO,
            on_truncate=word_option(options, ON_TRUNCATE, OnTruncate) or OnTruncate.FAIL,
            on_reject=on_reject,
            reject_limit=RejectLimit.parse(options.get(REJECT_MAX)),
            skipped=skipped_offsets(options.get(SKIP)),
            schema_change=word_option(options, SCHEMA_CHANGE, SchemaChangeOfSource),
            key_change=word_option(options, KEY_CHANGE, KeyChange) or KeyChange.IGNORE,
            modes=CaptureModes.parse(options),
            metadata=metadata_of(options.get(METADATA)),
        )
