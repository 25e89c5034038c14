"""HFile format of metadata tables and bootstrap indexes: sorted entries with a block index."""
