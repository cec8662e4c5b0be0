"""What ``fits`` tells of Hugging Face's networks, against PyTorch's own account of real tensors.

The networks are small ones of their kinds, with the vocabulary and the loss that they have.
"""

import pytest
import torch
import transformers as hf
from cpu_profile import measured
from torch import nn

from benchmarks.published_texts import labelled
from d2lmgpu.torch.memory import fits

SMALL = {"hidden_size": 192, "num_hidden_layers": 2, "num_attention_heads": 3}
GPT2 = {"n_embd": 192, "n_layer": 2, "n_head": 3}
LLAMA = SMALL | {"intermediate_size": 512, "num_key_value_heads": 1, "vocab_size": 32_000}
T5 = {
    "decoder_start_token_id": 0,
    "d_model": 192,
    "d_kv": 64,
    "d_ff": 512,
    "num_layers": 2,
    "num_heads": 3,
}
BERT = SMALL | {"intermediate_size": 768}
DISTILBERT = {"dim": 192, "n_layers": 2, "n_heads": 3, "hidden_dim": 768}
RESNET = {"hidden_sizes": [64, 128, 256, 512], "depths": [1, 1, 1, 1]}
LENGTH = 128  # tokens


class LoRA(nn.Module):
    """A layer that stays as it is, and a product of two small matrices that is trained."""

    def __init__(self, layer, inputs, outputs, rank=8):
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(inputs, rank, bias=False)
        self.up = nn.Linear(rank, outputs, bias=False)

    def forward(self, X):
        return self.layer(X) + self.up(self.down(X))


def gpt2(**settings):
    return hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2, **settings))


def eager_gpt2():
    return gpt2(attn_implementation="eager")


def gpt2_with_lora():
    net = gpt2().requires_grad_(False)
    for block in net.transformer.h:
        block.attn.c_attn = LoRA(block.attn.c_attn, 192, 3 * 192)
    return net


def gpt2_recomputed():
    net = gpt2()
    net.gradient_checkpointing_enable()
    return net


def llama():
    return hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA))


def t5():
    return hf.T5ForConditionalGeneration(hf.T5Config(**T5))


def bert():
    return hf.BertForSequenceClassification(hf.BertConfig(**BERT))


def distilbert():
    return hf.DistilBertForSequenceClassification(hf.DistilBertConfig(**DISTILBERT))


def vit():
    return hf.ViTForImageClassification(hf.ViTConfig(**BERT, image_size=64, patch_size=8))


def resnet():
    return hf.ResNetForImageClassification(hf.ResNetConfig(**RESNET))


def tokens(n):
    X = torch.zeros(n, LENGTH, dtype=torch.int64)
    return X, X.clone()


def pictures(n):
    return torch.rand(n, 3, 64, 64), torch.zeros(n, dtype=torch.int64)


def own_loss(net, X, y):
    return net(X, labels=y).loss


OPTIMIZERS = {
    "AdamW": torch.optim.AdamW,
    "AdamW, fused": lambda parameters: torch.optim.AdamW(parameters, fused=True),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "Adafactor": torch.optim.Adafactor,
}
NETWORKS = {  # the network, a batch, the optimizer, the precision
    "GPT-2": (gpt2, tokens, "AdamW", "float32"),
    "GPT-2, amp": (gpt2, tokens, "AdamW, fused", "amp bfloat16"),
    "GPT-2, eager attention": (eager_gpt2, tokens, "momentum", "float32"),
    "GPT-2, LoRA": (gpt2_with_lora, tokens, "AdamW", "float32"),
    "GPT-2, recomputed": (gpt2_recomputed, tokens, "AdamW", "float32"),
    "Llama": (llama, tokens, "AdamW", "float32"),
    "Llama, amp": (llama, tokens, "AdamW", "amp bfloat16"),
    "T5": (t5, tokens, "Adafactor", "float32"),
    "BERT": (bert, labelled(LENGTH), "AdamW", "float32"),
    "DistilBERT": (distilbert, labelled(LENGTH), "momentum", "amp bfloat16"),
    "ViT": (vit, pictures, "AdamW", "float32"),
    "ResNet": (resnet, pictures, "AdamW", "float32"),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_peak_is_that_of_real_tensors(name):
    make, batch, optimizer, precision = NETWORKS[name]
    given = make, batch, own_loss, OPTIMIZERS[optimizer], 4, precision
    peak, real = fits(*given).peak, measured(*given)
    print(f"{name}: {peak / 1e6:.1f} MB, in truth {real / 1e6:.1f}, {peak / real - 1:+.2%}")
    assert peak == pytest.approx(real, rel=0.06)
