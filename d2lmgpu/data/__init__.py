"""Data sets: where their files are, fetching them, and batches of them."""
