"""Installs everything that the project needs below ``.local`` (`make setup`), and rewrites its locks (`make lock`).

    .local/venv     the locked environment, with the project itself installed editable
    .local/paimon   pypaimon, an independent reader of our files, which needs an older pyarrow
    .local/iceberg  PyIceberg, and DuckDB with its extension for Iceberg, which there is for an older DuckDB than ours
    .local/kafka    Kafka's jars, fetched by the Ivy that ships inside pyspark

and, on request, MkDocs for the documentation site: `make docs`

    .local/docs     its locked environment

environments that show what `pyproject.toml` says of dependencies, and need nothing else: `make core`, `make lowest`,
`make spark`, `make airflow`

    .local/core     the project without extras, and what runs its tests
    .local/lowest   the project with all extras, in the lowest versions that it admits
    .local/dbt      dbt with the adapter, by `make dbt`
    .local/spark_*  the locked environment with another version of Spark, such as .local/spark_4_2
    .local/airflow_* the locked environment with another version of Airflow, such as .local/airflow_3_1; the packages of
                    which it needs other versions are locked in docker/local/airflow_3_1.lock

another reader of Iceberg, by `python3 docker/local/stack_setup.py iceberg_spark`:

    .local/iceberg_spark   a Spark on which Iceberg's connector runs, and nothing of ours
    .local/iceberg_runtime that connector

and servers for tests of stores: `make servers`

    .local/s3       an S3 server, versitygw, built by Go
    .local/hdfs     Hadoop's jars
    .local/registry a schema registry, Apicurio
    .local/iceberg_rest an Iceberg REST catalog, that of Iceberg's own tests
    .local/connect  Kafka Connect with Debezium's connectors of PostgreSQL and MariaDB
    .local/mariadb  MariaDB, if you unpack it there: the system's is used as well

and, with them, other readers and writers of our files, and archives of classes for quick starts:

    .local/paimon_core   Paimon's Java core, which runs on Hadoop's client
    .local/flink_1_20    Flink 1.20 with Paimon's connector, and
    .local/flink_2_0     Flink 2.0, both on Hadoop's client as well
    .local/spark         Spark's classes as a JVM maps them into its memory, so that sessions start in half the time
    .local/kafka_classes Kafka's classes, likewise
    .local/spark_kafka   Spark's Kafka connector, for streams in real-time mode
    .local/spark_s3      Hadoop's client of S3, by which Spark's own readers reach tables there

A part is complete once its stamp is written, a fingerprint of its inputs. A part whose stamp matches is left alone; a
part without a stamp is incomplete and is recreated; a part with another stamp is updated. Concurrent setups wait for
each other.

Standard library only and plain syntax: this runs before anything is installed, and an older Python has to be able to
run it up to the message that it is too old.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from java_runtime import JavaMissingError, find_java
from local_kafka import ARCHIVE as KAFKA_ARCHIVE
from local_mariadb import find_mariadb
from local_postgres import find_programs
from quick_spark import ARCHIVE, archiving_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKOUT = Path(__file__).resolve().parents[2]
LOCAL = CHECKOUT / ".local"
VENV, PAIMON, KAFKA, SPARK = LOCAL / "venv", LOCAL / "paimon", LOCAL / "kafka", ARCHIVE.parent
ICEBERG = LOCAL / "iceberg"
S3, HDFS, PAIMON_CORE, REGISTRY = LOCAL / "s3", LOCAL / "hdfs", LOCAL / "paimon_core", LOCAL / "registry"
ICEBERG_REST = LOCAL / "iceberg_rest"
ICEBERG_SPARK, ICEBERG_RUNTIME = LOCAL / "iceberg_spark", LOCAL / "iceberg_runtime"
FLINK_1_20, FLINK_2_0 = LOCAL / "flink_1_20", LOCAL / "flink_2_0"
SPARK_KAFKA, SPARK_S3 = LOCAL / "spark_kafka", LOCAL / "spark_s3"
CONNECT, MARIADB = LOCAL / "connect", LOCAL / "mariadb"
DOCS = LOCAL / "docs"
CORE, LOWEST, DBT = LOCAL / "core", LOCAL / "lowest", LOCAL / "dbt"
LOCK, PAIMON_LOCK = CHECKOUT / "requirements.lock", CHECKOUT / "requirements-paimon.lock"
ICEBERG_LOCK = CHECKOUT / "requirements-iceberg.lock"
DBT_PROJECT = CHECKOUT / "dbt" / "pyproject.toml"
DOCS_LOCK = CHECKOUT / "requirements-docs.lock"
HERE = Path(__file__).resolve().parent
UV = "uv==0.13.8"
FORMER_NAME = "dynamic-tables"  # environments from before version 0.2 have the project under this name
SPARKS = {"4.0": "4.0.5", "4.1": "4.1.4", "4.2": "4.2.1"}
"""Versions of Spark other than the locked one, and the release that the tests run on."""
SPARK_OF_ICEBERG = ("pyspark==4.1.4", "pyarrow==26.0.1")
"""The newest Spark for which Iceberg has a connector."""
AIRFLOWS = {"3.1": "3.1.8", "3.2": "3.2.2", "3.4": "3.4.0b2"}
"""Versions of Airflow other than the locked one, and the release that the tests run on."""
RUNS_TESTS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist")
S3_SERVER = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"  # Go verifies all checksums
OLDEST, NEWEST = (3, 11), (3, 13)
MORE = ("docs", "iceberg_spark", "lock", "servers")
"""Names of more parts, and of tasks, than each command needs."""
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Half the CPU time for programs of seconds; ``quick_spark.py`` says why."""
UNOPTIMIZED_GO = "all=-N -l"
"""A third less CPU time for the build of a program that only tests use."""
AT_ONCE = 4
"""Parts that are fetched or built at the same time."""

