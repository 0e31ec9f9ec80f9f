"""MkDocs hooks of the documentation site (mkdocs.yml): pages from outside docs/ and from notebooks, and links to them.

README.md is the site's home. A link to another file of the checkout leads to a copy of it below ``files/``; a link to
a folder becomes plain text, because the site has no listing of folders. A notebook becomes a page of the same name.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "SECURITY.md": "security-policy.md",
    "benchmarks/README.md": "benchmarks.md",
    "dbt/README.md": "dbt.md",
    "docker/README.md": "docker.md",
}
"""Pages outside docs/, and their paths on the site."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the checkout's root, and the files that pages link to."""
    for origin, place in PAGES.items():
        text = (CHECKOUT / origin).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=rewritten(text, CHECKOUT / origin, place)))
    for target in sorted(linked_files(files)):
        content = (CHECKOUT / target).read_bytes()
        files.append(File.generated(config, f"files/{target}", content=content))
    files.append(File.generated(config, "decisions/index.md", content=decisions_index()))
    for notebook in sorted(DOCS.rglob("*.ipynb")):
        place = notebook.relative_to(DOCS).with_suffix(".md").as_posix()
        files.append(File.generated(config, place, content=notebook_page(notebook)))
    return files


def notebook_page(notebook: Path) -> str:
    """Return a notebook's cells and their printed output as a page, with a link to the notebook."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        outputs = ("".join(output["text"]).rstrip() for output in cell.get("outputs", ()))
        parts.extend(f"```text\n{output}\n```" for output in outputs)
    # HTML, because MkDocs would rewrite a Markdown link to the notebook's page.
    parts.append(f'<a href="../{notebook.name}" download>Download this page as a notebook</a>')
    return "\n\n".join(parts) + "\n"


def decisions_index() -> str:
    """Return a page that lists the decisions by title."""
    found = []
    for page in sorted((DOCS / "decisions").glob("*.md")):
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        found.append(f"* [{title}]({page.name})\n")
    return f"# Decisions\n\nWhy the design is as it is, one decision per page.\n\n{''.join(found)}"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite links to files outside docs/ to their paths on the site."""
    place = page.file.src_uri
    return markdown if page.file.generated_by else rewritten(markdown, DOCS / place, place)


def linked_files(files: Files) -> set[str]:
    """Return the files outside docs/ that pages link to, as paths in the checkout."""
    origins = [CHECKOUT / each for each in PAGES]
    origins += [DOCS / each.src_uri for each in files.documentation_pages() if (DOCS / each.src_uri).exists()]
    found = set()
    for origin in origins:
        for _, _, target, _ in LINK.findall(origin.read_text(encoding="utf-8")):
            path = path_in_checkout(origin, target)
            if path not in PAGES and not path.startswith("docs/") and (CHECKOUT / path).is_file():
                found.add(path)
    return found


def rewritten(text: str, origin: Path, place: str) -> str:
    """Return a page's text with its links rewritten for ``place`` on the site; leaves code blocks unchanged."""

    def link(found: re.Match[str]) -> str:
        mark, label, target, anchor = found.groups()
        path = path_in_checkout(origin, target)
        if (CHECKOUT / path).is_dir():
            return label
        if path in PAGES:
            there = PAGES[path]
        elif path.startswith("docs/"):
            there = path.removeprefix("docs/").removesuffix(".ipynb")
            there += ".md" if path.endswith(".ipynb") else ""
        elif (CHECKOUT / path).is_file():
            there = f"files/{path}"
        else:
            return found[0]  # MkDocs reports the broken link
        return f"{mark}[{label}]({os.path.relpath(there, Path(place).parent)}{anchor or ''})"

    pieces = CODE.split(text)
    return "".join(piece if index % 2 else LINK.sub(link, piece) for index, piece in enumerate(pieces))


def path_in_checkout(origin: Path, target: str) -> str:
    """Return the target of a page's relative link as a path in the checkout."""
    return os.path.relpath(origin.parent / target, CHECKOUT)
