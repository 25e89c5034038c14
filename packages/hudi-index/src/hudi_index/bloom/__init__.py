"""Bloom filters of record keys in base file footers."""
