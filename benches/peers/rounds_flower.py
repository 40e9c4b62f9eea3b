"""Rounds of FedAvg in Flower's simulation, in pfl and in a plain PyTorch loop, for the bench `rounds`.

    rounds_flower.py torch  net      one core, no framework
    rounds_flower.py flower net|small
    rounds_flower.py pfl    small

`net`: 20 clients with 600 random images, the MNIST net of the FedPnP paper, E = 5, batch 128. `small`: 1,000 clients with 60
parameters and 10 records each, one gradient step. Prints one JSON object: seconds per round (wall), clients, and the
largest memory of all processes together in MiB. Data are drawn before the clock starts.
"""

import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

ROUNDS = {"net": 2, "small": 3}
CLIENTS = {"net": 20, "small": 1000}


def memory_of_all():
    """Resident memory of this process and all its descendants, in MiB; shared pages count once for each."""
    table = subprocess.run(["ps", "-eo", "pid,ppid,rss"], capture_output=True, text=True).stdout.split("\n")[1:]
    rows = [tuple(map(int, line.split())) for line in table if line.strip()]
    family, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent, _ in rows if parent in family} | family
        grown, family = len(more) > len(family), more
    return sum(rss for pid, _, rss in rows if pid in family) / 1024


def mnist_net():
    import torch.nn as nn

    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, 2), nn.BatchNorm2d(16), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.BatchNorm2d(32), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(512, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Linear(32, 10),
    )


def images(client):
    import torch

    draw = torch.Generator().manual_seed(client)
    return torch.randn(600, 1, 28, 28, generator=draw), torch.randint(0, 10, (600,), generator=draw)


def train(net, x, y):
    import torch

    net.train()
    step = torch.optim.SGD(net.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    for _ in range(5):
        order = torch.randperm(len(x))
        for batch in order.split(128):
            step.zero_grad()
            loss_of(net(x[batch]), y[batch]).backward()
            step.step()


def small_step(w, client):
    draw = np.random.default_rng(client)
    x, y = draw.standard_normal((10, 60)), draw.standard_normal(10)
    return w - 0.01 * 2 / 10 * x.T @ (x @ w - y)


def plain(_):
    import torch

    torch.set_num_threads(1)
    data = [images(client) for client in range(CLIENTS["net"])]
    served = {key: value.clone() for key, value in mnist_net().state_dict().items()}
    start = time.perf_counter()
    for _ in range(ROUNDS["net"]):
        total = None
        for x, y in data:
            net = mnist_net()
            net.load_state_dict(served)
            train(net, x, y)
            own = {key: value.double() for key, value in net.state_dict().items()}
            total = own if total is None else {key: total[key] + own[key] for key in own}
        served = {key: (value / len(data)).to(served[key].dtype) for key, value in total.items()}
    return (time.perf_counter() - start) / ROUNDS["net"], memory_of_all()


def flower(which):
    import warnings

    warnings.filterwarnings("ignore")
    import flwr
    from flwr.client import ClientApp, NumPyClient
    from flwr.common import ndarrays_to_parameters
    from flwr.server import ServerApp, ServerAppComponents, ServerConfig
    from flwr.server.strategy import FedAvg
    from flwr.simulation import run_simulation

    seen, clock = {}, {}

    class Trainer(NumPyClient):
        def __init__(self, client):
            self.client = client

        def fit(self, parameters, config):
            if which == "small":
                return [small_step(parameters[0], self.client)], 10, {}
            import torch

            torch.set_num_threads(1)
            if self.client not in seen:
                seen[self.client] = images(self.client)
            net = mnist_net()
            keys = net.state_dict().keys()
            net.load_state_dict({key: torch.tensor(value) for key, value in zip(keys, parameters)})
            train(net, *seen[self.client])
            return [value.numpy() for value in net.state_dict().values()], 600, {}

    def client_fn(context):
        return Trainer(int(context.node_config["partition-id"])).to_client()

    first = [np.zeros(60)] if which == "small" else [v.numpy() for v in mnist_net().state_dict().values()]

    class Timed(FedAvg):
        def aggregate_fit(self, server_round, results, failures):
            done = super().aggregate_fit(server_round, results, failures)
            clock[server_round] = time.perf_counter()
            clock["memory"] = max(clock.get("memory", 0), memory_of_all())
            clock["answers"] = len(results)
            return done

    def server_fn(context):
        count = CLIENTS[which]
        strategy = Timed(
            fraction_fit=1.0, fraction_evaluate=0.0, min_fit_clients=count, min_available_clients=count,
            initial_parameters=ndarrays_to_parameters(first),
        )
        # The first round starts workers and is left out of the clock.
        return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=ROUNDS[which] + 1))

    run_simulation(
        ServerApp(server_fn=server_fn), ClientApp(client_fn=client_fn), num_supernodes=CLIENTS[which],
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 2}},
    )
    assert clock["answers"] == CLIENTS[which], clock
    return (clock[ROUNDS[which] + 1] - clock[1]) / ROUNDS[which], clock["memory"], flwr.__version__


def pfl(which):
    """pfl's simulated backend with its PyTorch model, one process; a linear model of 60 parameters."""
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNTrainHyperParams
    from pfl.model.pytorch import PyTorchModel

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(60, 1, bias=False)

        def forward(self, x):
            return self.layer(x)

        def loss(self, x, y, eval=False):
            return ((self(x)[:, 0] - y) ** 2).mean()

        def metrics(self, x, y, eval=False):
            return {}

    torch.set_num_threads(1)
    draw = np.random.default_rng(0)
    data = {
        user: (torch.tensor(draw.standard_normal((10, 60)), dtype=torch.float32),
               torch.tensor(draw.standard_normal(10), dtype=torch.float32))
        for user in range(CLIENTS[which])
    }
    users = list(data)
    federated = FederatedDataset(
        lambda user: Dataset(raw_data=list(data[user]), user_id=user), get_user_sampler("minimize_reuse", users)
    )
    net = Linear()
    model = PyTorchModel(model=net, local_optimizer_create=torch.optim.SGD,
                         central_optimizer=torch.optim.SGD(net.parameters(), lr=1.0))
    clock = []

    class Clock(TrainingProcessCallback):
        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            clock.append(time.perf_counter())
            return False, __import__("pfl.metrics", fromlist=["Metrics"]).Metrics()

    rounds = ROUNDS[which] + 1
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(central_num_iterations=rounds, evaluation_frequency=10 * rounds,
                                           train_cohort_size=CLIENTS[which], val_cohort_size=0),
        backend=SimulatedBackend(training_data=federated, val_data=federated),
        model=model,
        model_train_params=NNTrainHyperParams(local_num_epochs=1, local_learning_rate=0.01, local_batch_size=10),
        model_eval_params=None,
        callbacks=[Clock()],
    )
    return (clock[-1] - clock[0]) / (len(clock) - 1), memory_of_all()


def main():
    tool, which = sys.argv[1], sys.argv[2]
    found = {"torch": plain, "flower": flower, "pfl": pfl}[tool](which)
    said = {"seconds": found[0], "clients": CLIENTS[which], "memory_mib": found[1]}
    said["cpu_seconds"] = sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
                              for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
