"""Exercises that say what is right, what is wrong and by how much, never the answer.

from d2lmgpu.course import exercises

exercises.check("ring", allreduce)
exercises.hint("ring")
"""

from d2lmgpu.course.exercises import checks, registry
from d2lmgpu.course.exercises.checking import check
from d2lmgpu.course.exercises.registry import hint, names

__all__ = ["check", "checks", "hint", "names", "registry"]
