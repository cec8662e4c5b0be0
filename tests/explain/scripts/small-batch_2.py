"""Four rows a rank, as for one small GPU. --mended: --batch-size as large as memory allows."""

import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4, help="per device")
parser.add_argument("--mended", action="store_true")
args = parser.parse_args()
if args.mended:
    args.batch_size = 128

dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(
    torch.randn(args.batch_size * 128, 3, 32, 32), torch.randint(0, 10, (args.batch_size * 128,))
)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(32 * 7 * 7, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


model = nn.parallel.DistributedDataParallel(SmallNet())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
model.train()
for images, targets in loader:
    optimizer.zero_grad(set_to_none=True)
    loss_fn(model(images), targets).backward()
    optimizer.step()
dist.destroy_process_group()
