"""Records of the metadata table."""
