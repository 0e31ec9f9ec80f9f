"""Suites of documentation that dbt publishes for its adapters: comments of tables and columns, and its catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dbt.tests.adapter.basic.expected_catalog import base_expected_catalog, expected_references_catalog, no_stats
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocs,
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsColumnMissing,
    BasePersistDocsCommentOnQuotedColumn,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)

if TYPE_CHECKING:
    from dbt.tests.fixtures.project import TestProjInfo

TYPES = {"id_type": "BIGINT", "text_type": "STRING", "time_type": "TIMESTAMP(6)"}


class TestComments(BasePersistDocs):
    pass


class TestCommentsOfMissingColumns(BasePersistDocsColumnMissing):
    pass


class TestCommentsOfOnlyMissingColumns(BasePersistDocsAllColumnsMissing):
    pass


class TestCommentsOfQuotedColumns(BasePersistDocsCommentOnQuotedColumn):
    pass


class TestCommentsOfOtherwiseQuotedColumns(BasePersistDocsQuotedDescriptionNotAppliedOnMismatch):
    pass


class TestDocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: TestProjInfo) -> dict[str, Any]:
        return base_expected_catalog(
            project, role=None, **TYPES, view_type="view", table_type="table", model_stats=no_stats()
        )


class TestDocsGenerateReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: TestProjInfo) -> dict[str, Any]:
        return expected_references_catalog(
            project,
            role=None,
            **TYPES,
            bigint_type="BIGINT",
            view_type="view",
            table_type="table",
            model_stats=no_stats(),
        )