HOW_TO_GET_PYTHON = """  Debian, Ubuntu:  sudo apt install python3.11 python3.11-venv  (or 3.12, 3.13)
  macOS:           brew install python@3.13
then run the same command again."""
HOW_TO_GET_GO = """  Debian, Ubuntu:  sudo apt install golang-go  (1.21 or later; it fetches the release that is needed)
  macOS:           brew install go
then run the same command again."""
HOW_TO_GET_POSTGRES = """  Debian, Ubuntu:  sudo apt install postgresql  (its service need not run)
  macOS:           brew install postgresql@17
then run the same command again."""
HOW_TO_GET_MARIADB = """  Debian, Ubuntu:  sudo apt install mariadb-server  (its service need not run)
  without root:    in an empty folder, apt-get download mariadb-server mariadb-server-core mariadb-client-core \\
                   libmariadb3 liburing2 libpmem1 libaio1 libsnappy1v5 liblzo2-2, and
                   for each in *.deb; do dpkg -x "$each" {folder}; done"""
HOW_TO_GET_VENV = """Python's own venv module does not work here.
  Debian, Ubuntu:  sudo apt install python3-venv   (they ship it apart from python3)
then run the same command again; or put uv on PATH, which does without."""


class SetupError(RuntimeError):
    """Setup cannot continue; the message says what to do."""


def main(arguments: list[str]) -> None:
    """Set up missing parts; ``servers`` and others add theirs, ``lock`` rewrites the locks. Silent if complete."""
    use_a_fitting_python()
    try:
        if arguments in (["core"], ["lowest"], ["dbt"]):
            set_up_alone(arguments[0])
        elif arguments[:1] == ["spark"]:
            set_up_another_spark(*arguments[1:2])
        elif arguments[:1] == ["airflow"]:
            set_up_another_airflow(*arguments[1:2])
        elif arguments[:1] in ([], *([each] for each in MORE)):
            set_up_and(arguments)
        else:
            others = ", ".join(("core", "lowest", "dbt", "spark VERSION", "airflow VERSION", *MORE))
            sys.exit(
                f"setup: unknown part {arguments[0]!r}. Without a name, the parts are set up that each command needs; "
                f"the names are {others}"
            )
    except (SetupError, JavaMissingError) as error:
        sys.exit(f"setup: {error}")
    except KeyboardInterrupt:
        sys.exit("setup: interrupted; run `make setup` again to continue")


