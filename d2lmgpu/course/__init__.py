"""What only this course's chapters need: running and recording them, explorers, checks."""
