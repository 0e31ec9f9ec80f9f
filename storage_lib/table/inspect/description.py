"""The description of a table or a partition: the result of ``DynamicTable.describe``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from html import escape


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Description(Mapping[str, str]):
    """Typed attributes, and a mapping of the fields of ``DESCRIBE TABLE EXTENDED`` to their texts.

    ``columns`` maps names to SQL types, ``partition`` is empty for a whole table, ``row_count`` counts rows in the
    files before merging. Times are in UTC. ``options`` have their secrets masked.
    """

    name: str
    comment: str | None
    columns: Mapping[str, str]
    primary_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    bucket_count: int
    change_tracking: bool
    has_log: bool
    location: str
    file_format: str
    partition: Mapping[str, object]
    file_count: int
    size_bytes: int
    row_count: int
    is_compacted: bool
    last_modified: datetime | None
    watermark: datetime | None
    snapshot_id: int | None
    lease_holder: str | None
    options: Mapping[str, str]
    fields: Mapping[str, str]

    def __getitem__(self, field: str) -> str:
        """Return the text of a field of DESCRIBE; empty if the field has no value."""
        return self.fields[field]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the fields, in the order of DESCRIBE."""
        return iter(self.fields)

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self.fields)

    def __repr__(self) -> str:
        of = f" {dict(self.partition)}" if self.partition else ""
        newest = "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        return f"<Description of {self.name}{of}: {newest}, {self.file_count} files, {self.size_bytes} bytes>"

    def __str__(self) -> str:
        """Return one line per field."""
        return "\n".join(f"{name}: {text}" for name, text in self.fields.items())

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in self.fields.items())
        return f"<table><tbody>{rows}</tbody></table>"
