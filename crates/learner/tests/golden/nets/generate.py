"""Writes gradients.txt and round.txt from PyTorch in 64 bits.

    python generate.py        (torch 2.x; writes beside itself)

Parameters and records are not stored: both sides make them from the same sequence of integers, as exact binary
fractions, so that they are equal in 32 and 64 bits. The n-th state is 1103515245 state + 12345 modulo 2^31; a value is
its bits 8 to 23 over 65536, less one half. Every case starts from its own state, draws the parameters part by part, then
the features of all records, then their targets.

A line is a word and what belongs to it. Of long gradients every k-th entry is stored, and the norm of all.
"""
import math
from pathlib import Path

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
HERE = Path(__file__).parent


class Sequence:
    def __init__(self, start):
        self.state = start

    def bits(self):
        self.state = (1103515245 * self.state + 12345) % 2**31
        return self.state >> 8 & 0xFFFF

    def value(self):
        return self.bits() / 65536 - 0.5


def build(shape, layers):
    """The layers as modules; `shape` is channels, height, width."""
    modules, flat = [], False
    c, h, w = shape
    for words in layers:
        name, *rest = words.split()
        numbers = [int(x) for x in rest if x.isdigit()]
        if name == "conv":
            channels, size, stride, pad = numbers
            modules.append(nn.Conv2d(c, channels, size, stride, pad))
            c, h, w = channels, (h + 2 * pad - size) // stride + 1, (w + 2 * pad - size) // stride + 1
        elif name == "max-pool":
            size, stride = numbers
            modules.append(nn.MaxPool2d(size, stride))
            h, w = (h - size) // stride + 1, (w - size) // stride + 1
        elif name == "dense":
            if not flat:
                modules.append(nn.Flatten())
                flat = True
            modules.append(nn.Linear(c * h * w, numbers[0]))
            c, h, w = numbers[0], 1, 1
        elif name == "batch-norm":
            modules.append(nn.BatchNorm1d(c) if flat else nn.BatchNorm2d(c))
        elif name == "group-norm":
            modules.append(nn.GroupNorm(numbers[0], c))
        elif name == "tanh":
            modules.append(nn.Tanh())
        elif name == "relu":
            modules.append(nn.ReLU())
        else:
            raise ValueError(words)
    if not flat:
        modules.append(nn.Flatten())
    return nn.Sequential(*modules), c * h * w


def parts(net):
    """(kind, tensor) of every part in the order of the flat vector."""
    found = []
    for module in net:
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            found += [("linear", module.weight), ("linear", module.bias)]
        elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            found += [("one", module.weight), ("zero", module.bias)]
            found += [("zero", module.running_mean), ("one", module.running_var)]
        elif isinstance(module, nn.GroupNorm):
            found += [("one", module.weight), ("zero", module.bias)]
    return found


def fill(net, sequence):
    """Draws all parameters and gives the factor of each part: a power of two for weights and bias, else 0."""
    factors, fan = [], 1
    with torch.no_grad():
        for kind, tensor in parts(net):
            if kind == "linear" and tensor.dim() > 1:
                fan = tensor[0].numel()
            factor = 2.0 ** -math.floor(math.log2(math.sqrt(fan))) if kind == "linear" else 0.0
            values = [sequence.value() for _ in range(tensor.numel())]
            values = [v * factor if kind == "linear" else v + 1 if kind == "one" else v for v in values]
            tensor.copy_(torch.tensor(values).reshape(tensor.shape))
            factors.append(kind if kind != "linear" else repr(factor))
    return factors


def records(rows, shape, outputs, goal, sequence):
    x = torch.tensor([4 * sequence.value() for _ in range(rows * math.prod(shape))]).reshape(rows, *shape)
    if goal == "cross-entropy":
        return x, torch.tensor([sequence.bits() % outputs for _ in range(rows)])
    return x, torch.tensor([2 * sequence.value() for _ in range(rows * outputs)]).reshape(rows, outputs)


def loss_of(goal, z, y):
    return nn.functional.cross_entropy(z, y) if goal == "cross-entropy" else ((z - y) ** 2).sum(1).mean()


def line(word, values):
    return word + "".join(f" {float(v):.9g}" for v in values)


MNIST = ["conv 16 size 8 stride 2 pad 2", "batch-norm", "tanh", "max-pool 2 stride 1",
         "conv 32 size 4 stride 2 pad 0", "batch-norm", "tanh", "max-pool 2 stride 1",
         "dense 32", "batch-norm", "tanh", "dense 10"]
CIFAR = ["conv 6 size 5 stride 1 pad 0", "batch-norm", "relu", "max-pool 2 stride 2",
         "conv 16 size 5 stride 1 pad 0", "batch-norm", "relu", "max-pool 2 stride 2",
         "dense 120", "batch-norm", "relu", "dense 84", "batch-norm", "relu", "dense 10"]
