"""Table locks around the short sections that change the timeline."""
