"""Speed, measured as ratios in one run on the same cores: ``python -m benchmarks``."""
