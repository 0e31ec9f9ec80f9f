"""The demo checks its requirements first, leaves other programs' resources alone, and reports differences."""

from __future__ import annotations

import ast
import socket
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from polars.testing import assert_frame_equal

import demo
from delay_table import RENAMED, STATEMENT, delays_of
from demo_answers import answer_of_duckdb, answer_of_iceberg, answer_of_paimon, answer_of_truth, differences
from demo_settings import DemoError, Settings, only_demo
from flights.nyc_flights import airlines, flights, flights_of_day, weather
from storage_lib import UnavailableError, open_catalog
from table_follower import TableFollower
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from storage_lib import DynamicTable

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("origin", pa.string()),
        pa.field("arr_delay", pa.int32()),
    ]
)
ROWS = pa.table({"id": [1, 2, 3, 4], "origin": ["EWR", "EWR", "JFK", "JFK"], "arr_delay": [1, 2, 7, None]}, COLUMNS)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Clear the demo's variables."""
    for name in ("DAYS", "AIRFLOW_PORT", "KAFKA_PORT", "DEMO_EXIT"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def table(tmp_path: Path) -> DynamicTable:
    """Create a table of four flights."""
    made = open_catalog(str(tmp_path), {"log.system": "none"}).create_table("demo.flights", COLUMNS, primary_key=["id"])
    made.append(ROWS)
    return made


def test_without_wishes_a_month_is_replayed(environment: pytest.MonkeyPatch) -> None:
    assert Settings.from_environment() == Settings(days=31, airflow_port=8080, kafka_port=19092, exits=False)

    environment.setenv("DAYS", "10")
    environment.setenv("DEMO_EXIT", "1")
    assert Settings.from_environment().last_day == date(2013, 1, 10)
    assert Settings.from_environment().exits


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("DAYS", "9", "DAYS=9: choose a whole number from 10 to 365"),
        ("DAYS", "366", "DAYS=366"),
        ("DAYS", "a month", "DAYS=a month"),
        ("AIRFLOW_PORT", "0", "AIRFLOW_PORT=0: choose a whole number from 1024 to 65535"),
        ("AIRFLOW_PORT", "99999", "AIRFLOW_PORT=99999"),
        ("KAFKA_PORT", "-1", "KAFKA_PORT=-1"),
        ("KAFKA_PORT", "8080", "AIRFLOW_PORT and KAFKA_PORT are both 8080"),
    ],
)
def test_a_wish_that_can_not_be_met_is_refused_by_name(
    environment: pytest.MonkeyPatch, name: str, value: str, complaint: str
) -> None:
    environment.setenv(name, value)

    with pytest.raises(DemoError, match=complaint):
        Settings.from_environment()


