"""Compaction of merge-on-read tables: plans, their execution and withdrawal."""