def set_up_alone(which: str) -> None:
    """Bring one of the environments up to date that need no other part, and no Java."""
    LOCAL.mkdir(exist_ok=True)
    with one_at_a_time():
        if which == "core":
            make(CORE, "the project without extras", project_fingerprint(), install_core)
        elif which == "dbt":
            print_of_dbt = f"{project_fingerprint()} {fingerprint(DBT_PROJECT)}"
            make(DBT, "the project with dbt and its adapter (1 GB)", print_of_dbt, install_dbt)
        else:
            make(LOWEST, "the project with the lowest versions (2 GB)", project_fingerprint(), install_lowest)


def set_up_another_spark(version: str = "") -> None:
    """Bring the environment with this version of Spark up to date; it needs no other part, and no Java."""
    if version not in SPARKS:
        msg = (
            f"no environment is known for Spark {version or 'without a version'}; there is one for {', '.join(SPARKS)}"
        )
        raise SetupError(msg)
    place, release = spark_environment(version), SPARKS[version]
    LOCAL.mkdir(exist_ok=True)
    with one_at_a_time():
        wanted = f"{project_fingerprint()} {release}"
        make(place, f"the environment with Spark {release} (2 GB)", wanted, lambda: install_spark(place, release))


def spark_environment(version: str) -> Path:
    return LOCAL / f"spark_{version.replace('.', '_')}"


def set_up_another_airflow(version: str = "") -> None:
    """Bring the environment with this version of Airflow up to date; it needs no other part, and no Java."""
    if version not in AIRFLOWS:
        msg = (
            f"no environment is known for Airflow {version or 'without a version'}; there is one for "
            f"{', '.join(AIRFLOWS)}"
        )
        raise SetupError(msg)
    place, release, lock = airflow_environment(version), AIRFLOWS[version], airflow_lock(version)
    LOCAL.mkdir(exist_ok=True)
    with one_at_a_time():
        wanted = f"{project_fingerprint()} {fingerprint(lock)}"
        make(place, f"the environment with Airflow {release} (2 GB)", wanted, lambda: install_airflow(place, lock))


def airflow_environment(version: str) -> Path:
    return LOCAL / f"airflow_{version.replace('.', '_')}"


def airflow_lock(version: str) -> Path:
    """Return the lock of the packages that Airflow ``version`` needs in other versions than requirements.lock has."""
    return HERE / f"airflow_{version.replace('.', '_')}.lock"


def set_up_and(arguments: list[str]) -> None:
    """Set up missing parts, before them the locks if they are asked for, and after them other parts."""
    java = find_java()
    LOCAL.mkdir(exist_ok=True)
    if not arguments and all(is_made(place, wanted, stamp) for place, _, wanted, _, stamp in parts_of_all(java)):
        # Without waiting for a setup that adds other parts.
        return
    with one_at_a_time():
        if arguments[:1] == ["lock"]:
            write_locks(arguments[1:], java)
        set_up(java)
        if arguments[:1] == ["docs"]:
            make(DOCS, "MkDocs, for the documentation site", fingerprint(DOCS_LOCK), install_docs)
        if arguments[:1] == ["servers"]:
            set_up_servers(java)
        if arguments[:1] == ["iceberg_spark"]:
            set_up_spark_of_iceberg(java)


def set_up(java: Path) -> None:
    """Bring the parts up to date that each command needs."""
    started = time.monotonic()
    changed = [make(*part) for part in parts_of_all(java)]
    if any(changed):
        say(f"all is set up ({time.monotonic() - started:.0f} s); `make help` lists what can be done now")


def parts_of_all(java: Path) -> list[Part]:
    """Return the parts that each command needs, in the order of their dependencies."""
    of_the_project = project_fingerprint()
    return [
        Part(VENV, "the environment (2 GB)", fingerprint(LOCK), lambda: install_locked(VENV, LOCK)),
        Part(VENV, "the project in it, editable", of_the_project, lambda: install_project(VENV), ".project-stamp"),
        Part(PAIMON, "the independent reader's environment", fingerprint(PAIMON_LOCK), install_paimon),
        Part(ICEBERG, "the environment of Iceberg's readers (300 MB)", fingerprint(ICEBERG_LOCK), install_iceberg),
        jars(KAFKA, "Kafka's jars (42 MB)", java),
    ]


