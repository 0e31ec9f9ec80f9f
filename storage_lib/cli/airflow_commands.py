"""Commands that set up Airflow. The installed package contains the plugin; the DAGs are copied from it."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from storage_lib.cli.context import reporting, settings_of
from storage_lib.cli.output import print_rows
from storage_lib.distribution import install_command
from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError

airflow = typer.Typer(no_args_is_help=True, help="Set up Airflow.")

_PLUGIN_PACKAGE = "dynamic_table"
_IN_THE_WHEEL, _IN_A_CHECKOUT = "shipped_dags", Path("..", "..", "dags")
_EXAMPLES = ("flights",)
"""Folders of examples, which are not installed."""


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    airflow.command("install-dags")(reporting(install_dags))
    app.add_typer(airflow, name="airflow")


def install_dags(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="Airflow's DAGs folder, or a new folder below it.")],
    *,
    replace: Annotated[bool, typer.Option(help="Overwrite files of these names that differ.")] = False,
) -> None:
    """Copy the DAGs that provision, stream, compact, re-process, drop and validate tables."""
    if directory.exists() and not directory.is_dir():
        message = f"{directory} is a file; name Airflow's DAGs folder, or a new folder below it"
        raise InvalidInputError(message)
    source = shipped_dags()
    files = sorted(path.relative_to(source) for path in source.rglob("*") if _is_installed(path, source))
    differing = [file for file in files if _differs(source / file, directory / file)]
    if differing and not replace:
        names = ", ".join(str(directory / file) for file in differing)
        message = f"nothing was copied, because these files exist and differ: {names}; use --replace to overwrite them"
        raise AlreadyExistsError(message)

    for file in files:
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, directory / file)
    print_rows([{"file": str(directory / file)} for file in files], as_json=settings_of(context).as_json)


def shipped_dags() -> Path:
    """Return the folder of the DAGs: inside the installed package, or ``dags`` of an editable checkout.

    Raises ``NotFoundError`` if neither exists.
    """
    spec = find_spec(_PLUGIN_PACKAGE)
    for package in (spec.submodule_search_locations or ()) if spec else ():
        for place in (Path(package) / _IN_THE_WHEEL, Path(package) / _IN_A_CHECKOUT):
            if place.is_dir():
                return place.resolve()
    message = f"the DAGs are not installed: {install_command('airflow')}"
    raise NotFoundError(message)


def _is_installed(path: Path, source: Path) -> bool:
    folders = path.relative_to(source).parts[:-1]
    return path.is_file() and not {"__pycache__", *_EXAMPLES}.intersection(folders)


def _differs(source: Path, target: Path) -> bool:
    return target.exists() and (not target.is_file() or target.read_bytes() != source.read_bytes())
