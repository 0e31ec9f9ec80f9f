"""Stream reads: a snapshot, then the log; and the guards that notice when a position has lost its meaning."""
