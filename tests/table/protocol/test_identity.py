"""Identities of commits, with which each commit takes effect once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from storage_lib import InvalidInputError
from tests.support.orders_table import content, orders, rows


@pytest.mark.parametrize("identifier", ["x", 1.5, -1, 1 << 63, (1 << 63) - 1, True])
def test_what_is_no_number_of_a_commit_is_refused_before_anything_is_written(identifier: Any) -> None:
    table = orders()

    with pytest.raises(InvalidInputError, match="commit_identifier"):
        table.append(rows("+I a 1 10"), commit_user="job", commit_identifier=identifier)

    assert table.inspect.snapshots().num_rows == 0
    table.append(rows("+I a 1 10"), commit_user="job", commit_identifier=np.int64(0))  # type: ignore[arg-type]
    assert content(table) == {"a 1 10"}


def test_a_driver_that_hands_in_a_bad_number_loses_its_write_and_its_lease() -> None:
    table = orders()
    write_context = table.new_write().begin(commit_user="driver")
    with table.new_write().open_task(write_context) as write:
        write.write(rows("+I a 1 10"))
        message = write.prepare_commit()

    with pytest.raises(InvalidInputError, match="commit_identifier"):
        table.new_write().commit(write_context, [message], "seven")  # type: ignore[arg-type]

    assert table.context.leases.holder() is None
    table.append(rows("+I a 1 11"), commit_user="driver", commit_identifier=7)
    assert content(table) == {"a 1 11"}


@pytest.mark.parametrize("user", [5, ""])
def test_a_user_that_is_no_text_is_refused_before_anything_is_written(user: Any) -> None:
    table = orders()

    with pytest.raises(InvalidInputError, match="commit_user"):
        table.append(rows("+I a 1 10"), commit_user=user)
    with pytest.raises(InvalidInputError, match="commit_user"):
        table.new_write().begin(commit_user=user)

    assert table.inspect.snapshots().num_rows == 0
    assert table.context.leases.holder() is None
