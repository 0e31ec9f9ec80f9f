"""Common options, which may be given before or after the command: ``dynamic-table tables -w /tables``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["GroupOfCommands", "with_leading_options"]

_VALUED = ("--warehouse", "-w", "--option", "-o", "--options-file", "-O")
_FLAGS = ("--json",)


class GroupOfCommands(TyperGroup):
    """Group of all commands, which accepts its own options anywhere on the command line."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # click's context
        """Parse the arguments as click does, after moving the group's options to the front."""
        return super().parse_args(ctx, with_leading_options(args))

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # click's context
        """Invoke as click does, but with ``--json`` report an invalid command line as JSON, like every other error."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Errors of the command line share no public class in typer, so recognise them by this method.
            message = getattr(error, "format_message", None)
            if message is None or not ctx.params.get("as_json"):
                raise
            document = {
                "error": "UsageError",
                "message": message(),
                "notes": [],
                "retryable": False,
                "committed": None,
            }
            typer.echo(json.dumps(document, ensure_ascii=False), err=True)
            raise typer.Exit(getattr(error, "exit_code", 2)) from error


def with_leading_options(arguments: Sequence[str]) -> list[str]:
    """Return ``arguments`` with the common options moved to the front, in order; none move from after ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    leading: list[str] = []
    others: list[str] = []
    given = iter(arguments[:end])
    for each in given:
        name, separator, _ = each.partition("=")
        if each in _FLAGS or (separator and name in _VALUED and name.startswith("--")):
            leading.append(each)
        elif each in _VALUED:
            leading += [each, *([value] if (value := next(given, None)) is not None else [])]
        else:
            others.append(each)
    return [*leading, *others, *arguments[end:]]
