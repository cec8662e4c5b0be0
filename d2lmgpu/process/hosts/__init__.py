"""Workers on other hosts: the ways there, an agent on each, and the messages between."""
