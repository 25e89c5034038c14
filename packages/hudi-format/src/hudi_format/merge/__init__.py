"""Record merging: one row per record key."""
