"""Great Expectations on a table: its suites, its runs, the pages of its results."""
