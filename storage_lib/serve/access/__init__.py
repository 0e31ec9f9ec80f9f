"""Who may use the server, and which databases."""
