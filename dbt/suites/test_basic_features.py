"""The suite of basic features that dbt publishes for its adapters."""

from __future__ import annotations

from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import BaseIncremental
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection

SUITES = (
    BaseAdapterMethod,
    BaseEmpty,
    BaseEphemeral,
    BaseGenericTests,
    BaseIncremental,
    BaseSimpleMaterializations,
    BaseSingularTests,
    BaseSingularTestsEphemeral,
    BaseSnapshotCheckCols,
    BaseSnapshotTimestamp,
    BaseTableMaterialization,
    BaseValidateConnection,
)

# pytest collects classes whose names begin with Test.
globals().update({f"Test{suite.__name__.removeprefix('Base')}": type("Test", (suite,), {}) for suite in SUITES})
for suite in SUITES:
    del globals()[suite.__name__]
del suite
