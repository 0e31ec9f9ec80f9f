"""The command line, ``dynamic-table``. Its help imports no heavy packages."""
