"""The demo's results as text."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["DemoReport"]


@dataclass(kw_only=True)
class DemoReport:
    """Results, collected step by step; ``answers`` by reader, then by origin: (flights that arrived, average delay)."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    ages: dict[str, dict[str, float]] = field(default_factory=dict)
    levels: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    answers: dict[str, dict[str, tuple[int, float]]] = field(default_factory=dict)
    ages_of_delays: dict[str, dict[str, float]] = field(default_factory=dict)
    differing_rows: dict[str, tuple[int, int]] = field(default_factory=dict)

    def line(self, name: str, value: str) -> None:
        """Add one fact."""
        self.lines.append((name, value))

    @property
    def agrees(self) -> bool:
        """Whether all readers gave the same answer and all rows are as expected."""
        answers = list(self.answers.values())
        return set(self.differing_rows.values()) <= {(0, 0)} and all(answer == answers[0] for answer in answers)

    def text(self) -> str:
        """Return the report as text for a terminal."""
        parts = ["", "Table"]
        parts += [f"  {name:<14}{value}" for name, value in self.lines]
        parts += ["", "Files by level (files, rows)"]
        for when, levels in self.levels.items():
            described = ", ".join(f"level {level}: {files} ({rows:,})" for level, (files, rows) in levels.items())
            parts.append(f"  {when:<20}{described}")
        parts += ["", "Age of a change when it became readable (source topic -> sink -> table's log)"]
        for label, quantiles in self.ages.items():
            parts.append(f"  {label:<24}" + "   ".join(f"{name} {age:.2f} s" for name, age in quantiles.items()))
        parts += ["", "Age of the materialized table demo.delays (its oldest missing commit of a source)"]
        for label, quantiles in self.ages_of_delays.items():
            parts.append(f"  {label:<24}" + "   ".join(f"{name} {age:.2f} s" for name, age in quantiles.items()))
        parts += ["", "Average arrival delay in minutes by origin (flights)"]
        for reader, answer in self.answers.items():
            described = "   ".join(f"{origin} {delay:.4f} ({count:,})" for origin, (count, delay) in answer.items())
            parts.append(f"  {reader:<28}{described}")
        verdict = (
            "All answers agree, and every row and column is as expected." if self.agrees else "THE ANSWERS DIFFER."
        )
        parts.append("")
        for table, (missing, surplus) in self.differing_rows.items():
            parts.append(f"  {table:<28}rows missing {missing}, rows too many {surplus}")
        parts += ["", verdict, ""]
        return "\n".join(parts)
