"""Who sends what to whom: schedules of an allreduce, and carrying them out."""
