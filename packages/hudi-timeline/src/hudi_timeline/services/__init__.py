"""Services that keep a table healthy: cleaning, archival, savepoints.  Each is a plan first, then its execution."""