def set_up_servers(java: Path) -> None:
    """Bring the servers up to date, which only some tests need."""
    if find_programs() is None:
        msg = f"PostgreSQL is needed for the tests of catalogs in a database; there is none.\n{HOW_TO_GET_POSTGRES}"
        raise SetupError(msg)
    # Mostly waiting for downloads; the longest first.
    together(
        lambda: make(S3, "an S3 server (Go builds it in a minute or two)", f"{CHECKOUT} {S3_SERVER}", build_s3_server),
        lambda: make_jars(FLINK_2_0, "Flink 2.0 with Paimon's connector (162 MB)", java),
        lambda: make_jars(FLINK_1_20, "Flink 1.20 with Paimon's connector (158 MB)", java),
        lambda: make_jars(REGISTRY, "a schema registry (109 MB)", java),
        lambda: make_jars(HDFS, "Hadoop's jars (106 MB)", java),
        lambda: make_jars(ICEBERG_REST, "an Iceberg REST catalog (83 MB)", java),
        lambda: make_jars(CONNECT, "Kafka Connect with Debezium (52 MB)", java),
        lambda: make_jars(PAIMON_CORE, "Paimon's Java core (49 MB)", java),
        lambda: make_jars(SPARK_S3, "Spark's client of S3 (19 MB)", java),
        lambda: make_jars(SPARK_KAFKA, "Spark's Kafka connector (10 MB)", java),
    )
    unpack_registry()
    # Takes a minute, which pays off for the many Spark sessions of the tests, but not for one demo.
    make(SPARK, "Spark's classes, for quick starts (160 MB)", java_fingerprint(java, LOCK), archive_spark)
    of_kafka = java_fingerprint(java, HERE / "kafka_jars.sha256")
    make(KAFKA_ARCHIVE.parent, "Kafka's classes, likewise (50 MB)", of_kafka, archive_kafka)
    if find_mariadb() is None:
        say(f"there is no MariaDB, so its tests are skipped. To get it:\n{HOW_TO_GET_MARIADB.format(folder=MARIADB)}")


def set_up_spark_of_iceberg(java: Path) -> None:
    """Bring Iceberg's own reader for Spark up to date, which only deep tests need."""
    wanted = f"{CHECKOUT} {' '.join(SPARK_OF_ICEBERG)}"
    make(ICEBERG_SPARK, "the environment of Iceberg's Spark (640 MB)", wanted, install_spark_of_iceberg)
    make_jars(ICEBERG_RUNTIME, "Iceberg's connector for Spark (48 MB)", java)


def together(*parts: Callable[[], object]) -> None:
    """Make independent parts, a few at once. If some fail, raise one SetupError with all messages at the end."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        started = [threads.submit(part) for part in parts]
        try:
            wait(started)
        except KeyboardInterrupt:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    failures = [failure for failure in (each.exception() for each in started) if failure is not None]
    for failure in failures:
        if not isinstance(failure, SetupError):
            raise failure
    if failures:
        raise SetupError("\n".join(map(str, failures)))


class Part(NamedTuple):
    """Arguments of `make`."""

    place: Path
    what: str
    wanted: str
    act: Callable[[], None]
    stamp: str = ".stamp"


def make(place: Path, what: str, wanted: str, act: Callable[[], None], stamp: str = ".stamp") -> bool:
    """Run ``act`` unless the stamp in ``place`` is the wanted one; return whether it ran.

    The stamp is deleted before ``act`` runs and written after it.
    """
    if is_made(place, wanted, stamp):
        return False
    stamp_path = place / stamp
    found = stamp_of(place, stamp)
    say(f"{what} -> {place.relative_to(CHECKOUT)}")
    started = time.monotonic()
    stamp_path.unlink(missing_ok=True)
    if stamp == ".stamp" and not (was_made_here(found) and is_usable(place)):
        shutil.rmtree(place, ignore_errors=True)
    act()
    stamp_path.write_text(wanted)
    say(f"  {place.relative_to(CHECKOUT)}: done in {time.monotonic() - started:.0f} s")
    return True


def is_made(place: Path, wanted: str, stamp: str) -> bool:
    """Return whether a part is complete and up to date."""
    return stamp_of(place, stamp) == wanted and is_usable(place)


def stamp_of(place: Path, stamp: str) -> str:
    """Return the stamp in ``place``; empty if there is none."""
    try:
        return (place / stamp).read_text()
    except FileNotFoundError:
        return ""


def fingerprint(*files: Path) -> str:
    """Return a digest of a part's inputs with the checkout's path: an environment can't be moved."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return f"{CHECKOUT} {digest.hexdigest()}"


