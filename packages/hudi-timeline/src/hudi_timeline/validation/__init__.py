"""Checks of a write before it is committed: rules for rows, functions and SQL over the table that is to be."""
