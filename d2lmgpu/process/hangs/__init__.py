"""Why processes that train together wait for each other without end: which, where, and for whom.

In each rank a ``log`` keeps in a file, which outlives the process, its last collectives and, five
times a second, where its main thread is. What the rank calls comes to it from a hook: of a script
that is watched ``watch.collectives``, of a worker of ``launch`` ``calls``. In the process that has
started them ``watcher`` reads the files (``state``) and ``causes`` names the cause.
"""
