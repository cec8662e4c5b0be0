"""Why is the second device slower: what a reader's own script does with its time, and the cause."""
