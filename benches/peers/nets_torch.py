"""The three nets of the FedPnP paper in PyTorch: CPU milliseconds of one training step on one core.

    python nets_torch.py NET [--batch 128] [--steps 8] [--repeats 12]

A step is forward, backward and the update of plain SGD. Prints JSON: the fastest and the median repeat, per step.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn


def mnist_cnn():
    return (1, 28, 28), 10, nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=2), nn.BatchNorm2d(16), nn.Tanh(), nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2), nn.BatchNorm2d(32), nn.Tanh(), nn.MaxPool2d(2, stride=1),
        nn.Flatten(), nn.Linear(512, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Linear(32, 10))


def cifar():
    return (3, 32, 32), 10, nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.BatchNorm1d(120), nn.ReLU(),
        nn.Linear(120, 84), nn.BatchNorm1d(84), nn.ReLU(), nn.Linear(84, 10))


def har_mlp():
    return (900,), 6, nn.Sequential(nn.Linear(900, 400), nn.BatchNorm1d(400), nn.ReLU(), nn.Linear(400, 6))


NETS = {"mnist-cnn": mnist_cnn, "cifar": cifar, "har-mlp": har_mlp}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("net", choices=NETS)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=12)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape, classes, net = NETS[options.net]()
    x = [torch.randn(options.batch, *shape) for _ in range(options.steps)]
    y = [torch.randint(0, classes, (options.batch,)) for _ in range(options.steps)]
    descent = torch.optim.SGD(net.parameters(), lr=0.01)
    goal = nn.CrossEntropyLoss()
    times = []
    for repeat in range(options.repeats + 1):
        begin = time.process_time()
        for features, targets in zip(x, y):
            descent.zero_grad()
            goal(net(features), targets).backward()
            descent.step()
        if repeat > 0:  # The first warms up.
            times.append(1e3 * (time.process_time() - begin) / options.steps)
    print(json.dumps({"torch": torch.__version__, "fastest": min(times), "median": statistics.median(times)}))


if __name__ == "__main__":
    main()
