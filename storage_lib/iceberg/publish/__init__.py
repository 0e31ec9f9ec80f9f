"""The view's files: read the newest metadata, publish the next, and delete what only expired snapshots need."""
