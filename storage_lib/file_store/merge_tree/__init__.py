"""LSM tree of one bucket: memtable, levels, merged reads and writers."""
