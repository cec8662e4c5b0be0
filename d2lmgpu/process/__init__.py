"""Processes that run a reader's function, and what they tell the one that started them."""
