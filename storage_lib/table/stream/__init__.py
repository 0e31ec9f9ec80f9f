"""Stream reads: a snapshot, then the log; and checks that detect invalid positions."""
