"""Configuration of the pages of a table's Great Expectations project: rendered by our views, which escape all texts."""

from __future__ import annotations

from typing import Any

__all__ = ["use_escaped_views"]

SITE = "local_site"
VIEWS = "dynamic_table.quality.escaped_pages"
SECTIONS = ("expectations", "validations", "profiling")


def use_escaped_views(context: Any) -> bool:
    """Configure the project's pages; True if they were configured otherwise, so that all have to be rendered again."""
    view = {"module_name": VIEWS, "class_name": "EscapedPageView"}
    wanted = {
        "site_section_builders": {name: {"view": view} for name in SECTIONS},
        "site_index_builder": {
            "class_name": "DefaultSiteIndexBuilder",
            "view": {"module_name": VIEWS, "class_name": "EscapedIndexView"},
        },
    }
    site = dict(context.variables.data_docs_sites[SITE])
    if all(site.get(key) == value for key, value in wanted.items()):
        return False
    context.update_data_docs_site(site_name=SITE, site_config={**site, **wanted})
    return True
