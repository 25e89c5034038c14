"""Indexes of one's own: what a class has to have, and one in an SQLite file."""
