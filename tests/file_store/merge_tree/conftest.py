"""A small bucket in memory."""

from __future__ import annotations

import pytest

from storage_lib.io.environment import Environment
from tests.support.bucket_on_disk import BucketOnDisk, schema_of
from tests.support.fake_environment import fake_environment


@pytest.fixture
def environment() -> Environment:
    """Return an environment in memory, with a fake clock and numbered names."""
    return fake_environment()


@pytest.fixture
def bucket(environment: Environment) -> BucketOnDisk:
    """Return a bucket of ``id BIGINT, name STRING``, key ``id``."""
    return BucketOnDisk(schema_of("id BIGINT; name STRING", ["id"]), environment)
