"""Resizes of bucket indexes: plans and their execution."""
