"""`verify`: a read-only check of a whole table, and `repair` of what it finds."""
