"""Limit of rejected records (``source.reject-max``), above which a reader stops: the source or the table is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.source_options import REJECT_MAX

_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")
_FEW = 10
"""Records that may be rejected whatever their share: the share of a few says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectLimit:
    """At most ``share`` of the records of one run, or ``count_per_hour`` records of an hour; None: any number."""

    share: float | None = None
    count_per_hour: int | None = None

    @classmethod
    def parse(cls, text: str | None) -> RejectLimit:
        """Parse ``5 %`` or a number of records per hour; ``InvalidInputError`` for other text."""
        if text is None:
            return cls()
        found = _FORM.fullmatch(text)
        if found is not None and found[2] and float(found[1]) <= 100:
            return cls(share=float(found[1]) / 100)
        if found is not None and not found[2] and found[1].isdigit():
            return cls(count_per_hour=int(found[1]))
        message = f"option {REJECT_MAX} is {text!r}; give a share such as '5 %', or a number of records per hour"
        raise InvalidInputError(message)

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return self.share is not None or self.count_per_hour is not None

    @property
    def counts_hours(self) -> bool:
        """Whether the records of the last hour have to be known."""
        return self.count_per_hour is not None

    def excess(self, *, rejected: int, records: int, in_last_hour: int) -> str | None:
        """Return what exceeds the limit, if anything: ``rejected`` of the ``records`` of a run, or those of an hour."""
        if self.share is not None and rejected > max(_FEW, self.share * records):
            return f"{rejected} of {records} records of this run, more than {100 * self.share:.3g} %"
        if self.count_per_hour is not None and in_last_hour > self.count_per_hour:
            return f"{in_last_hour} records in the last hour, more than {self.count_per_hour}"
        return None
