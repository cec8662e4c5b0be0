"""Hosts in one box: a cluster of network namespaces, for chapters, tests and demonstrations."""
