"""A small notebook with a lab: really trains, needs no framework, and lasts as long as asked."""

TRAIN = """\
def train(num_gpus, batch_size, lr, num_epochs=None):
    num_epochs = num_epochs or 3
    train_iter = DataIter(X, y, batch_size, shuffle=True, convert=np.asarray)
    animator = Animator("epoch", legend=["train loss"], xlim=[1, num_epochs])
    w = np.zeros(20)
    for epoch in range(num_epochs):
        for X_batch, y_batch in train_iter:
            for X_shard, y_shard in zip(np.array_split(X_batch, num_gpus),
                                        np.array_split(y_batch, num_gpus)):
                w -= lr * X_shard.T @ (X_shard @ w - y_shard) / len(y_batch)
            time.sleep(0.01)
        animator.add(epoch + 1, float(np.mean((X @ w - y) ** 2)))
"""
EDIT = ('"train loss"', '"edited loss"')  # what the reader changes in that cell

IN_PROCESSES = """\
def train_in_processes(num_gpus, batch_size, lr, num_epochs=None):
    from d2lmgpu.launch import launch

    launch(train, num_gpus, batch_size, lr, num_epochs, num_processes=num_gpus)
"""

CELLS = [
    """\
import threading
import time

import ipywidgets
import numpy as np

from d2lmgpu.figures.animator import Animator
from d2lmgpu.lab import TrainingLab
from d2lmgpu.data.loader import DataIter

X = np.random.RandomState(0).normal(size=(1000, 20))
y = X @ np.arange(20)
""",
    TRAIN,
    IN_PROCESSES,
    """\
lab = TrainingLab({"plain": train, "in processes": train_in_processes}, batch_size=64, lr=0.1)
lab
""",
]
