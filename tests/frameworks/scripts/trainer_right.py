import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Points(Dataset):
    def __init__(self):
        torch.manual_seed(0)
        self.X, self.y = torch.randn(512, 20), torch.randint(5, (512,))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"x": self.X[i], "labels": self.y[i]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))

    def forward(self, x, labels):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


if __name__ == "__main__":
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=16,
        num_train_epochs=3,
        learning_rate=0.1,
        optim="sgd",
        lr_scheduler_type="constant",
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        seed=0,
    )
    Trainer(model=Net(), args=arguments, train_dataset=Points()).train()
