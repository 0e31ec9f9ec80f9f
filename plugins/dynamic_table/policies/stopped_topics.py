"""The failure of a task because some topics of a sync stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamic_table.versions.sdk_exceptions import AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TopicsStoppedError", "stopped_topics"]


class TopicsStoppedError(AirflowFailException):
    """Some topics stopped at errors that another try would meet again; all others were read up to their ends."""


def stopped_topics(errors: Mapping[str, str]) -> str:
    """Return what is said of topics that stopped, each with its error."""
    each = "\n".join(f"{topic}: {error}" for topic, error in errors.items())
    return f"{len(errors)} topics stopped, the others were read up to their ends:\n{each}"
