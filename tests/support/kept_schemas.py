"""Schema registry in memory, for codecs."""

from __future__ import annotations

from storage_lib.errors import NotFoundError


class KeptSchemas:
    """Assigns ids from 1 in order of registration; the same schema gets the same id."""

    url = "nowhere"

    def __init__(self) -> None:
        self.schemas: list[str] = []
        self.subjects: dict[str, list[int]] = {}

    def register(self, subject: str, schema: str) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def schema(self, number: int) -> str:
        if not 1 <= number <= len(self.schemas):
            message = f"the schema registry has no schema of number {number}"
            raise NotFoundError(message)
        return self.schemas[number - 1]
