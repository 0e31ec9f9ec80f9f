"""Where Great Expectations keeps its results and the pages that it makes of them: a project of its own per table.

<docs>/<db>.<table>/gx/uncommitted/validations/.../snapshot-7/<time>/....json      the result
<docs>/<db>.<table>/last.json                                                     the last validation, for the pages
<docs>/<db>.<table>/gx/uncommitted/data_docs/local_site/.../snapshot-7/...html     the same as a page
"""

from __future__ import annotations

import fcntl
import json
import secrets
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow.configuration import AIRFLOW_HOME
from airflow.sdk import BaseOperatorLink, conf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

    from dynamic_table.hook import DynamicTableHook

__all__ = ["DataDocs", "DataDocsLink", "docs_root"]

STORE = Path("gx", "uncommitted")
SITE = STORE / "data_docs" / "local_site"
RESULTS_MAX = 100


def docs_root(hook: DynamicTableHook) -> Path:
    """Return the directory of all projects: the connection's extra ``docs_directory``, else one in Airflow's home."""
    chosen = hook.extra.get("docs_directory")
    return Path(chosen) if chosen else Path(AIRFLOW_HOME) / "dynamic_table_docs"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDocs:
    """What is kept of one table's validations."""

    root: Path
    table: str

    @property
    def project(self) -> Path:
        """The table's project."""
        return self.root / self.table

    @property
    def site(self) -> Path:
        """Its pages."""
        return self.project / SITE

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let one validation at a time write the project, and leave no more than the newest results."""
        self.project.mkdir(parents=True, exist_ok=True)
        with (self.project / "turn.lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield
            for kept in (self.project / STORE / "validations", self.site / "validations"):
                runs = sorted(
                    {path.parent for path in kept.rglob("*.*") if path.suffix in (".json", ".html")},
                    key=lambda run: run.name,
                )
                for run in runs[:-RESULTS_MAX]:
                    shutil.rmtree(run)

    def page_of(self, run_name: str) -> str | None:
        """Return the newest page of a run, relative to the site; None if there is none."""
        pages = sorted(self.site.glob(f"validations/**/{run_name}/*/*.html"), key=lambda page: page.parent.name)
        return str(pages[-1].relative_to(self.site)) if pages else None

    def note_last(self, facts: Mapping[str, Any]) -> None:
        """Keep what the pages show of a validation, in place of the one before."""
        self.project.mkdir(parents=True, exist_ok=True)
        aside = self.project / f"last.{secrets.token_hex(4)}"
        aside.write_text(json.dumps(facts), encoding="utf-8")
        aside.replace(self.project / "last.json")

    def last(self) -> dict[str, Any] | None:
        """Return what was noted last; None if the table was never validated."""
        try:
            noted = json.loads((self.project / "last.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return noted if isinstance(noted, dict) else None

    def url_of(self, page: str, connection: str) -> str:
        """Return where the plugin shows the page."""
        base = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
        return f"{base}/dynamic-tables/docs/{quote(connection)}/{quote(self.table)}/{quote(page)}"


class DataDocsLink(BaseOperatorLink):
    """The button of a validation's task that opens what was found; the task itself says where that is."""

    name = "Data Docs"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002  Airflow's signature
        """Return it; nothing before the table has been checked."""
        return getattr(operator, "docs_url", None) or ""
