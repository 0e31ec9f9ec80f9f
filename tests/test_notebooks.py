"""The notebooks below docs/ run from the first cell to the last and print the output shown.

The cells are plain Python without magics, so that they run here without a Jupyter kernel.
"""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_it_shows(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        source, shown = "".join(cell["source"]), StringIO()
        with redirect_stdout(shown):
            exec(compile(source, notebook.name, "exec"), names)  # noqa: S102  the notebooks are ours
        assert shown.getvalue() == printed(cell), source


def printed(cell: dict[str, Any]) -> str:
    """Return the notebook's stored output of a cell."""
    assert {output["output_type"] for output in cell["outputs"]} <= {"stream"}, "print results, so that text shows them"
    return "".join("".join(output["text"]) for output in cell["outputs"])


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
