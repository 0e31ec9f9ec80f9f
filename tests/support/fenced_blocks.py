"""The fenced blocks of a Markdown page, section by section, so that what a page shows can be run.

Above a block may stand a comment: ``<!-- runs with: kafka spark -->`` names what the section needs,
``<!-- prints -->`` marks what the blocks before it print.
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
    """One fenced block; ``comment`` is what stands in the comment above it."""

    language: str
    text: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What stands under one second-level heading."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def needs(self) -> frozenset[str]:
        """The services that the section's blocks need."""
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
        """What the program is said to print, piece by piece."""
        return tuple(block.text for block in self.blocks if block.comment == "prints")


def sections(page: Path) -> list[Section]:
    """The sections of a page, in order; what stands before the first heading is left out."""
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
