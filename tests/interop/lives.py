"""Steps on the tables of the interop suite, and the engines that run them. All engines read after each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tests.interop.table_cases import TableCase

Actor = Literal["ours", "java", "rust", "pypaimon", "flink 1.20", "flink 2.0"]
Verb = Literal[
    "create",
    "append",
    "update",
    "delete",
    "tag",
    "read tag",
    "compact",
    "compact what is due",
    "overwrite partition",
    "drop partition",
    "expire",
    "add column",
]
ACTORS: tuple[Actor, ...] = get_args(Actor)
FLINKS: tuple[Actor, ...] = ("flink 1.20", "flink 2.0")
OF_PARTITIONS = frozenset({"overwrite partition", "drop partition"})


@dataclass(frozen=True)
class Step:
    """One commit, read or maintenance operation of one engine."""

    actor: Actor
    verb: Verb

    def __str__(self) -> str:
        return f"{self.actor}: {self.verb}"


def _life(text: str) -> tuple[Step, ...]:
    steps = []
    for line in text.strip().splitlines():
        actor, verbs = line.split(":")
        steps += [Step(actor.strip(), verb.strip()) for verb in verbs.split(",")]  # type: ignore[arg-type]
    return tuple(steps)


LIVES: dict[str, tuple[Step, ...]] = {
    "made by us": _life("""
        ours: create, append, update, delete, tag, compact, update, compact what is due
        ours: overwrite partition, read tag, drop partition, append, expire
        rust: append
        pypaimon: append
        java: update, delete, compact
        ours: update, compact what is due
        java: append, expire
    """),
    "made by Java": _life("""
        java: create, append, update, delete, tag, compact, update
        ours: update, delete, read tag
        pypaimon: append
        rust: append
        ours: compact
        java: update, overwrite partition
        ours: overwrite partition, expire
        java: drop partition
        ours: append, compact
    """),
    "made by pypaimon": _life("""
        pypaimon: create, append, update
        ours: update, compact
        pypaimon: append
        java: update, compact
        rust: append
        ours: append, compact
    """),
    "made by Flink": _life("""
        flink 1.20: create, append, update
        ours: update, delete, compact
        flink 2.0: append, delete, tag, overwrite partition
        ours: update, read tag, compact what is due
        flink 1.20: compact
        ours: overwrite partition
        flink 2.0: update, drop partition, expire
        ours: append, compact
    """),
}


def actors_of(life: str) -> tuple[Actor, ...]:
    """Return the engines of a history: both Flinks have one of their own, without the Python libraries."""
    if life == "made by Flink":
        return ("ours", "java", *FLINKS)
    return tuple(actor for actor in ACTORS if actor not in FLINKS)


def steps_of(life: str, case: TableCase) -> tuple[Step, ...]:
    """Return the history of a table of this kind, without unsupported steps."""
    left_out = case.without | (frozenset() if case.is_partitioned else OF_PARTITIONS)
    return tuple(step for step in LIVES[life] if step.verb not in left_out and step.actor not in case.not_by)