def project_fingerprint() -> str:
    """Return a fingerprint of the parts of pyproject.toml that affect the installation, without tool settings."""
    import tomllib  # noqa: PLC0415 - missing in a Python that is too old, which has to reach the message

    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    installed = repr((settings["project"], settings["build-system"], settings["tool"]["hatch"], fingerprint(LOCK)))
    return f"{CHECKOUT} {hashlib.sha256(installed.encode()).hexdigest()}"


def java_fingerprint(java: Path, lock: Path) -> str:
    """Return a fingerprint of files that only this Java executable can use."""
    program = java.resolve()
    return f"{fingerprint(lock)} {program} {program.stat().st_mtime_ns}"


def was_made_here(stamp: str) -> bool:
    return stamp.startswith(f"{CHECKOUT} ")


def is_usable(place: Path) -> bool:
    """Return whether an environment still has its interpreter, which a system upgrade may have removed."""
    others = {*map(spark_environment, SPARKS), *map(airflow_environment, AIRFLOWS)}
    environments = {VENV, PAIMON, ICEBERG, ICEBERG_SPARK, DOCS, CORE, LOWEST, *others}
    return place not in environments or (place / "bin" / "python").exists()


def install_locked(environment: Path, lock: Path) -> None:
    """Install exactly the locked packages; compiles them, because Airflow and Spark start many processes."""
    uv = find_uv()
    if not environment.exists():
        run(uv, "venv", "--quiet", "--python", sys.executable, environment)
    python = environment / "bin" / "python"
    run(uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", "--compile-bytecode", lock)


def install_paimon() -> None:
    install_locked(PAIMON, PAIMON_LOCK)


def install_iceberg() -> None:
    install_locked(ICEBERG, ICEBERG_LOCK)


def install_spark_of_iceberg() -> None:
    install_anew(ICEBERG_SPARK, *SPARK_OF_ICEBERG)


def install_docs() -> None:
    install_locked(DOCS, DOCS_LOCK)


def install_project(environment: Path) -> None:
    """Install the project editable; hatchling is in the lock, so nothing is downloaded."""
    uv, python = find_uv(), environment / "bin" / "python"
    run(uv, "pip", "uninstall", "--quiet", "--python", python, FORMER_NAME)
    editable = ("--no-deps", "--no-build-isolation", "--editable", CHECKOUT)
    run(uv, "pip", "install", "--quiet", "--python", python, *editable)


def install_core() -> None:
    """Install the project without extras, in the locked versions, and what runs its tests."""
    install_anew(CORE, "--constraint", LOCK, "--editable", CHECKOUT, *RUNS_TESTS)


def install_lowest() -> None:
    """Install the project with all extras, each in the lowest version that pyproject.toml admits."""
    install_anew(LOWEST, "--resolution", "lowest-direct", "--editable", f"{CHECKOUT}[dev,lineage]")


def install_spark(environment: Path, release: str) -> None:
    """Install the locked packages and the project, with another release of Spark in place of the locked one."""
    install_locked(environment, LOCK)
    install_project(environment)
    python = environment / "bin" / "python"
    run(find_uv(), "pip", "install", "--quiet", "--python", python, "--no-deps", f"pyspark=={release}")


def install_airflow(environment: Path, lock: Path) -> None:
    """Install the locked packages and the project, with another release of Airflow and what it needs."""
    install_locked(environment, LOCK)
    install_project(environment)
    python = environment / "bin" / "python"
    locked = ("--no-deps", "--require-hashes", "--compile-bytecode", "--requirement", lock)
    run(find_uv(), "pip", "install", "--quiet", "--python", python, *locked)


def install_dbt() -> None:
    """Install the project, dbt and the adapter. dbt pins packages that the lock has in other versions."""
    parts = ("dbt-tests-adapter>=1.20,<2", "pytest>=8,<10", "--editable", f"{CHECKOUT}[spark,sql,duckdb]", "--editable")
    install_anew(DBT, *parts, DBT_PROJECT.parent)


def install_anew(environment: Path, *what: object) -> None:
    """Create an environment and install into it what is not locked."""
    uv = find_uv()
    run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment)
    run(uv, "pip", "install", "--quiet", "--python", environment / "bin" / "python", *what)


