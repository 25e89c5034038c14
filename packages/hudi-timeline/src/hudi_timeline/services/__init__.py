"""Table services: cleaning, archival, savepoints; each plans first, then executes."""
