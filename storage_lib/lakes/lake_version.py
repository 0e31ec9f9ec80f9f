"""One version of a table of another format, which is read without a JVM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.lakes.lake_history import LakeHistory
    from storage_lib.schema.filter.predicate import Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeVersion(ABC):
    """A version of the table at ``location``, which ``name`` calls it in errors.

    ``storage_options`` are those of the library that reads it; they hold secrets.
    """

    KIND: ClassVar[str]
    """Option ``type`` of the catalogs that have such tables."""

    name: str
    location: str
    version: int
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @abstractmethod
    def schema(self) -> pa.Schema:
        """Return the columns of this version. Raises ``InvalidInputError`` if it can't be read."""

    @abstractmethod
    def files(self, predicate: Predicate | None = None) -> list[tuple[str, int]] | None:
        """Return the paths of the data files, with their sizes in bytes (0: unknown).

        Files without a row for which ``predicate`` may hold are left out, as far as metadata tell. None if only the
        whole table can be read. Raises ``InvalidInputError`` if this version can't be read.
        """

    @abstractmethod
    def parts(self, tasks: Sequence[Sequence[str]]) -> list[object]:
        """Return what a task needs to read its files, for each sequence of paths of ``files``: picklable objects."""

    @abstractmethod
    def batches(self, columns: Sequence[str], part: object) -> Iterator[pa.RecordBatch]:
        """Read columns of the rows of one of the ``parts``, or with None of all rows, in no particular order.

        The batches have the types of ``schema``. Raises ``InvalidInputError`` if a file is missing.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """Which version of a table is read: by its number or tag, or the newest that was committed until ``before``."""

    number: int | None = None
    before: datetime | None = None
    tag: str | None = None


NEWEST = AsOf()
"""Without a condition: the newest version."""


class LakeCatalog(Protocol):
    """Databases and tables of another format. Only reads."""

    def databases(self) -> list[str]:
        """Return the names of the databases, sorted."""

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's tables, sorted. Raises ``NotFoundError`` if it does not exist."""

    def version(self, database: str, table: str, as_of: AsOf = NEWEST) -> LakeVersion:
        """Return a version of a table.

        Raises ``NotFoundError`` if the database or the table does not exist, ``InvalidInputError`` if there is no such
        version or it can't be read.
        """

    def history(self, database: str, table: str) -> LakeHistory:
        """Return the states of a table up to the newest; raises as ``version``."""