@pytest.mark.parametrize("name", ["airflow_port", "kafka_port"])
def test_a_port_in_use_is_named_with_another_to_choose(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        ports = {"airflow_port": 1024, "kafka_port": 1025, name: port}

        with pytest.raises(DemoError, match=rf"port {port} .* in use.*make demo {name.upper()}=\d+"):
            Settings(days=10, exits=True, **ports).refuse_taken_ports()


def test_a_second_demo_leaves_the_first_alone(
    environment: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken_down: list[Settings] = []
    environment.setattr(demo, "HOME", tmp_path / "demo")
    environment.setattr(demo, "_down", taken_down.append)

    with only_demo(tmp_path / "demo"):
        code = demo.main([])

    assert code == 1
    assert "another demo runs" in capsys.readouterr().err
    assert taken_down == []


def test_the_next_demo_may_begin_once_the_first_has_ended(tmp_path: Path) -> None:
    for _ in range(2):
        with only_demo(tmp_path / "demo"):
            pass


def test_a_difference_is_the_demos_exit_code(
    environment: pytest.MonkeyPatch, table: DynamicTable, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark's answer is skipped: it takes a JVM."""
    environment.setattr(demo, "answer_of_spark", lambda table: (answer_of_duckdb(table), "1 files"))
    environment.setattr(demo, "HOME", Path(table.location))
    environment.setattr(demo, "delays_of", lambda flights: flights)
    settings = Settings(days=10, airflow_port=1, kafka_port=2, exits=True)
    truth = pl.DataFrame(ROWS)

    for expected, code, verdict in ((truth, 0, "All answers agree"), (truth.head(3), 1, "THE ANSWERS DIFFER")):
        environment.setattr(demo, "_truth", lambda _last_day, expected=expected: expected)
        assert demo.Demo(settings=settings)._compare(table, table) == code
        assert verdict in capsys.readouterr().out


def test_the_readers_answer_what_the_rows_say(table: DynamicTable) -> None:
    answer = {"EWR": (2, 1.5), "JFK": (1, 7.0)}

    assert answer_of_truth(pl.DataFrame(ROWS)) == answer
    assert answer_of_duckdb(table) == answer
    assert answer_of_paimon(table) == answer
    assert answer_of_iceberg(table) == answer


def test_a_difference_in_the_delays_alone_is_the_demos_exit_code(
    environment: pytest.MonkeyPatch, table: DynamicTable, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setattr(demo, "answer_of_spark", lambda table: (answer_of_duckdb(table), "1 files"))
    environment.setattr(demo, "HOME", Path(table.location))
    environment.setattr(demo, "_truth", lambda _last_day: pl.DataFrame(ROWS))
    environment.setattr(demo, "delays_of", lambda flights: flights.tail(3))

    assert demo.Demo(settings=Settings(days=10, airflow_port=1, kafka_port=2, exits=True))._compare(table, table) == 1
    assert "demo.delays                 rows missing 0, rows too many 1" in capsys.readouterr().out


def test_the_expected_delays_are_the_answer_of_the_query() -> None:
    days = flights().filter(pc.equal(pc.field("flight_date"), pa.scalar(date(2013, 1, 20))))
    select = STATEMENT[STATEMENT.index("SELECT") :].replace("demo.", "")
    names = airlines().to_pandas().replace({"US Airways Inc.": RENAMED["name"]})
    connection = duckdb.connect()
    for name, rows in (("flights", days), ("airlines", pa.Table.from_pandas(names)), ("weather", weather())):
        connection.register(name, rows)

    answer = pl.DataFrame(connection.sql(select).to_arrow_table())
    expected = delays_of(pl.DataFrame(days))

    assert expected.height > 200
    assert "US Airways" in expected["airline"]
    assert_frame_equal(expected, answer, check_row_order=False, check_dtypes=False)


def test_rows_that_are_missing_and_rows_too_many_are_counted_in_every_column(table: DynamicTable) -> None:
    truth = pl.DataFrame(ROWS)

    assert differences(table, truth) == (0, 0)
    assert differences(table, truth.head(3)) == (0, 1)
    assert differences(table, pl.concat([truth, truth.with_columns(id=pl.col("id") + 10)])) == (4, 0)
    assert differences(table, truth.with_columns(arr_delay=pl.col("arr_delay").fill_null(0))) == (1, 1)


def test_the_truth_leaves_out_what_the_demo_drops_and_joins_the_weather_where_it_reprocesses() -> None:
    truth = demo._truth(date(2013, 1, 10))

    days = truth["flight_date"]
    assert (days.min(), days.max()) == (date(2013, 1, 2), date(2013, 1, 10))
    with_weather = truth.filter(pl.col("temp").is_not_null())
    assert set(with_weather["flight_date"]) == {date(2013, 1, day) for day in range(3, 10)}
    of_a_day = truth.filter(days == date(2013, 1, 3))
    assert of_a_day.height == flights_of_day({"flight_date": "2013-01-03"}).num_rows


def test_every_wait_of_the_demo_is_as_long_as_on_a_busy_machine() -> None:
    calls = [each for each in ast.walk(ast.parse(Path(demo.__file__).read_text())) if isinstance(each, ast.Call)]
    waits = {
        ast.unparse(call): {
            ast.unparse(each.value) for each in call.keywords if each.arg in ("timeout", "timeout_seconds")
        }
        for call in calls
        if ast.unparse(call.func).startswith(("rest.run", "rest.wait", "follower.wait_for"))
        and not ast.unparse(call.func).startswith("rest.run_state")
    }

    assert {call for call, limits in waits.items() if limits != {"SECONDS_MAX"}} == set()
    assert len(waits) > 8
    assert demo.SECONDS_MAX >= 1800


def test_a_change_that_never_became_readable_is_not_left_out_of_the_ages() -> None:
    key = {"flight_date": [1, 1], "time_hour": [1, 1], "carrier": ["AA", "AA"], "flight": [1, 1]}
    sent, received = pl.DataFrame(key), pl.DataFrame({**key, "readable_at": [12.0, 14.0]})

    assert demo._ages(sent, [10.0, 13.0], received).to_list() == [2.0, 1.0]
    with pytest.raises(DemoError, match="2 changes were sent, but 1 of them"):
        demo._ages(sent, [10.0, 13.0], received.head(1))


class TornStream:
    """Stream whose polls raise the given exceptions, one after the other."""

    def __init__(self, *raised: Exception) -> None:
        self._raised = list(raised)

    def stream(self, *, startup: str) -> TornStream:
        assert startup == "full"
        return self

    def poll(self) -> pa.Table | None:
        raise self._raised.pop(0)


def test_a_reader_that_fails_tells_who_waits_for_it_and_an_outage_is_waited_for() -> None:
    torn: DynamicTable = TornStream(UnavailableError("a moment"), ValueError("broken"))  # type: ignore[assignment]
    follower = TableFollower(torn).start()

    with pytest.raises(ValueError, match="broken"):
        wait_until(lambda: follower.count)
    follower.stop()
