"""Great Expectations for tables: suites, validation runs, and the pages of their results."""
