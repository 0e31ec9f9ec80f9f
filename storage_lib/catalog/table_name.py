"""Names of tables: ``database.table``, valid as directories and as Kafka topics.

A branch, a system table, or both may follow after a ``$``: ``db.t$branch_dev``, ``db.t$snapshots``,
``db.t$branch_dev$files``. ``db.t$state_<id>`` is a state of a materialized table: a table inside its directory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from storage_lib.errors import InvalidInputError

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_BRANCH = "branch_"
_STATE = "state_"
_STATE_ID = re.compile(r"[A-Za-z0-9-]+")
_STATES_DIRECTORY = "states"


@dataclass(frozen=True, slots=True)
class TableName:
    """Name of a table, a branch, a system table or a state; ``str`` returns the text that ``parse`` reads."""

    database: str
    table: str
    branch: str | None = None
    system_table: str | None = None
    state: str | None = None

    @classmethod
    def parse(cls, text: str | TableName) -> TableName:
        """Parse ``database.table`` with optional suffixes. Raises ``InvalidInputError`` for anything else."""
        given: object = text
        if not isinstance(given, str | TableName):  # a template may render 2024.10 to a number, and lose a digit
            message = f"invalid table name {given!r} of type {type(given).__name__}; give database.table as text"
            raise InvalidInputError(message)
        base, *suffixes = str(text).split("$")
        parts = base.split(".")
        if len(parts) != 2 or not all(_PART.fullmatch(part) for part in parts) or not all(suffixes):
            message = (
                f"invalid table name {text!r}; write database.table, each part of letters, digits, '_' and '-' "
                "(they become directories and the Kafka topic's name)"
            )
            raise InvalidInputError(message)
        if len(suffixes) == 1 and suffixes[0].startswith(_STATE):
            return cls(parts[0], parts[1]).of_state(suffixes[0].removeprefix(_STATE))
        branch = system_table = None
        if suffixes and suffixes[0].startswith(_BRANCH):
            branch = suffixes.pop(0).removeprefix(_BRANCH)
        if suffixes:
            system_table = suffixes.pop(0)
        if suffixes:
            message = f"invalid table name {text!r}: only $branch_<name> and $<system table> may follow database.table"
            raise InvalidInputError(message)
        database, table = parts
        return cls(database, table, branch, system_table)

    @classmethod
    def parse_plain(cls, text: str | TableName) -> TableName:
        """Parse the name of a table itself. Raises ``InvalidInputError`` for a branch or a system table."""
        name = cls.parse(text)
        if name.plain != name:
            message = f"{text!r} is a branch, a system table or a state of {name.plain}: name the table itself"
            raise InvalidInputError(message)
        return name

    @property
    def plain(self) -> TableName:
        """Name of the table itself, without branch, system table and state."""
        return replace(self, branch=None, system_table=None, state=None)

    def of_state(self, state: str) -> TableName:
        """Return the name of a state of this table. Raises ``InvalidInputError`` for an invalid id."""
        if not _STATE_ID.fullmatch(state):
            message = f"invalid id {state!r} of a state of {self.plain}; it has letters, digits and '-'"
            raise InvalidInputError(message)
        return replace(self.plain, state=state)

    @property
    def directory(self) -> str:
        """Directory below the warehouse: ``database.db/table``, as in Paimon."""
        return f"{self.database}.db/{self.table}"

    def place_in(self, table_directory: str) -> str:
        """Return the directory of what is named, given that of the table: a state is inside it."""
        if self.state is None:
            return table_directory
        return f"{self.states_in(table_directory)}/{self.state}"

    @staticmethod
    def states_in(table_directory: str) -> str:
        """Return the directory of a table's states, given that of the table."""
        return f"{table_directory}/{_STATES_DIRECTORY}"

    def __str__(self) -> str:
        """Format as ``database.table`` with its suffixes."""
        branch = "" if self.branch is None else f"${_BRANCH}{self.branch}"
        system_table = "" if self.system_table is None else f"${self.system_table}"
        state = "" if self.state is None else f"${_STATE}{self.state}"
        return f"{self.database}.{self.table}{branch}{system_table}{state}"


def database_name(text: str) -> str:
    """Return ``text`` if it is a valid database name. Raises ``InvalidInputError`` otherwise."""
    if not _PART.fullmatch(text):
        message = (
            f"invalid database name {text!r}; use letters, digits, '_' and '-' (it becomes a directory, and a part of "
            "Kafka topics' names)"
        )
        raise InvalidInputError(message)
    return text
