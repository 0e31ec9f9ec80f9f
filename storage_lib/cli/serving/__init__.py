"""The command that runs a server."""
