"""Every operation that changes a table, cut at its storage calls and continued."""
