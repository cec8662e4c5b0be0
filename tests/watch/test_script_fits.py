"""Scripts on GPUs that are not here: what they take is what the same steps take by ``fits``."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

from d2lmgpu.torch.memory import fits
from d2lmgpu.watch import WatchError
from d2lmgpu.watch.fits.answer import fits_script

NETWORK = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(5000, 64), nn.Dropout(0.1)
        self.layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
        self.norm, self.head = nn.BatchNorm1d(64), nn.Linear(64, 5000, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, X):
        H = self.layer(self.dropout(self.embedding(X)))
        return self.head(self.norm(H.flatten(0, 1)))

def make(batch_size):
    return torch.randint(0, 5000, (batch_size, 32)), torch.randint(0, 5000, (32 * batch_size,))
"""
# As readers write it; what is on the CPU has its numbers.
TRAINS = """
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
X, y = make(32)
data = TensorDataset(X, y.reshape(32, 32))
assert X.numpy().max() == max(X.flatten().tolist()) > 1
net = WRAPPED(Net().to(device))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda", enabled=AMP)
for epoch in range(3):
    for X, y in DataLoader(data, 16, shuffle=True, num_workers=1, pin_memory=True):
        X, y = X.to(device, non_blocking=True), y.flatten().cuda()
        optimizer.zero_grad()
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16, enabled=AMP):
            loss = nn.functional.cross_entropy(net(X), y)
        scaler.scale(loss).backward(retain_graph=TWICE)
        if TWICE:
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(f"{loss:.3f}", (net(X).argmax(-1).cpu() == y.cpu()).sum().item())
"""
SHARDED = """
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl")
with torch.device("meta"):
    net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)])
for layer in net:
    fully_shard(layer)
fully_shard(net)
net.to_empty(device="cuda")
optimizer = torch.optim.Adam(net.parameters())
while True:
    net(torch.rand(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
# By the first FSDP: from the CPU by the number of the device, or on the GPU before.
SHARDED_AT_FIRST = """
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

dist.init_process_group("nccl")
torch.cuda.set_device(0)
net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)])MOVED
policy = ModuleWrapPolicy({nn.Linear})
net = FullyShardedDataParallel(net, auto_wrap_policy=policy, OPTIONS)
optimizer = torch.optim.Adam(net.parameters())
while True:
    net(torch.rand(8, 512, device="cuda")).sum().backward()
    net.clip_grad_norm_(1.0)
    optimizer.step()
    optimizer.zero_grad()
"""
# On what there is, or on a GPU, which is an error here.
OF_MXNET = """
import mxnet as mx

net = mx.gluon.nn.Dense(2)
net.initialize(ctx=DEVICE)
trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
for _ in range(3):
    with mx.autograd.record():
        loss = net(mx.nd.ones((4, 3), ctx=DEVICE)).sum()
    loss.backward()
    trainer.step(4)
"""
# As with Hugging Face's networks: batches and outputs are dictionaries, the loss is the network's
# own, and two groups of parameters decay otherwise.
OF_DICTIONARIES = """
from torch.utils.data import DataLoader

class Output(dict):
    __getattr__ = dict.__getitem__

class WithLoss(Net):
    def forward(self, input_ids=None, attention_mask=None, labels=None):
        assert attention_mask.all() and input_ids.shape == labels.shape
        logits = super().forward(input_ids)
        loss = nn.functional.cross_entropy(logits, labels.flatten(), ignore_index=-100)
        return Output(loss=loss, logits=logits)

X, y = make(64)
rows = [
    {"input_ids": X[i], "attention_mask": torch.ones_like(X[i]), "labels": y[32 * i :][:32]}
    for i in range(64)
]
model = WithLoss().to("cuda")
model.train()
decay = {id(p) for p in model.parameters() if p.dim() > 1}
optimizer = torch.optim.AdamW(
    [
        {"params": [p for p in model.parameters() if id(p) in decay], "weight_decay": 0.01},
        {"params": [p for p in model.parameters() if id(p) not in decay], "weight_decay": 0.0},
    ]
)
for batch in DataLoader(rows, batch_size=16):
    batch = {name: tensor.to(next(model.parameters()).device) for name, tensor in batch.items()}
    out = model(**batch)
    out.loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(out.loss.item())
