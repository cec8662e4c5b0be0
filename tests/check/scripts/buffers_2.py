"""Gradients are averaged by hand, running means are not, and each rank reports an accuracy."""

import torch
import torch.distributed as dist
import torch.nn as nn


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.out = nn.Linear(4 * 16, 2)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.conv(x))).flatten(1))


def part_of(tensor):
    return tensor[dist.get_rank() :: dist.get_world_size()]


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


@torch.inference_mode()
def evaluate(model, x, y):
    model.eval()
    accuracy = (model(part_of(x)).argmax(1) == part_of(y)).double().mean()
    dist.all_reduce(accuracy)
    model.train()
    return accuracy.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(4)
    x, y = torch.randn(200, 1, 6, 6), torch.randint(2, (200,))
    model = ConvNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _epoch in range(2):
        order = torch.randperm(160)
        for i in range(0, 160, 16):
            rows = part_of(order[i : i + 16])
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            average_gradients(model)
            optimizer.step()
        print("rank", dist.get_rank(), "accuracy", evaluate(model, x[160:], y[160:]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
