"""Indexes of users' own: brought up to date, and asked by writes."""
