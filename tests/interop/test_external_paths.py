"""Tables with external data directories, written and cleaned up alternately by this library, Java and Flink."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from storage_lib import SetOption
from storage_lib.file_store.cleanup.external_claims import CLAIM_NAME
from storage_lib.schema.options.external_paths import PATHS_OPTION, STRATEGY_OPTION
from storage_lib.schema.types.row_kind import RowKind
from tests.interop.engines import IDENTIFIER, TABLE, Engine, FlinkSql, Java, Ours, Place, Rows
from tests.interop.one_life import DAYS
from tests.interop.table_cases import TableCase
from tests.support.deep_tests import each_value_once, thinned
from tests.support.flink import Flink
from tests.support.line_servant import RefusedError
from tests.support.paimon_core import PaimonCore
from tests.support.shared_table import folded, sorted_rows

pytestmark = pytest.mark.integration

DAY, OTHER = DAYS
LONG_AGO = 1_577_836_800
COLUMNS = {"n": ("BIGINT", [1])}
KINDS = {
    "plain": {},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "lookup": {"changelog-producer": "lookup"},
    "full compaction": {"changelog-producer": "full-compaction"},
    "dynamic buckets": {"bucket": "-1"},
}

LIVES = [
    *(("java", maker, kind) for maker in ("ours", "theirs") for kind in KINDS),
    ("flink_2_0", "ours", "lookup"),
    ("flink_1_20", "ours", "deletion vectors"),
    ("flink_1_20", "theirs", "lookup"),
    ("flink_2_0", "theirs", "deletion vectors"),
    ("flink_2_0", "theirs", "dynamic buckets"),
]
"""Every kind with the Java core, which is quick and the same code; with Flink only those whose jobs differ."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)


@pytest.fixture(params=thinned(["java", "flink_2_0", "flink_1_20"]))
def theirs(request: pytest.FixtureRequest) -> Engine:
    if request.param == "java":
        return Java(request.getfixturevalue("paimon_core"))
    return FlinkSql(request.getfixturevalue(request.param))


def directories(place: Place, *names: str) -> list[Path]:
    return [place.scratch / name for name in names]


def case(place: Place, names: list[str], *, strategy: str = "round-robin", **options: str) -> TableCase:
    outside = {
        PATHS_OPTION: ",".join(f"file://{path}" for path in directories(place, *names)),
        STRATEGY_OPTION: strategy,
    }
    return TableCase(columns=COLUMNS, options={"bucket": "1", **outside, **options})


def data_in(*roots: Path) -> set[Path]:
    return {path for root in roots for path in root.rglob("*.parquet")}


def referenced(place: Place) -> set[Path]:
    table = place.ours()
    store = table.context.file_store
    named = store.references.of_table().data
    return {Path(path) for path in named if path.endswith(".parquet")}


class Both:
    """Two engines alternately; after each action both must read the content of a dictionary."""

    def __init__(self, place: Place, *engines: Engine) -> None:
        self.place = place
        self.engines = engines
        self.rows: dict[tuple[str, int], int] = {}

    def write(self, engine: Engine, *rows: tuple[str, int, int]) -> None:
        engine.write(self.place, rows, [RowKind.INSERT] * len(rows))
        self.rows |= {(day, key): value for day, key, value in rows}
        self.check()

    def check(self) -> None:
        expected: Rows = sorted_rows((day, key, value) for (day, key), value in self.rows.items())
        for engine in self.engines:
            assert sorted_rows(engine.read(self.place, {})) == expected, engine
        assert data_in(self.place.warehouse) == set()


