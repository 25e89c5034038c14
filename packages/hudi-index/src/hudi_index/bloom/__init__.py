"""Bloom filters of record keys, as Apache Hudi keeps them in the footers of base files."""
