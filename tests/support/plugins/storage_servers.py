"""The session's stores: an S3 server and an HDFS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_hdfs import JARS, LocalHdfs
from local_s3 import PROGRAM, LocalS3


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalS3]:
    """One real S3 server for the whole session, with a bucket ``lake``; use a separate prefix for your files."""
    if not PROGRAM.exists():
        pytest.skip("there is no S3 server here: run `make servers`")
    with LocalS3(tmp_path_factory.mktemp("s3")) as server:
        server.create_bucket("lake")
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHdfs]:
    """One real HDFS for the whole session; use a separate directory for your files."""
    if not JARS.exists():
        pytest.skip("there is no HDFS here: run `make servers`")
    with LocalHdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server