@pytest.mark.parametrize(
    ("theirs", "maker", "kind"),
    thinned(each_value_once(LIVES), keep=lambda life: life.values[0] != "flink_1_20"),
    indirect=["theirs"],
)
def test_both_write_compact_and_clean_up_a_table_with_its_data_outside(
    place: Place, theirs: Engine, maker: str, kind: str
) -> None:
    ours = Ours()
    made_by = ours if maker == "ours" else theirs
    made_by.create(place, case(place, ["one", "two"], **KINDS[kind]))
    both = Both(place, ours, theirs)
    both.write(made_by, (DAY, 1, 1), (DAY, 2, 1), (OTHER, 1, 1))
    both.write(ours, (DAY, 1, 2), (OTHER, 2, 2))
    both.write(theirs, (DAY, 2, 3), (OTHER, 3, 3))
    ours.compact(place, full=True)
    both.check()
    both.write(theirs, (DAY, 1, 4))
    both.write(ours, (OTHER, 1, 5))
    theirs.compact(place, full=True)
    both.check()
    theirs.expire(place)
    both.check()
    both.write(ours, (DAY, 1, 6))
    ours.overwrite(place, [(OTHER, 7, 7)], OTHER)
    both.rows = {key: value for key, value in both.rows.items() if key[0] != OTHER} | {(OTHER, 7): 7}
    both.check()
    theirs.overwrite(place, [(DAY, 8, 8)], DAY)
    both.rows = {(DAY, 8): 8, (OTHER, 7): 7}
    both.check()
    ours.compact(place, full=True)
    ours.expire(place)
    both.check()

    outside = directories(place, "one", "two")
    # An overwrite by Paimon leaves its changelog file behind, wherever the data is.
    left = data_in(*outside) - referenced(place)
    assert {path.name.partition("-")[0] for path in left} <= {"changelog"}, "what no snapshot needs is gone"
    if maker == "ours":
        assert place.ours().maintenance.remove_orphan_files(older_than=timedelta(0)).paths == tuple(
            sorted(map(str, left))
        )
    assert data_in(*outside) >= referenced(place)
    place.catalog.drop_table(IDENTIFIER)
    assert data_in(*outside) <= (left if maker == "theirs" else set())


@pytest.mark.parametrize("strategy", ["round-robin", "specific-fs", "entropy-inject"])
def test_each_strategy_of_theirs_is_followed(
    place: Place, theirs: Engine, strategy: str, request: pytest.FixtureRequest
) -> None:
    ours = Ours()
    theirs.create(place, case(place, ["one"], strategy=strategy, **{f"{PATHS_OPTION}.specific-fs": "file"}))
    if strategy == "entropy-inject" and "flink_1_20" in request.node.name:
        # Paimon 1.3, in this Flink, does not know the option.
        with pytest.raises(RefusedError, match="Could not parse value 'entropy-inject'"):
            theirs.write(place, [(DAY, 1, 1)], [RowKind.INSERT])
        return
    both = Both(place, ours, theirs)

    both.write(theirs, (DAY, 1, 1))
    both.write(ours, (DAY, 2, 2))
    ours.compact(place, full=True)
    both.check()
    ours.expire(place)
    both.write(theirs, (DAY, 1, 3))

    assert data_in(*directories(place, "one")) == referenced(place)


def test_a_root_path_is_written_to_by_them(place: Place, theirs: Engine) -> None:
    ours = Ours()
    root = place.scratch / "root"
    ours.create(place, TableCase(columns=COLUMNS, options={"bucket": "1", "file.root-path": str(root)}))
    both = Both(place, ours, theirs)

    both.write(theirs, (DAY, 1, 1))
    both.write(ours, (DAY, 2, 1))

    assert len(data_in(root / "db.db" / "t")) == 2


def test_a_directory_may_be_changed_and_files_stay(place: Place, theirs: Engine) -> None:
    ours = Ours()
    theirs.create(place, case(place, ["one"]))
    both = Both(place, ours, theirs)
    both.write(theirs, (DAY, 1, 1))
    place.ours().alter(SetOption(PATHS_OPTION, f"file:{place.scratch / 'two'}"))
    both.write(ours, (DAY, 2, 1))
    both.write(theirs, (DAY, 3, 1))
    assert (len(data_in(place.scratch / "one")), len(data_in(place.scratch / "two"))) == (1, 2)

    ours.compact(place, full=True)
    ours.expire(place)

    both.check()
    assert data_in(*directories(place, "one", "two")) == referenced(place)
    place.catalog.drop_table(IDENTIFIER)
    assert data_in(*directories(place, "one", "two")) == set()


