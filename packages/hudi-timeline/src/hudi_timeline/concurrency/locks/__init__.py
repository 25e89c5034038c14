"""Table locks: one writer at a time in the short sections that change the timeline."""