"""
ZERO_1 = """
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
net = DistributedDataParallel(nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda())
optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam)
while True:
    net(torch.rand(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def script(tmp_path):
    def write(text, **values):
        for name, value in values.items():
            text = text.replace(name, value)
        path = tmp_path / "train.py"
        path.write_text(text)
        return path

    return write


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def trained(batch_size, precision="float32", devices=1, optimizer=adam):
    """The same steps, given piece by piece."""
    names = {}
    exec(NETWORK, names)
    loss = lambda net, X, y: nn.functional.cross_entropy(net(X), y)  # noqa: E731
    return fits(names["Net"], names["make"], loss, optimizer, batch_size, precision, devices)


@pytest.mark.parametrize("amp, precision", [(False, "float32"), (True, "amp bfloat16")])
def test_a_script_takes_what_its_steps_take(script, amp, precision):
    path = script(NETWORK + TRAINS, WRAPPED="", AMP=str(amp), TWICE="False")
    (answer,) = fits_script(path, card="RTX 3090")
    expected = trained(16, precision)
    assert answer.fit.peak == pytest.approx(expected.peak, rel=0.01)
    for part in ("parameters", "gradients", "optimizer state", "activations"):
        assert answer.fit.parts[part] == pytest.approx(expected.parts[part], rel=0.01, abs=1e5)
    line = int(answer.line.removeprefix("train.py:"))
    assert ".backward(" in path.read_text().splitlines()[line - 1]


@pytest.mark.soak
def test_remedies_of_a_script_are_those_of_its_pieces(script):
    """It has no blocks in a row to recompute, and no other device."""
    path = script(NETWORK + TRAINS, WRAPPED="", AMP="False", TWICE="False")
    (answer,) = fits_script(path, card="T4", remedies=True)
    assert {*answer.remedies} == {"mixed precision", "SGD"}
    expected = {
        "mixed precision": trained(16, "amp float16"),
        "SGD": trained(16, optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1)),
    }
    for name, fit in expected.items():
        assert answer.remedies[name].peak == pytest.approx(fit.peak, rel=0.01), name
        assert answer.remedies[name].peak < answer.fit.peak


def test_gradients_that_are_added_up_are_told_apart_from_activations(script):
    text = script(NETWORK + TRAINS, WRAPPED="", AMP="False", TWICE="True")
    (answer,) = fits_script(text, card="T4")
    statistics = 2 * 64 * 4 + 8  # of the batch norm, which have no gradient
    assert answer.fit.parts["gradients"] == answer.fit.parts["parameters"] - statistics


def test_buckets_are_counted_where_several_devices_train(script):
    ddp = "dist.init_process_group('nccl') or nn.parallel.DistributedDataParallel"
    text = "import torch.distributed as dist" + NETWORK + TRAINS
    first, second = fits_script(
        script(text, WRAPPED=f"({ddp})", AMP="False", TWICE="False"), card="T4", devices=(1, 2)
    )
    assert first.fit.parts["buckets"] == 0
    assert (
        second.fit.parts["buckets"] == second.fit.parts["parameters"] - 2 * 64 * 4 - 8
    )  # statistics


def test_a_sharded_network_takes_what_its_steps_take(script):
    (answer,) = fits_script(script(NETWORK + SHARDED), card="T4", devices=[4])

    def net():
        net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)])
        for layer in net:
            fully_shard(layer)
        return fully_shard(net)

    expected = fits(
        net,
        lambda n: [torch.rand(n, 512)],
        lambda net, X: net(X).sum(),
        torch.optim.Adam,
        8,
        devices=4,
    )
    assert answer.fit.peak == pytest.approx(expected.peak, rel=0.05)


