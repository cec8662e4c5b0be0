"""Published throughputs, each with source and hardware, and what the model may do with it.

`use` is "fit" (parameters may be fitted to the row), "held out" (predicted and compared) or
"reported" (predicted, but the hardware or the set-up is not named well enough to count).
"""

from dataclasses import dataclass

FASHION_MNIST = 60_000  # training images, also of MNIST


@dataclass(frozen=True)
class Row:
    """`rate` is examples (or tokens) per second of all k devices together, at `batch_size` each
    step over all devices."""

    table: str
    model: str
    k: int
    batch_size: int
    rate: float
    use: str
    hardware: str
    source: str


def _epochs(table, use, hardware, source, **models):
    """Rows from seconds per epoch: model -> {devices: (batch size, seconds)}; fits use one GPU."""
    return [
        Row(table, model, k, batch, FASHION_MNIST / seconds, "fit" if k == 1 else use, hardware,
            source)
        for model, runs in models.items()
        for k, (batch, seconds) in runs.items()
    ]  # fmt: skip


def _curve(table, model, per_device, hardware, source, rates):
    """Weak scaling: devices -> rate; fits use 8 to 32 devices, one device is only for reading."""
    return [
        Row(table, model, k, per_device * k, rate,
            "fit" if 8 <= k <= 32 else "held out" if k > 32 else "reported", hardware, source)
        for k, rate in rates.items()
    ]  # fmt: skip


ROWS = [
    *_epochs(
        "MXNet 2019", "held out", "V100",
        "D2L one-day course, 2019 (10 epochs of Fashion-MNIST)",
        lenet={1: (256, 1.8), 2: (256, 2.5)}, resnet18={1: (256, 13.2), 2: (512, 7.3)},
    ),
    *_epochs(
        "MXNet 2023", "reported", "SageMaker, GPU not named",
        "d2l-ai/d2l-en-sagemaker, August 2023",
        lenet={1: (256, 5.5), 2: (256, 6.9)}, resnet18={1: (256, 14.0), 2: (512, 11.1)},
    ),
    *_epochs(
        "PyTorch 2023", "reported", "SageMaker, GPU not named",
        "d2l-ai/d2l-pytorch-sagemaker, August 2023",
        lenet={1: (256, 3.0), 2: (256, 2.8)}, resnet18={1: (256, 12.2), 2: (512, 7.5)},
    ),
    *_epochs(
        "Lecture 2019", "reported", "two unequal GPUs, one an M60",
        "D2L lecture, 2019", lenet={1: (256, 2.2), 2: (256, 2.3)},
    ),
    *_epochs(
        "Gluon lab", "reported", "AWS p3.8xlarge (V100)",
        "Gluon lab on MNIST, 5 epochs", mnist_cnn={1: (64, 2.2), 2: (128, 2.3)},
    ),
    *(
        Row(f"d2l-neu {kind}", "resnet18", k, batch, rate, "fit" if k == 1 else "held out",
            "4x RTX 4090, no peer access",
            "smolix/d2l-neu, Multi-GPU in Practice (Fashion-MNIST at 64x64, DDP)")
        for kind, k, batch, rate in [
            ("weak", 1, 256, 2107), ("weak", 2, 512, 3714), ("weak", 4, 1024, 6924),
            ("strong", 1, 512, 2092), ("strong", 2, 512, 3717), ("strong", 4, 512, 5885),
        ]
    ),
    *(
        row
        for model, per_device, rates in [
            ("alexnet", 512, [457.07, 2852.5, 4244.18, 7945.57, 15840.52, 31334.88, 61938.36]),
            ("inception-v3", 32, [30.4, 233.39, 447.61, 882.57, 1761.24, 3416.2, 6660.98]),
            ("resnet-152", 32, [20.08, 153.07, 298.03, 595.53, 1179.86, 2333.47, 4630.42]),
        ]
        for row in _curve(
            "MXNet EC2", model, per_device, "16x AWS p2.16xlarge (256 K80)",
            "apache/mxnet, example/image-classification/README.md, Scalability Results",
            dict(zip([1, 8, 16, 32, 64, 128, 256], rates, strict=True)),
        )
    ),
    *(
        row
        for model, per_device, rates in [
            ("inception-v3", 64, [29.7, 229, 459, 902, 1783]),
            ("resnet-50", 64, [52.4, 378, 751, 1388, 2744]),
            ("resnet-152", 32, [19.4, 146, 291, 565, 981]),
        ]
        for row in _curve(
            "TensorFlow EC2", model, per_device, "8x AWS p2.8xlarge (64 K80)",
            "tensorflow/docs, Benchmarks, May 2017 (synthetic data, parameter servers)",
            dict(zip([1, 8, 16, 32, 64], rates, strict=True)),
        )
    ),
    *_curve(
        "Ultra-Scale", "llm", 1, "H100, 8 a machine",
        "Hugging Face, The Ultra-Scale Playbook (tokens a second)",
        {8: 8 * 40150, 16: 16 * 37610, 32: 32 * 35368, 64: 64 * 31112, 128: 128 * 26446,
         256: 256 * 15700},
    ),
]  # fmt: skip

# Single points without a curve: efficiency at k devices against `base` devices.
EFFICIENCIES = [
    ("Goyal et al. 2017", "resnet-50", 8, 256, 0.90, "P100, 8 a server, 50 Gb Ethernet"),
    ("Horovod 2018", "inception-v3", 1, 512, 0.90, "128 servers with 4 P100, 25 Gb Ethernet"),
    ("Horovod 2018", "vgg-16", 1, 512, 0.68, "128 servers with 4 P100, 25 Gb Ethernet"),
]


def rows(table: str, use: str | None = None) -> list[Row]:
    """The rows of a table, all or those of one use."""
    return [row for row in ROWS if row.table == table and use in (None, row.use)]


def tables() -> list[str]:
    """Names of the tables, in order."""
    return list(dict.fromkeys(row.table for row in ROWS))
