"""Performance aims, each as a limit on the ratio of two figures of the same run."""

from __future__ import annotations

from dataclasses import dataclass

_RUST, _PLAIN, _OURS, _UNSYNCED = "pypaimon-rust", "plain parquet", "ours", "ours without fsync"


@dataclass(frozen=True, slots=True)
class Aim:
    """``system``'s seconds for ``work`` are at most ``at_most`` times ``peer``'s for ``peer_work``."""

    work: str
    system: str
    peer_work: str
    peer: str
    at_most: float


AIMS = (
    Aim("W1 load", _OURS, "W1 load", _RUST, 0.45),
    Aim("W1 load", _OURS, "W1 load", _PLAIN, 1.6),
    Aim("W2 upsert", _UNSYNCED, "W2 upsert", _RUST, 0.4),
    Aim("W2 upsert", _OURS, "W2 upsert", _RUST, 0.6),
    Aim("W3 scan", _OURS, "W3 scan", _RUST, 0.7),
    Aim("W3 filter", _OURS, "W3 filter", _RUST, 0.3),
    Aim("W3 look-up cold", _OURS, "W3 look-up cold", _RUST, 0.3),
    Aim("W3 look-up warm", _OURS, "W3 look-up warm", _RUST, 0.3),
    Aim("W4 compact", _OURS, "W1 load", _PLAIN, 1.8),
    Aim("W4 scan", _OURS, "W3 scan", _PLAIN, 1.1),
    Aim("W5 commit last", _OURS, "W5 commit first", _OURS, 1.0),
    Aim("W5 commit first", _UNSYNCED, "W5 commit first", _RUST, 1.0),
    Aim("W5 commit first", _OURS, "W5 commit first", _RUST, 2.0),
    Aim("W5 open and count", _OURS, "W5 open and count", _RUST, 0.05),
    Aim("W6 wall", _OURS, "W6 wall", _RUST, 1.0),
    Aim("W6 wall", _OURS, "W6 wall", "deltalake", 1.0),
)
