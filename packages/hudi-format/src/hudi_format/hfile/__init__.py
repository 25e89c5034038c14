"""HFile: sorted keys and values with a block index, as metadata tables and bootstrap indexes have them."""
