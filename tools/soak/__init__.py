"""Writers that are killed at random moments, and what their table must hold afterwards."""