def archive_spark() -> None:
    """Run a small Spark session that archives its classes, for sessions of the demo and the tests."""
    ARCHIVE.parent.mkdir(exist_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    words = [f"{name}={value}" for name, value in archiving_spark(ARCHIVE).items()]
    run("env", *words, VENV / "bin" / "python", HERE / "spark_archive.py")


def archive_kafka() -> None:
    """Run a small broker that archives its classes, for later brokers."""
    KAFKA_ARCHIVE.parent.mkdir(exist_ok=True)
    KAFKA_ARCHIVE.unlink(missing_ok=True)
    run(VENV / "bin" / "python", HERE / "kafka_archive.py", KAFKA_ARCHIVE)


def make_jars(place: Path, what: str, java: Path) -> bool:
    return make(*jars(place, what, java))


def jars(place: Path, what: str, java: Path) -> Part:
    """Return the part with the jars that ``<name>_ivy.xml`` lists and ``<name>_jars.sha256`` pins."""
    parts, sums = HERE / f"{place.name}_ivy.xml", HERE / f"{place.name}_jars.sha256"
    return Part(place, what, fingerprint(parts, sums), lambda: fetch_jars(java, place, parts, sums))


def fetch_jars(java: Path, place: Path, parts: Path, sums: Path) -> None:
    """Fetch jars into a temporary folder, compare them with the pinned sums, then move them into place atomically."""
    aside = resolve_jars(java, place, parts)
    pinned = {name: total for total, name in (line.split() for line in sums.read_text().splitlines())}
    found = jar_sums(aside / "lib")
    if found != pinned:
        differing = sorted(name for name in {*found, *pinned} if found.get(name) != pinned.get(name))
        msg = f"These jars are not the pinned ones: {', '.join(differing)}. What came instead is in {aside}; not used."
        raise SetupError(msg)
    shutil.rmtree(aside / "cache")
    shutil.rmtree(place, ignore_errors=True)
    aside.rename(place)


def resolve_jars(java: Path, place: Path, parts: Path) -> Path:
    """Let Ivy fetch the jars and their dependencies into ``lib``; IVY_SETTINGS may name a file with a mirror."""
    aside = place.with_name(f"{place.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    ivy = next(VENV.glob("lib/python*/site-packages/pyspark/jars/ivy-*.jar"))
    own = parts.with_name(f"{parts.stem}settings.xml")
    settings: tuple[object, ...] = ("-settings", own) if own.exists() else ()
    if "IVY_SETTINGS" in os.environ:
        settings = ("-settings", os.environ["IVY_SETTINGS"])
    places = ("-cache", aside / "cache", "-retrieve", f"{aside}/lib/[artifact]-[revision](-[classifier]).[ext]")
    run(java, *QUICK_JAVA, "-jar", ivy, *settings, "-ivy", parts, *places, output=aside / "ivy.log")
    return aside


def unpack_registry() -> None:
    """Unpack the registry's program from its archive."""
    app = REGISTRY / "app"
    if app.exists():
        return
    aside = REGISTRY / "app.part"
    shutil.rmtree(aside, ignore_errors=True)
    (archive,) = (REGISTRY / "lib").glob("*.tar.gz")
    shutil.unpack_archive(archive, aside, filter="data")
    aside.rename(app)


def build_s3_server() -> None:
    """Build the pinned release with Go; keep only the program, not Go's downloads and caches."""
    go = shutil.which("go")
    if go is None:
        msg = f"Go is needed to build the S3 server of the tests; no go on PATH.\n{HOW_TO_GET_GO}"
        raise SetupError(msg)
    scratch = S3.with_name("s3.part")
    shutil.rmtree(scratch, ignore_errors=True)
    of_go = {
        "GOBIN": scratch / "bin",
        "GOPATH": scratch / "path",
        "GOCACHE": scratch / "cache",
        "GOFLAGS": "-modcacherw",
        "CGO_ENABLED": "0",
    }
    scratch.mkdir()
    words = [f"{name}={value}" for name, value in of_go.items()]
    quick = ("-gcflags", UNOPTIMIZED_GO, "-ldflags", "-s -w")
    run("env", *words, go, "install", *quick, S3_SERVER, output=scratch / "go.log")
    shutil.rmtree(scratch / "path")
    shutil.rmtree(scratch / "cache")
    shutil.rmtree(S3, ignore_errors=True)
    scratch.rename(S3)


def jar_sums(folder: Path) -> dict[str, str]:
    return {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in sorted(folder.glob("*.*"))}


def write_locks(arguments: list[str], java: Path) -> None:
    """Resolve the locks for all supported Pythons, without index URLs; ``--upgrade`` also updates locked versions."""
    uv = find_uv()
    oldest = ".".join(str(part) for part in OLDEST)
    shape = ("--universal", "--python-version", oldest, "--generate-hashes", "--no-header", "--no-annotate")
    groups = (
        (PAIMON_LOCK, ("--group", "paimon")),
        (ICEBERG_LOCK, ("--group", "iceberg")),
        (DOCS_LOCK, ("--group", "docs")),
    )
    for lock, source in ((LOCK, ("pyproject.toml", "--extra", "dev")), *groups):
        say(f"resolving {lock.name}")
        run(uv, "pip", "compile", "--quiet", "--no-emit-index-url", *shape, *arguments, *source, "--output-file", lock)
    for version, release in AIRFLOWS.items():
        lock_another_airflow(uv, version, release, *shape)
    if VENV.exists():
        of_readers = (PAIMON_CORE, ICEBERG_REST, ICEBERG_RUNTIME)
        for place in (KAFKA, SPARK_KAFKA, SPARK_S3, HDFS, CONNECT, FLINK_1_20, FLINK_2_0, REGISTRY, *of_readers):
            sums = HERE / f"{place.name}_jars.sha256"
            say(f"resolving {sums.name}")
            aside = resolve_jars(java, place, HERE / f"{place.name}_ivy.xml")
            sums.write_text("".join(f"{total}  {name}\n" for name, total in jar_sums(aside / "lib").items()))
            shutil.rmtree(aside)


def lock_another_airflow(uv: Path, version: str, release: str, *shape: object) -> None:
    """Resolve the project with another release of Airflow, near the lock, and keep the packages that differ from it."""
    lock = airflow_lock(version)
    say(f"resolving {lock.name}")
    whole, override = LOCAL / lock.name, LOCAL / f"{lock.stem}.override"
    shutil.copyfile(LOCK, whole)  # uv prefers the versions that its output has
    override.write_text(f"apache-airflow=={release}\n")
    # The packages of a pre-release are pre-releases themselves; all others keep their locked versions.
    kinds = () if release.replace(".", "").isdecimal() else ("--prerelease", "allow")
    source = ("pyproject.toml", "--extra", "dev", "--override", override, "--output-file", whole)
    run(uv, "pip", "compile", "--quiet", "--no-emit-index-url", *shape, *kinds, *source)
    lock.write_text(differing_pins(LOCK.read_text(), whole.read_text()))
    whole.unlink()
    override.unlink()


def differing_pins(lock: str, other: str) -> str:
    """Return the pins of another lock, with their hashes, that ``lock`` does not have."""
    known = set(pins_of(lock))
    return "".join(pin for pin in pins_of(other) if pin not in known)


def pins_of(lock: str) -> list[str]:
    """Return the requirements of a lock, each with the lines of its hashes."""
    pins: list[str] = []
    for line in lock.splitlines(keepends=True):
        if line.startswith(" "):
            pins[-1] += line
        else:
            pins.append(line)
    return pins


def find_uv() -> Path:
    """Return the user's uv, or else one in .local/tools, which pip installs."""
    on_path = shutil.which("uv")
    if on_path:
        return Path(on_path)
    tools = LOCAL / "tools"
    uv = tools / "bin" / "uv"
    if not (uv.exists() and subprocess.run([str(uv), "--version"], capture_output=True, check=False).returncode == 0):
        say("uv, the installer -> .local/tools")
        shutil.rmtree(tools, ignore_errors=True)
        try:
            run(sys.executable, "-m", "venv", tools)
        except SetupError as error:
            raise SetupError(f"{error}\n{HOW_TO_GET_VENV}") from error
        run(tools / "bin" / "python", "-m", "pip", "install", "--quiet", UV)
    return uv


def environment_for_uv() -> dict[str, str]:
    """Return the environment with pip's settings translated for uv, which does not read them."""
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"}}
    for theirs, ours in (
        ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
        ("PIP_EXTRA_INDEX_URL", "UV_INDEX"),
        ("PIP_CERT", "SSL_CERT_FILE"),
        ("PIP_DEFAULT_TIMEOUT", "UV_HTTP_TIMEOUT"),
    ):
        if theirs in env:
            env.setdefault(ours, env[theirs])
    links = [link for link in env.get("PIP_FIND_LINKS", "").split() if "://" in link or Path(link).is_dir()]
    if links:
        env.setdefault("UV_FIND_LINKS", ",".join(links))
    env.setdefault("UV_PYTHON_DOWNLOADS", "never")
    return env


def run(*command: object, output: Path | None = None) -> None:
    """Run a command and print the elapsed time every 5 seconds; raises SetupError with the end of its output.

    The command inherits the lock: if this process is killed, the next setup waits until the command has ended.
    """
    words = [str(word) for word in command]
    log = output or LOCAL / "setup.log"
    started = time.monotonic()
    with log.open("w") as log_file:
        process = subprocess.Popen(
            words, stdout=log_file, stderr=subprocess.STDOUT, env=environment_for_uv(), cwd=CHECKOUT, close_fds=False
        )
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=5)
                    break
                part = f" {log.parent.name.removesuffix('.part')}:" if output else ""
                say(f" {part} ... {time.monotonic() - started:.0f} s")
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
    if process.returncode != 0:
        end = "\n".join(f"    {line}" for line in log.read_text(errors="replace").splitlines()[-20:])
        msg = f"this failed:\n  {' '.join(words)}\nand said at the end:\n{end}"
        raise SetupError(msg)


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the lock that a second setup waits for; the commands that run in the block hold it as well."""
    with (LOCAL / "setup.lock").open("w") as turn:
        os.set_inheritable(turn.fileno(), True)
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another setup runs; waiting for it")
            fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def use_a_fitting_python() -> None:
    """Restart with a suitable Python from PATH if this one is unsuitable; exit with instructions if none is found."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        other = shutil.which(f"python3.{minor}")
        # A version manager may have a shim on PATH for a version that it refuses to start here.
        if other and subprocess.run([other, "-c", ""], capture_output=True, check=False).returncode == 0:
            os.execv(other, [other, *sys.argv])  # noqa: S606 - needs no shell
    running = ".".join(str(part) for part in sys.version_info[:2])
    sys.exit(
        f"setup: Python 3.11, 3.12 or 3.13 is needed; this is {running} and PATH has no other.\n{HOW_TO_GET_PYTHON}"
    )


def say(words: str) -> None:
    print(words, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
