"""One commit over both stores: appends, overwrites and restores; and the repair of a log that lacks some."""
