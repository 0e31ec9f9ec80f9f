"""Parts of Spark that not every supported version has; everything else asks for them by these names.

A part that a version lacks is either replaced here, or what needs it is refused with the version that has it.
"""

from __future__ import annotations

from enum import Enum

import pyspark

from storage_lib.errors import InvalidInputError
from storage_lib.spark.versions.fitting_spark import minor_version

__all__ = ["SparkFeature", "installed_since"]


def installed_since(major: int, minor: int) -> bool:
    """Return whether the installed Spark is of this version or a newer one. For the modules of this folder."""
    return minor_version(pyspark.__version__) >= (major, minor)


class SparkFeature(Enum):
    """A part of Spark: the first version that has it, and the features of this library that need it."""

    ADMISSION_CONTROL = (4, 2), "a limit of the rows of a micro-batch"
    REAL_TIME = (4, 2), "a real-time stream"
    REAL_TIME_SHUFFLES = (4, 3), "a real-time stream that aggregates or repartitions"
    TIME = (4, 1), "a column of type TIME"
    PIPELINES = (4, 1), "a declarative pipeline"
    DOUBLED_QUOTES = (4, 1), "a doubled quote that stands for one, as in 'it''s'"

    @property
    def since(self) -> str:
        """The first version that has the part."""
        return ".".join(map(str, self.value[0]))

    @property
    def purpose(self) -> str:
        """What this library does with it."""
        return self.value[1]

    @property
    def is_here(self) -> bool:
        """Whether the installed version has the part."""
        return installed_since(*self.value[0])

    def require(self, where: str, advice: str) -> None:
        """Raise ``InvalidInputError`` if the installed version lacks the part; ``where`` is what asked for it."""
        if not self.is_here:
            message = (
                f"{where}: {self.purpose} needs Spark {self.since}, and pyspark {pyspark.__version__} is installed. "
                f"{advice}"
            )
            raise InvalidInputError(message)
