"""Every claim of docs/security.md has a test, which this module names."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
CLAIM = re.compile(r'^\d+\. <a id="([\w-]+)"></a>\S', re.MULTILINE)

PLANTED_TEST = (
    "dags/test_secrets_in_airflow.py::test_a_planted_secret_is_shown_nowhere_and_nothing_listens_beyond_this_machine"
)
TESTED_BY = {
    "password": (
        "docker/test_airflow_users.py::test_passwords_are_made_once_and_only_their_owner_reads_them",
        "docker/test_airflow_users.py::test_nobody_is_admin_without_a_password",
        "docker/test_compose.py::test_the_api_server_gets_a_file_of_passwords_that_it_may_write_and_nobody_else_reads",
        "dags/test_airflow_end_to_end.py::test_nobody_is_answered_without_a_password_or_under_another_host_name",
    ),
    "private-home": ("docker/test_airflow_users.py::test_airflows_folder_is_closed_to_other_users",),
    "host-header": (
        "plugins/policies/test_allowed_hosts.py::test_a_server_on_loopback_answers_to_names_of_loopback_only",
    ),
    "pages-need-login": ("plugins/pages/test_pages.py::test_nobody_sees_anything_without_having_logged_in",),
    "published-only": (
        "plugins/pages/test_published_connections.py::test_every_id_that_is_not_published_gets_the_same_answer",
        "table/evolve/test_branches_and_rollback.py::test_no_name_of_a_branch_leads_out_of_the_table",
    ),
    "pages-only-look": (
        "plugins/pages/test_pages.py::test_files_other_than_the_pages_own_are_not_handed_out",
        "plugins/pages/test_pages.py::test_no_script_but_the_pages_own_would_run",
        "plugins/quality/test_escaped_pages.py::test_no_value_and_no_name_of_a_column_adds_an_element",
    ),
    "loopback-spark": (
        "spark/runtime/test_private_sessions.py::test_a_local_session_listens_on_loopback_and_its_files_are_below_directories_of_its_owner",
    ),
    "loopback-airflow": (PLANTED_TEST,),
    "loopback-compose": ("docker/test_compose.py::test_ports_are_published_on_loopback_only_and_once",),
    "allowed-callables": (
        "plugins/policies/test_allowed_callable.py::test_any_other_function_is_refused_with_the_setting_that_would_allow_it",
        "plugins/policies/test_allowed_callable.py::test_a_module_that_is_not_allowed_is_not_even_imported",
        "plugins/policies/test_allowed_callable.py::test_every_operator_asks_the_setting_in_the_worker",
    ),
    "imported-functions": (
        "plugins/policies/test_allowed_callable.py::test_any_other_function_is_refused_with_the_setting_that_would_allow_it",
    ),
    "real-airflow": ("dags/test_secrets_in_airflow.py::test_a_form_that_names_any_function_runs_none",),
    "spark-masters": (
        "plugins/policies/test_spark_settings.py::test_another_master_is_refused_until_an_administrator_lists_it",
    ),
    "spark-conf": (
        "plugins/policies/test_spark_settings.py::test_a_setting_that_could_run_code_is_refused_until_an_administrator_lists_it",
        "plugins/policies/test_spark_settings.py::test_no_safe_setting_names_code_a_path_or_an_address",
        "plugins/policies/test_spark_settings.py::test_sizes_and_switches_are_allowed_but_no_second_argument_in_them",
    ),
    "form-sql": (
        "spark/runtime/test_restricted_sql.py::test_no_expression_and_no_query_calls_java",
        "spark/runtime/test_restricted_sql.py::test_no_query_runs_a_program",
        "spark/runtime/test_restricted_sql.py::test_no_expression_of_a_stream_runs_a_program",
        "spark/runtime/test_restricted_sql.py::test_a_query_holds_no_variable_of_the_driver",
        "spark/runtime/test_restricted_sql.py::test_a_query_names_no_file",
        "spark/runtime/test_restricted_sql.py::test_a_hint_of_a_query_selects_snapshots_only",
        "spark/runtime/test_restricted_sql.py::test_what_is_more_than_a_query_is_refused_before_spark_runs_it",
        "spark/runtime/test_allowed_text.py::test_each_function_of_spark_is_listed_or_refused",
        "spark/runtime/test_allowed_text.py::test_it_is_found_wherever_a_query_calls_it",
        "spark/runtime/test_allowed_text.py::test_a_computed_column_is_not_read_by_untrusted_sql_if_it_calls_others",
        "sql/test_declared_columns.py::test_what_reaches_out_of_the_table_is_refused",
        "table/sources/test_reingest.py::test_a_fix_that_is_no_expression_is_refused",
    ),
    "expectations": (
        "plugins/quality/test_data_quality.py::test_expectations_of_a_form_hold_no_code",
        "plugins/quality/test_linear_regex.py::test_an_expression_that_backtracks_for_ever_is_linear_in_a_form",
        "plugins/quality/test_linear_regex.py::test_a_form_takes_only_expressions_of_re2",
    ),
    "credentials-stay": (
        "plugins/policies/test_spark_settings.py::test_the_connections_credentials_go_to_no_servers_that_a_form_names",
        "plugins/test_secrets.py::test_credentials_of_a_connection_go_to_no_servers_of_an_ingested_topic",
        "plugins/test_secrets.py::test_a_table_that_a_form_declares_sends_no_credentials_and_runs_no_code",
    ),
    "declared-tables": (
        "plugins/test_secrets.py::test_a_table_that_a_form_declares_sends_no_credentials_and_runs_no_code",
    ),
    "servers-of-forms": (
        "plugins/policies/test_allowed_servers.py::test_an_option_that_reaches_another_server_is_refused",
        "plugins/policies/test_allowed_servers.py::test_every_option_of_tables_is_either_allowed_in_forms_or_refused",
        "plugins/policies/test_allowed_servers.py::test_no_spelling_of_a_refused_option_passes_the_form_and_is_stored",
        "plugins/policies/test_allowed_servers.py::test_every_operator_whose_options_come_from_a_form_asks_first",
        "plugins/policies/test_allowed_servers.py::test_no_option_of_a_table_reaches_a_server_or_a_directory_outside_the_warehouse",
        "log_store/codec/test_schema_registry.py::test_what_another_server_answers_is_not_repeated",
    ),
    "mapped-results": (
        "plugins/arguments/test_mapped_arguments.py::test_no_other_argument_of_the_operator_is_admitted",
    ),
    "stored-jobs": (
        "plugins/sinks/test_stored_job.py::test_no_other_spelling_of_a_directory_is_taken",
        "plugins/sinks/test_sink_listener.py::test_a_directory_that_is_not_of_the_tasks_job_stops_nothing",
    ),
    "by-value": (
        "schema/options/test_secret_text.py::test_a_urls_password_is_hidden_whatever_it_holds",
        "schema/options/test_secret_text.py::test_a_named_secret_of_a_query_or_a_connection_string_is_hidden",
        "schema/options/test_secret_text.py::test_a_quoted_secret_is_hidden_to_its_closing_quote",
        "plugins/test_secrets.py::test_a_form_gives_no_secret_by_name_or_by_value",
        "schema/options/test_secret_text.py::test_a_table_keeps_no_option_that_holds_a_secret",
    ),
    "shown-without": (
        "schema/options/test_secret_text.py::test_an_option_is_judged_by_its_value_as_well",
        "cli/test_command_line_options.py::test_a_secret_of_a_file_is_on_no_command_line_and_in_no_output",
        "plugins/pages/test_published_connections.py::test_no_error_that_a_page_shows_holds_a_secret",
    ),
    "api": ("plugins/test_secrets.py::test_airflows_api_shows_no_secret_option_and_an_edit_keeps_it",),
    "refused-where-shown": (
        "plugins/test_secrets.py::test_a_secret_among_the_options_that_airflow_shows_is_refused",
        "plugins/test_secrets.py::test_a_password_in_an_address_that_airflow_shows_is_refused",
    ),
    "masked-logs": ("plugins/test_secrets.py::test_every_secret_of_a_connection_is_masked_in_logs",),
    "sink-files": (
        "plugins/test_secrets.py::test_what_a_sink_is_told_in_a_file_holds_no_secret",
        "plugins/test_secrets.py::test_files_of_jobs_are_private_from_their_creation",
    ),
    "spark-scratch": (
        "spark/runtime/test_private_sessions.py::test_a_local_session_listens_on_loopback_and_its_files_are_below_directories_of_its_owner",
    ),
    "spark-plans": ("spark/types/test_spark_errors.py::test_a_plan_shows_no_secret_by_name_or_by_value",),
    "command-line": (
        "cli/test_command_line_options.py::test_a_secret_on_the_command_line_is_refused",
        "cli/test_command_line_options.py::test_a_file_that_others_may_read_or_change_is_refused",
    ),
    "planted": (PLANTED_TEST,),
    "no-privileges": ("docker/test_compose.py::test_a_container_can_gain_no_right_and_does_not_run_as_root",),
    "spark-secret": (
        "docker/test_compose_by_hand.py::test_spark_is_healthy_and_serves_who_knows_its_secret_and_nobody_else",
    ),
    "shown-secrets": ("docker/test_compose.py::test_a_secret_is_a_file_that_is_made_and_shown_to_who_needs_it_alone",),
    "digests": (
        "docker/test_compose.py::test_every_image_of_others_has_a_place_for_its_digest",
        "docker/test_compose.py::test_digests_are_what_the_registry_says_and_an_image_without_one_changes_nothing",
    ),
    "served-local": (
        "serve/test_serve_page.py::test_a_server_that_would_be_open_to_all_does_not_start",
        "serve/test_iceberg_catalog.py::test_without_tokens_only_programs_of_this_machine_are_answered",
        "serve/test_paimon_catalog.py::test_a_client_changes_no_database_but_its_own",
    ),
    "served-tokens": (
        "serve/test_iceberg_catalog.py::test_an_unknown_or_expired_token_opens_nothing",
        "serve/test_client_file.py::test_a_file_that_others_may_read_is_refused",
        "serve/test_client_file.py::test_a_changed_file_counts_at_once_and_an_invalid_one_lets_nobody_in",
    ),
    "served-databases": (
        "serve/test_iceberg_catalog.py::test_a_closed_database_looks_like_one_that_does_not_exist",
        "serve/test_paimon_catalog.py::test_a_client_changes_no_database_but_its_own",
    ),
    "served-requests": (
        "serve/test_drawn_requests.py::test_no_request_fails_or_shows_what_belongs_to_others",
        "serve/test_drawn_requests.py::test_no_body_that_is_almost_right_fails_or_damages_a_table",
    ),
    "served-options": (
        "serve/test_paimon_catalog.py::test_an_option_that_reaches_something_is_refused",
        "serve/test_paimon_catalog.py::test_a_commit_is_made_once_and_by_one_of_two",
    ),
    "served-credentials": (
        "serve/test_vended_credentials.py::test_a_closed_database_gives_no_credentials",
        "serve/test_vended_credentials.py::test_a_store_lets_credentials_do_what_their_policy_says",
        "serve/test_session_policies.py::test_no_other_file_is_read",
        "serve/test_session_policies.py::test_nothing_is_written",
        "serve/test_assumed_roles.py::test_a_service_that_gives_none_is_asked_again_later",
        "serve/test_vending.py::test_a_table_in_a_directory_of_its_own_gets_none",
        "serve/test_serve_page.py::test_no_role_is_taken_without_a_file_of_clients",
    ),
}


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


def test_every_claim_has_a_test_and_every_test_a_claim() -> None:
    assert CLAIM.findall(PAGE) == list(TESTED_BY)


def test_every_line_of_the_claims_is_a_claim() -> None:
    """A claim in another form would need no test."""
    claims = PAGE.partition("\n## Claims\n")[2].partition("\n## ")[0]
    lines = [line for line in claims.splitlines() if line and not line.startswith("### ")]

    assert [line for line in lines if not CLAIM.match(line)] == []
    assert [int(line.partition(".")[0]) for line in lines] == list(range(1, len(lines) + 1))


@pytest.mark.parametrize(("claim", "tests"), TESTED_BY.items(), ids=TESTED_BY.keys())
def test_the_tests_of_a_claim_are_there(claim: str, tests: tuple[str, ...]) -> None:
    assert tests
    for each in tests:
        file, _, name = each.partition("::")
        assert name in names_in(file), f"{claim}: there is no {each}"


def test_the_page_is_found() -> None:
    for page in ("README.md", "docs/deploy.md", "docs/operations.md"):
        assert "security.md" in (ROOT / page).read_text(encoding="utf-8"), page
