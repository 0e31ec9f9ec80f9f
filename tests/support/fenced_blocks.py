"""Parser of a Markdown page's fenced blocks, section by section, so that the examples can be run.

A comment may precede a block: ``<!-- runs with: kafka spark -->`` names the services that the section needs, ``<!--
prints -->`` marks the expected output of the blocks before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"(?:<!-- ([^>]+) -->\n)?^```([a-z]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEEDS = "runs with: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block; ``comment`` is the text of the comment above it."""

    language: str
    text: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Content of one second-level heading."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def needs(self) -> frozenset[str]:
        """Services that the section's blocks need."""
        return frozenset(
            word
            for block in self.blocks
            if block.comment.startswith(_NEEDS)
            for word in block.comment.removeprefix(_NEEDS).split()
        )

    @property
    def program(self) -> str:
        """All Python blocks as one program; empty if there are none."""
        return "\n".join(block.text for block in self.blocks if block.language == "python")

    @property
    def prints(self) -> tuple[str, ...]:
        """Expected output of the program, piece by piece."""
        return tuple(block.text for block in self.blocks if block.comment == "prints")


def sections(page: Path) -> list[Section]:
    """Return the sections of a page, in order; text before the first heading is ignored."""
    titles_and_texts = _HEADING.split(page.read_text())[1:]
    return [
        Section(title=title, blocks=tuple(_blocks(text)))
        for title, text in zip(titles_and_texts[::2], titles_and_texts[1::2], strict=True)
    ]


def _blocks(text: str) -> list[Block]:
    return [
        Block(language=language, text=body, comment=(comment or "").strip())
        for comment, language, body in _BLOCK.findall(text)
    ]