HAR = ["dense 400", "batch-norm", "relu", "dense 6"]
CASES = [
    ("dense", (7, 1, 1), "squared", 5, ["dense 3"]),
    ("cross-entropy", (7, 1, 1), "cross-entropy", 18, ["dense 4"]),
    ("tanh", (5, 1, 1), "squared", 4, ["dense 6", "tanh", "dense 2"]),
    ("relu", (5, 1, 1), "squared", 4, ["dense 6", "relu", "dense 2"]),
    ("conv", (2, 6, 5), "squared", 3, ["conv 3 size 3 stride 1 pad 0"]),
    ("conv-stride-pad", (2, 7, 6), "squared", 17, ["conv 3 size 3 stride 2 pad 1", "conv 2 size 2 stride 1 pad 1"]),
    ("max-pool", (1, 6, 6), "squared", 3, ["conv 2 size 3 stride 1 pad 0", "max-pool 2 stride 2", "dense 2"]),
    ("max-pool-overlap", (1, 6, 6), "squared", 3, ["conv 2 size 2 stride 1 pad 0", "max-pool 3 stride 1", "dense 2"]),
    ("batch-norm", (6, 1, 1), "cross-entropy", 9, ["dense 5", "batch-norm", "tanh", "dense 3"]),
    ("batch-norm-2d", (2, 5, 5), "cross-entropy", 20, ["conv 4 size 3 stride 1 pad 0", "batch-norm", "relu", "dense 3"]),
    ("group-norm", (2, 5, 5), "cross-entropy", 5, ["conv 6 size 2 stride 1 pad 0", "group-norm 3", "relu", "dense 3"]),
    ("mnist-cnn", (1, 28, 28), "cross-entropy", 20, MNIST),
    ("cifar", (3, 32, 32), "cross-entropy", 20, CIFAR),
    ("har-mlp", (900, 1, 1), "cross-entropy", 33, HAR),
]
MOST = 60  # Stored entries of a part.


def gradients():
    lines = [f"torch {torch.__version__}"]
    for number, (name, shape, goal, rows, layers) in enumerate(CASES):
        sequence = Sequence(number + 1)
        net, outputs = build(shape, layers)
        factors = fill(net, sequence)
        flat_input = layers[0].startswith("dense")
        x, y = records(rows, shape, outputs, goal, sequence)
        x = x.flatten(1) if flat_input else x
        net.eval()
        with torch.no_grad():
            predicted = net(x)
        net.train()
        loss = loss_of(goal, net(x), y)
        loss.backward()
        lines += [f"case {name}", "input " + " ".join(map(str, shape)), f"goal {goal}", f"rows {rows}"]
        lines += [f"layer {words}" for words in layers]
        lines += ["factors " + " ".join(factors), line("predicted", predicted.flatten()[:MOST]), line("loss", [loss.item()])]
        for at, (_, tensor) in enumerate(parts(net)):
            if tensor.grad is None:
                lines.append(line(f"running {at}", tensor.flatten()[:MOST]))
            else:
                entries = tensor.grad.flatten()
                step = -(-entries.numel() // MOST)
                lines.append(line(f"gradient {at} {step}", [entries.norm(), *entries[::step]]))
    (HERE / "gradients.txt").write_text("\n".join(lines) + "\n")


def batches(order, size):
    """Mini-batches; a last one of a single record joins the one before."""
    cut = [order[i:i + size] for i in range(0, len(order), size)]
    if len(cut) > 1 and len(cut[-1]) == 1:
        cut[-2:] = [cut[-2] + cut[-1]]
    return cut


def fedavg_round():
    shape, goal, sizes, epochs, batch = (2, 6, 6), "cross-entropy", [20, 33, 17], 2, 8
    layers = ["conv 4 size 3 stride 1 pad 1", "batch-norm", "relu", "max-pool 2 stride 2",
              "dense 5", "batch-norm", "tanh", "dense 3"]
    rate, momentum, decay = 0.1, 0.9, 0.01
    sequence = Sequence(1000)
    net, outputs = build(shape, layers)
    factors = fill(net, sequence)
    start = [tensor.detach().clone() for _, tensor in parts(net)]
    mean = [torch.zeros_like(tensor) for tensor in start]
    losses = []
    for rows in sizes:
        x, y = records(rows, shape, outputs, goal, sequence)
        with torch.no_grad():
            for (_, tensor), value in zip(parts(net), start):
                tensor.copy_(value)
        descent = torch.optim.SGD(net.parameters(), lr=rate, momentum=momentum, weight_decay=decay)
        net.train()
        for epoch in range(epochs):
            total = 0.0
            for chosen in batches([(7 * i + epoch) % rows for i in range(rows)], batch):
                descent.zero_grad()
                loss = loss_of(goal, net(x[chosen]), y[chosen])
                loss.backward()
                descent.step()
                total += loss.item() * len(chosen)
        losses.append(total / rows)
        for sum_, (_, tensor) in zip(mean, parts(net)):
            sum_ += tensor.detach() * rows / sum(sizes)
    lines = [f"torch {torch.__version__}", "case round", "input " + " ".join(map(str, shape)), f"goal {goal}"]
    lines += ["clients " + " ".join(map(str, sizes)), f"epochs {epochs}", f"batch {batch}", f"rate {rate}"]
    lines += [f"momentum {momentum}", f"decay {decay}"] + [f"layer {words}" for words in layers]
    lines += ["factors " + " ".join(factors), line("losses", losses)]
    lines += [line(f"mean {at}", tensor.flatten()) for at, tensor in enumerate(mean)]
    (HERE / "round.txt").write_text("\n".join(lines) + "\n")


gradients()
fedavg_round()
