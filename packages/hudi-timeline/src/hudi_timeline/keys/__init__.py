"""Single record keys across a table: duplicates, history and traces of erased ones."""
