"""What was measured: runs, records in files, and like-for-like comparisons."""
