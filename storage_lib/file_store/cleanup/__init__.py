"""Safe deletion of files: those that a table references, and directories that it has claimed."""
