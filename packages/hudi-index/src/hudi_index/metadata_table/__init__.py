"""The metadata table's records: what the slices of its partitions say."""
