"""Which of several records with one key survives."""
