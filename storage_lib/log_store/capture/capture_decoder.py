"""Interface of the decoders of external topics, and the part that all share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from storage_lib.log_store.capture.captured_changes import CapturedChanges
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.codec.log_columns import LogColumns


class CaptureDecoder(Protocol):
    """Decodes the records of one external topic. Picklable."""

    @property
    def name(self) -> str:
        """Name of the format."""

    @property
    def table(self) -> CapturedTable:
        """What the records are decoded for."""

    def captured(self, columns: LogColumns) -> CapturedChanges:
        """Decode records of one partition, in order. Records that can't be decoded are refused, not raised."""
