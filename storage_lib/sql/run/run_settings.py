"""SET and RESET."""

from __future__ import annotations

from storage_lib.sql.state.result import Result, rows_of
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.statements.show_describe import ResetOption, SetOption


def run_set(state: SessionState, statement: SetOption) -> Result:
    """Set a setting, or show one or all settings."""
    if statement.key is None or statement.value is None:
        return Result(rows=rows_of(("key", "value"), list(state.settings.shown(statement.key, state.spark))))
    state.settings.set(statement.key, statement.value, state.spark)
    return Result(message=f"{statement.key} is set")


def run_reset(state: SessionState, statement: ResetOption) -> Result:
    """Reset one setting, or all, to the defaults."""
    state.settings.reset(statement.key, state.spark)
    return Result(message="the settings are reset" if statement.key is None else f"{statement.key} is reset")
