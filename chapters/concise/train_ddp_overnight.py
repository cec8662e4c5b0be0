"""What train_ddp.py does, for a night that nobody watches:

    torchrun --standalone --nproc-per-node=gpu --max-restarts=3 train_ddp_overnight.py \\
        --epochs 20 --checkpoints lenet

Copy both files into one folder. This one says what is missing before it begins, and its checkpoints
outlive a damaged file, a full disk and a power failure. It goes on with the settings that a
training was begun with, or not at all. It can mirror images, and repeat itself bit for bit on GPUs.
"""

import io
import os
import sys
import zipfile
from pathlib import Path

import torch
from torch import distributed as dist
from torch.utils.data import Dataset
from train_ddp import fashion_mnist, lenet, make_parser, train


def night_parser():
    """The settings of train_ddp.py, and two more."""
    parser = make_parser()
    parser.add_argument("--augment", action="store_true", help="mirror every other image")
    parser.add_argument("--deterministic", action="store_true", help="slower on a GPU")
    return parser


def save_durably(args, net, optimizer, epochs_done):
    """Write a checkpoint and keep the one before it. A full disk is told, and ends nothing."""
    state = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_done": epochs_done,
        "settings": vars(args),
    }
    data, path = io.BytesIO(), Path(args.checkpoints, f"epoch-{epochs_done:05}.pt")
    torch.save(state, data)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".part"), "wb") as file:
            file.write(data.getvalue())
            file.flush()
            os.fsync(file.fileno())  # on the disk, before it gets its name
        os.replace(file.name, path)
        for old in sorted(path.parent.glob("epoch-*.pt"))[:-2]:
            old.unlink()
    except OSError as error:
        print(f"{path} was not saved: {error}", file=sys.stderr, flush=True)


def is_whole(path):
    """Whether a file is as ``torch.save`` wrote it. ``torch.load`` would not see a flipped bit."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def newest(folder):
    """The name of the newest checkpoint that is whole; None if there is none yet."""
    files = sorted(Path(folder).glob("epoch-*.pt"), reverse=True)
    for file in files:
        if is_whole(file):
            return str(file)
        print(f"{file} is damaged; the one before it is used.", file=sys.stderr, flush=True)
    if files:  # to begin anew would throw away what was trained
        raise SystemExit(f"No checkpoint in {folder} is whole. Give another --checkpoints.")
    return None


def resume_checked(args, net, optimizer):
    """Go on from the checkpoint that rank 0 finds, if there is one; the number of epochs done.

    Ends the script if a setting that decides on the weights is not that of the checkpoint.
    """
    latest = [newest(args.checkpoints) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(latest)  # a name: each rank reads the file itself
    if latest[0] is None:
        return 0
    checkpoint = torch.load(latest[0], map_location="cpu", weights_only=True)
    begun = checkpoint["settings"]
    names = "lr", "batch_size", "seed", "num_train", "clip", "dropout", "augment"
    changed = [f"{name}={begun[name]}" for name in names if begun[name] != getattr(args, name)]
    if changed:
        raise SystemExit(
            f"The checkpoint was begun with {', '.join(changed)}. "
            "Give the same, or another --checkpoints."
        )
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    if dist.get_rank() == 0:
        print(f"goes on after epoch {checkpoint['epochs_done']} of {args.epochs}", flush=True)
    return checkpoint["epochs_done"]


def load(folder, part, number):
    """The images of ``fashion_mnist``, or the end, with a word on what is missing."""
    try:
        data = fashion_mnist(folder, part, number)
    except FileNotFoundError as error:
        raise SystemExit(
            f"{error.filename} is not there. torchvision's FashionMNIST('.', download=True) "
            "brings it, then give --data FashionMNIST/raw."
        ) from None
    if len(data) < number:
        raise SystemExit(f"{number} images of {part} were asked for, there are {len(data)}.")
    return data


class Mirrored(Dataset):
    """The examples of ``data``, half of the images mirrored: each time others."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        X, y = self.data[i]
        return X.flip(-1) if torch.rand(()) < 0.5 else X, y


def night():
    args = night_parser().parse_args()
    train_data = load(args.data, "train", args.num_train)
    test_data = load(args.data, "t10k", args.num_test)
    if args.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it
    torch.use_deterministic_algorithms(args.deterministic)
    if args.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if args.device == "cuda" else "gloo")
    torch.manual_seed(args.seed)
    net = lenet(args.dropout).to(args.device)
    train_data = Mirrored(train_data) if args.augment else train_data
    train(net, train_data, test_data, args, save_durably, resume_checked)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    night()
