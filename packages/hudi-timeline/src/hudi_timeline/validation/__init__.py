"""Validation before commit: row rules, and validators over the table's next state."""
