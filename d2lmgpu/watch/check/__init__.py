"""Is the k-device training of a reader's script the one-device training? See ``run.check``.

In the watched processes: ``observer`` puts ``gradients``, ``batches`` and ``facts`` in place. In
the caller: ``run`` starts them, ``evidence`` puts together what they saw, ``rules`` name the
defect, ``words`` say it.
"""
