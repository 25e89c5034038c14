"""Compaction of merge-on-read tables: planning, execution, and what hudi-cli does with its plans."""
