"""Storage of Great Expectations' results and pages: one project per table.

<docs>/<db>.<table>/gx/uncommitted/validations/.../snapshot-7/<time>/....json      one result
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
from airflow.sdk import BaseOperatorLink

from dynamic_table.versions.sdk_conf import conf

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
    """Return the directory of all projects: the connection's extra ``docs_directory``, or one in Airflow's home."""
    chosen = hook.extra.get("docs_directory")
    return Path(chosen) if chosen else Path(AIRFLOW_HOME) / "dynamic_table_docs"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDocs:
    """Stored results and pages of one table's validations."""

    root: Path
    table: str

    @property
    def project(self) -> Path:
        """Directory of the table's project."""
        return self.root / self.table

    @property
    def site(self) -> Path:
        """Directory of the table's pages."""
        return self.project / SITE

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the project for one validation at a time; delete all but the newest results at the end."""
        self.project.mkdir(parents=True, exist_ok=True)
        with (self.project / "turn.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
            for validations in (self.project / STORE / "validations", self.site / "validations"):
                runs = sorted(
                    {path.parent for path in validations.rglob("*.*") if path.suffix in (".json", ".html")},
                    key=lambda run: run.name,
                )
                for run in runs[:-RESULTS_MAX]:
                    shutil.rmtree(run)

    def page_of(self, run_name: str) -> str | None:
        """Return the path of a run's newest page, relative to the site; None if the run has no page."""
        pages = sorted(self.site.glob(f"validations/**/{run_name}/*/*.html"), key=lambda page: page.parent.name)
        return str(pages[-1].relative_to(self.site)) if pages else None

    def note_last(self, facts: Mapping[str, Any]) -> None:
        """Store the summary of a validation for the pages, replacing the previous one."""
        self.project.mkdir(parents=True, exist_ok=True)
        aside = self.project / f"last.{secrets.token_hex(4)}"
        aside.write_text(json.dumps(facts), encoding="utf-8")
        aside.replace(self.project / "last.json")

    def last(self) -> dict[str, Any] | None:
        """Return the summary of the last validation; None if the table was never validated."""
        try:
            noted = json.loads((self.project / "last.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return noted if isinstance(noted, dict) else None

    def url_of(self, page: str, connection: str) -> str:
        """Return the page's URL in the plugin."""
        base = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
        return f"{base}/dynamic-tables/docs/{quote(connection)}/{quote(self.table)}/{quote(page)}"


class DataDocsLink(BaseOperatorLink):
    """Button of a validation task that opens the results; the task stores the URL."""

    name = "Data Docs"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002  Airflow's signature
        """Return the URL; empty before the table has been checked."""
        return getattr(operator, "docs_url", None) or ""
