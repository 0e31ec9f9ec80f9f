"""The files of one table: its verbs here, what they work on in the folders."""
