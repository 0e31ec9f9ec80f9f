"""What ``benchmarks.iceberg_readers`` runs in the environments of Iceberg's readers."""
