"""The break-it lab: real hosts, a training on them, and buttons that harm it.

``view`` shows it; ``keeper`` is the process that has hosts and training, and with which both end.
"""