def test_their_clean_up_keeps_our_files_and_ours_keeps_theirs(place: Place, flink_2_0: Flink) -> None:
    ours, theirs = Ours(), FlinkSql(flink_2_0)
    ours.create(place, case(place, ["one"]))
    both = Both(place, ours, theirs)
    both.write(ours, (DAY, 1, 1))
    both.write(theirs, (DAY, 2, 1))
    (bucket,) = {path.parent for path in data_in(place.scratch / "one")}
    lost = bucket / "data-lost-0.parquet"
    lost.write_bytes(b"x")

    for path in data_in(place.scratch / "one"):
        os.utime(path, (LONG_AGO, LONG_AGO))

    call = f"CALL sys.remove_orphan_files(`table` => '{IDENTIFIER}', older_than => '2021-01-01 00:00:00')"
    flink_2_0.execute(place.warehouse, call)

    both.check()
    assert not lost.exists()
    assert (place.scratch / "one" / CLAIM_NAME).exists()
    lost.write_bytes(b"x")
    assert place.ours().maintenance.remove_orphan_files(older_than=timedelta(0)).paths == (str(lost),)
    both.check()


def test_a_drop_by_flink_takes_our_directory_away(place: Place, flink_2_0: Flink) -> None:
    ours, theirs = Ours(), FlinkSql(flink_2_0)
    ours.create(place, case(place, ["one"]))
    Both(place, ours, theirs).write(ours, (DAY, 1, 1))

    flink_2_0.execute(place.warehouse, f"DROP TABLE {TABLE}")

    assert not (place.scratch / "one").exists()
    ours.create(place, case(place, ["one"]))


@pytest.mark.parametrize("producer", ["input", "lookup", "full-compaction"])
def test_their_streams_read_our_changelog_files_outside(place: Place, paimon_core: PaimonCore, producer: str) -> None:
    ours, theirs = Ours(), Java(paimon_core)
    ours.create(place, case(place, ["one", "two"], **{"changelog-producer": producer}))
    both = Both(place, ours, theirs)
    both.write(ours, (DAY, 1, 1), (DAY, 2, 1))
    both.write(theirs, (DAY, 1, 2))
    both.write(ours, (DAY, 2, 3))
    ours.compact(place, full=True)

    changes = paimon_core.stream(place.warehouse, IDENTIFIER, place.schema)
    told = folded(changes, key_count=2, strict=producer != "input")
    assert sorted_rows(told.values()) == [(DAY, 1, 2), (DAY, 2, 3)]


@pytest.mark.parametrize("expiring", [{}, {"snapshot.num-retained.max": "100", "snapshot.num-retained.min": "1"}])
def test_a_rollback_restores_files_outside_and_they_go_on(
    place: Place, theirs: Engine, expiring: dict[str, str]
) -> None:
    """If other engines expire snapshots, restored files are copied, also in the external directory."""
    ours = Ours()
    ours.create(place, case(place, ["one", "two"], **expiring))
    both = Both(place, ours, theirs)
    both.write(ours, (DAY, 1, 1), (OTHER, 1, 1))
    both.write(theirs, (DAY, 2, 2))
    before = dict(both.rows)
    place.ours().tags.create("before")
    both.write(ours, (DAY, 1, 3))
    theirs.compact(place, full=True)

    place.ours().rollback_to(tag="before")
    both.rows = before
    both.check()
    theirs.compact(place, full=True)
    both.check()
    both.write(theirs, (DAY, 3, 3))
    place.ours().tags.delete("before")
    theirs.expire(place)
    both.check()
    ours.compact(place, full=True)
    ours.expire(place)
    both.check()

    assert data_in(*directories(place, "one", "two")) == referenced(place)
