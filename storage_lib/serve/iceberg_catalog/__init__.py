"""The REST catalog of Iceberg over the tables' views."""
