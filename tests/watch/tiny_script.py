"""A reader's script that makes three updates with PyTorch."""

TRAINS = """
import torch

net = torch.nn.Linear(2, 1)
trainer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    trainer.zero_grad()
    net(torch.ones(4, 2)).sum().backward()
    trainer.step()
"""
