"""Metadata of the package that depends on where the repository is published: its URLs and the links of its description.

``repository`` in ``[tool.hatch.metadata.hooks.custom]`` of pyproject.toml is the one place for the address. The
description is README.md, shown on a package index, where links to files of the checkout would be dead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["PublishedAddress", "description", "project_urls"]

FILE = "{repository}/blob/v{version}/{path}"
"""The page of a file of a release, as GitHub and GitLab address it."""
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
DRAWING = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n\n?", re.MULTILINE)
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
WITHOUT_ADDRESS = "Files that are named here without a link are in the source distribution."


class PublishedAddress(MetadataHookInterface):
    """Fills in ``urls`` and ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set both, for the version that is built."""
        repository = str(self.config["repository"]).rstrip("/")
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = description(readme, repository, metadata["version"])
        metadata["urls"] = project_urls(repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def project_urls(repository: str, version: str) -> dict[str, str]:
    """The links of the package's page by their labels; none without an address."""
    if not repository:
        return {}
    page = _page_of(repository, version)
    return {
        "Repository": repository,
        "Documentation": f"{page('README.md')}#documentation",
        "Changelog": page("CHANGELOG.md"),
        "Issues": f"{repository}/issues",
    }


def description(readme: str, repository: str, version: str) -> str:
    """README.md as a package index can show it: without the drawing, links absolute or, without an address, text."""
    page = _page_of(repository, version)

    def link(found: re.Match[str]) -> str:
        label, path, anchor = found.groups()
        if repository:
            return f"[{label}]({page(path)}{anchor or ''})"
        return f"`{path}`" if label == path else f"{label} (`{path}`)"

    pieces = CODE.split(DRAWING.sub("", readme))
    text = "".join(piece if index % 2 else LINK.sub(link, piece) for index, piece in enumerate(pieces))
    return text if repository else f"{text}\n{WITHOUT_ADDRESS}\n"


def _page_of(repository: str, version: str) -> Callable[[str], str]:
    return lambda path: FILE.format(repository=repository, version=version, path=path)