@pytest.mark.parametrize(
    "moved, options",
    [
        ("", "device_id=torch.cuda.current_device()"),
        (".cuda()", "use_orig_params=True"),
    ],
)
def test_what_the_first_fsdp_shards_takes_what_its_steps_take(script, moved, options):
    text = NETWORK + SHARDED_AT_FIRST
    (answer,) = fits_script(script(text, MOVED=moved, OPTIONS=options), card="T4", devices=[4])

    def net():
        net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)])
        return FullyShardedDataParallel(net, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))

    def loss(net, X):
        return net(X).sum()

    expected = fits(net, lambda n: [torch.rand(n, 512)], loss, torch.optim.Adam, 8, devices=4)
    assert answer.fit.peak == pytest.approx(expected.peak, rel=0.05)
    assert answer.fit.late == expected.late > 0
    assert answer.fit.parts["optimizer state"] == pytest.approx(
        8 * 4 * (512**2 + 512) / 4, rel=0.01
    )


def test_the_optimizer_of_zero_1_has_a_share_of_the_state(script):
    path = script(NETWORK + ZERO_1)
    first, four = fits_script(path, card="T4", devices=[1, 4])
    assert first.fit.parts["optimizer state"] == pytest.approx(
        2 * first.fit.parts["parameters"], rel=0.001
    )
    assert four.fit.parts["optimizer state"] == pytest.approx(
        first.fit.parts["optimizer state"] / 4, rel=0.001
    )
    assert four.fit.parts["buckets"] == four.fit.parts["parameters"]


def test_batches_and_outputs_may_be_dictionaries_and_the_loss_the_networks_own(script):
    """What a script holds in ``out`` until its next batch are the logits before."""
    path = script(NETWORK + OF_DICTIONARIES)
    (answer,) = fits_script(path, card="T4")
    expected, logits = trained(16), 4 * 16 * 32 * 5000
    assert answer.fit.peak == pytest.approx(expected.peak + logits, rel=0.02)
    for part in ("parameters", "gradients", "optimizer state"):
        assert answer.fit.parts[part] == pytest.approx(expected.parts[part], rel=0.01, abs=1e5)
    line = int(answer.line.removeprefix("train.py:"))
    assert path.read_text().splitlines()[line - 1].strip() == "out.loss.backward()"


@pytest.mark.parametrize("device", ["mx.cpu()", "mx.gpu()"])
def test_what_mxnet_takes_cannot_be_told(script, device):
    with pytest.raises(WatchError, match=r"^It cannot be told: the script trains with MXNet"):
        fits_script(script(OF_MXNET, DEVICE=device), card="T4")


REFUSED = {
    "net = nn.Linear(2, 2)\nnet(torch.ones(1, 2)).sum().backward()": "puts nothing on a GPU",
    "net = nn.Linear(2, 2).cuda()\nnet(torch.ones(1, 2))": "Expected all tensors to be on the same",
    "net = nn.Linear(2, 2).cuda()": "never trained",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_told_is_said(script, text):
    with pytest.raises(WatchError, match=REFUSED[text]):
        fits_script(script(NETWORK + text), card="T4")


@pytest.mark.parametrize("wrong", [{"card": "RTX 9999"}, {"card": "T4", "devices": [0]}])
def test_what_cannot_be_asked_is_named(script, wrong):
    with pytest.raises(WatchError, match=r"9999.*RTX 3090|devices is 0: give"):
        fits_script(script(NETWORK), **wrong)


def test_the_command(script):
    path = script(NETWORK + TRAINS, WRAPPED="", AMP="False", TWICE="False")
    command = [sys.executable, "-m", "d2lmgpu", "fits", "--gpu"]
    done = subprocess.run([*command, "T4", "--json", "--", path], capture_output=True, text=True)
    (answer,) = json.loads(done.stdout)
    assert answer["verdict"] == "fits" and answer["low"] < answer["high"]
    assert sum(answer["parts"].values()) == answer["peak"] <= answer["allocated"]
    wrong = subprocess.run([*command, "RTX 9999", "--", path], capture_output=True, text=True)
    assert wrong.returncode and "RTX 9999" in wrong.stderr and "RTX 3090" in wrong.stderr
