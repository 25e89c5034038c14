"""Hashes of record keys."""
