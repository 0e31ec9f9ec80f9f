"""Namespaces of ``DynamicTable`` for the verbs that are used less often: maintenance and inspection."""
