"""PersFL and IFCA in numpy: a second opinion on the figures, and the peer of `cargo bench -p fedkin-experiment --bench persfl`.

    python persfl_numpy.py time one|federation|ifca [--repeats R] [--style plain|batched|loop]
    python persfl_numpy.py fig1a|fig1a-mean|fig1b|fig1c|guard|fig2|fig3|tuned [--seeds S] [--first F]

Algorithm 1 trains one target: in every iteration B other clients are drawn without repetition, each takes a gradient
step on the target's model with its own records, and the target keeps the step with the least loss on its own.

    mean scale   w - eta (2/m) X'(Xw - y)         sum scale   w - eta X'(Xw - y)

Every line is JSON. An error is |w - w*|^2 / d of the target. Over runs it is averaged in three ways: `log_of_mean` is
log10 of the mean error, `mean_of_log` the mean of log10, `median` log10 of the median.
"""
import argparse
import json
import time

import numpy as np


# ---------------------------------------------------------------- worlds
class World:
    """n clients with m records of d features; the model of a cluster is uniform in [-reach, reach]^d."""

    def __init__(self, rng, n, m, d, reach, sigma, clusters=2, sizes="equal"):
        self.n, self.m, self.d = n, m, d
        if sizes == "equal":
            cluster = np.arange(n) * clusters // n
        else:
            cuts = np.sort(rng.choice(np.arange(1, n), clusters - 1, replace=False))
            cluster = np.searchsorted(cuts, np.arange(n), side="right")
        self.cluster = rng.permutation(cluster)
        self.models = rng.uniform(-reach, reach, (clusters, d))
        self.x = rng.standard_normal((n, m, d))
        self.y = np.einsum("nmd,nd->nm", self.x, self.models[self.cluster])
        self.y += sigma * rng.standard_normal((n, m))

    def error(self, w, target):
        """|w - w*|^2 / d."""
        return ((w - self.models[self.cluster[target]]) ** 2).sum(-1) / self.d


def experiment_one(rng, ratio=2.0, sigma=0.0, clusters=2):
    return World(rng, 100, 10, int(round(10 * ratio)), 5.0, sigma, clusters)


def experiment_two(rng):
    # Noise is a standard deviation in the paper's (10).
    return World(rng, 3500, 30, 450, 10.0, 0.01, sizes="random")


# ---------------------------------------------------------------- Algorithm 1
class Guard:
    """Refuses a step whose loss is above 3 times a running geometric mean; after 20 refusals the next one is taken."""

    def __init__(self):
        self.log, self.refused = None, 0

    def takes(self, loss):
        log = np.log(max(loss, 1e-300))
        if self.log is None or self.refused >= 20:
            self.log, self.refused = log, 0
            return True
        if log > self.log + np.log(3.0):
            self.refused += 1
            return False
        self.log, self.refused = 0.7 * self.log + 0.3 * log, 0
        return True


def draws(rng, among, size, iterations):
    """`size` of `among` without repetition, for every iteration: all at once where that is small."""
    if among.size <= 1000:
        keys = rng.random((iterations, among.size))
        return among[np.argpartition(keys, size - 1, axis=1)[:, :size]]
    return among[np.stack([rng.choice(among.size, size, replace=False) for _ in range(iterations)])]


def algorithm1(world, rng, target, size, iterations, step, start, guard=False, oracle=False, marks=()):
    """The target's model, and its errors at the iterations in `marks`. `step` is eta with the gradient's factor."""
    x, y = world.x, world.y
    mine, own = x[target], y[target][:, None]
    others = np.arange(world.n)
    if oracle:
        others = others[world.cluster == world.cluster[target]]
    asked = draws(rng, others[others != target], size, iterations)
    w, accept, found = start.copy(), Guard(), []
    for k in range(iterations):
        features = x[asked[k]]
        residual = features @ w
        residual -= y[asked[k]]
        steps = w - step * (residual[:, None, :] @ features)[:, 0]
        fit = mine @ steps.T
        fit -= own
        losses = np.einsum("mb,mb->b", fit, fit) / world.m
        best = losses.argmin()
        if not guard or accept.takes(losses[best]):
            w = steps[best]
        if k + 1 in marks:
            found.append(world.error(w, target))
    return w, found


def plain(world, rng, target, size, iterations, step, start):
    """Algorithm 1 line by line, all candidates of an iteration at once."""
    others = np.delete(np.arange(world.n), target)
    w = start.copy()
    for _ in range(iterations):
        c = rng.choice(others, size, replace=False)
        gradients = np.einsum("bmd,bm->bd", world.x[c], world.x[c] @ w - world.y[c])
        steps = w - step * gradients
        losses = ((world.x[target] @ steps.T - world.y[target][:, None]) ** 2).mean(0)
        w = steps[losses.argmin()]
    return w, []


class Client:
    """One client of `loop`: its records, its loss, its step."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def step(self, w, size):
        return w - size * (self.x.T @ (self.x @ w - self.y))

    def loss(self, w):
        return np.mean((self.x @ w - self.y) ** 2)


def loop(world, rng, target, size, iterations, step, start):
    """Algorithm 1 as a federated simulation is usually written: one object per client, candidates in turn."""
    clients = [Client(world.x[i], world.y[i]) for i in range(world.n)]
    others = [i for i in range(world.n) if i != target]
    w = start.copy()
    for _ in range(iterations):
        steps = [clients[i].step(w, step) for i in rng.choice(others, size, replace=False)]
        w = min(steps, key=clients[target].loss)
    return w, []


# ---------------------------------------------------------------- IFCA
def ifca(world, models, iterations, step, divide, target, marks):
    """Errors of the model that the target picks, and of model 0, at the iterations in `marks`."""
    x, y = world.x, world.y
    models = models.copy()
    own, first = [], []

    def picks():
        residual = np.einsum("nmd,kd->knm", x, models, optimize=True) - y
        return (residual**2).sum(2).argmin(0), residual

    for t in range(iterations):
        pick, residual = picks()
        chosen = residual[pick, np.arange(world.n)]
        gradient = (chosen[:, None, :] @ x)[:, 0]
        for k in range(len(models)):
            mine = pick == k
            if mine.any():
                models[k] -= step * gradient[mine].sum(0) / (mine.sum() if divide == "pickers" else world.n)
        if t + 1 in marks:
            pick, _ = picks()
            own.append(world.error(models[pick[target]], target))
            first.append(world.error(models[0], target))
    return own, first


# ---------------------------------------------------------------- figures
def averages(errors):
    errors = np.asarray(errors)
    logs = np.log10(errors)
    mean = errors.mean()
    spread = errors.std(ddof=1) / np.sqrt(errors.size) if errors.size > 1 else np.nan
    return {
        "log_of_mean": round(float(np.log10(mean)), 3),
        "stderr": round(float(spread / mean / np.log(10)), 3),
        "mean_of_log": round(float(logs.mean()), 3),
        "stderr_of_log": round(float(logs.std(ddof=1) / np.sqrt(logs.size)), 3) if logs.size > 1 else None,
        "median": round(float(np.median(logs)), 3),
        "mean": float(f"{mean:.4g}"),
        "runs": int(errors.size),
    }


def show(figure, setting, errors):
    print(json.dumps({"figure": figure, **setting, **averages(errors)}), flush=True)


def seeds(s):
    return range(s.first, s.first + s.seeds)


def one_target(s, iterations, size=20, ratio=2.0, sigma=0.0, scale="sum", guard=False, marks=()):
    """Errors of client 0 by mark, over seeds."""
    out = []
    for seed in seeds(s):
        rng = np.random.default_rng(seed)
        world = experiment_one(rng, ratio, sigma)
        step = 0.01 * (1.0 if scale == "sum" else 2.0 / world.m)
        start = rng.uniform(0, 1, world.d)
        out.append(algorithm1(world, rng, 0, size, iterations, step, start, guard, marks=marks)[1])
    return np.array(out).T


def fig1a(s, scale="sum"):
    for ratio in [0.2, 1, 2, 5, 10]:
        for guard in [False, True]:
            errors = one_target(s, 500, ratio=ratio, scale=scale, guard=guard, marks=(500,))[0]
            show("fig1a", {"scale": scale, "d/m": ratio, "accept": "guard" if guard else "paper"}, errors)


def fig1b(s):
    for sigma in [0.05, 0.1, 0.2, 0.5, 0.7, 1.0]:
        for guard in [False, True]:
            errors = one_target(s, 1500, sigma=sigma, guard=guard, marks=(1500,))[0]
            show("fig1b", {"sigma": sigma, "accept": "guard" if guard else "paper"}, errors)


def fig1c(s):
    for size in [5, 10, 15, 20, 30]:
        for guard in [False, True]:
            for mark, errors in zip((200, 500), one_target(s, 500, size, guard=guard, marks=(200, 500))):
                show("fig1c", {"B": size, "iterations": mark, "accept": "guard" if guard else "paper"}, errors)


def guards(s):
    for size in [3, 5]:
        for guard in [False, True]:
            marks = (500, 1000, 1500)
            for mark, errors in zip(marks, one_target(s, 1500, size, guard=guard, marks=marks)):
                show("guard", {"B": size, "iterations": mark, "accept": "guard" if guard else "paper"}, errors)


def fig2(s):
    marks = (50, 100, 200)
    for mark, errors in zip(marks, one_target(s, 200, marks=marks)):
        show("fig2", {"method": "Algorithm 1", "iterations": mark}, errors)
    settings = [("as published", 0.001, "all", 1), ("own model, divided by all", 0.01, "all", 0),
                ("own model, divided by pickers", 0.01, "pickers", 0)]
    for name, step, divide, which in settings:
        out = []
        for seed in seeds(s):
            rng = np.random.default_rng(seed)
            world = experiment_one(rng)
            out.append(ifca(world, rng.uniform(0, 1, (2, world.d)), 200, step, divide, 0, marks)[which])
        for mark, errors in zip(marks, np.array(out).T):
            show("fig2", {"method": f"IFCA, {name}", "iterations": mark}, errors)


def fig3(s):
    """Norms, not squares. The oracle draws from the target's cluster: B of it, or one as the paper's words have it."""
    for name, oracle, most in [("uniform", False, 20), ("cluster", True, 20), ("cluster", True, 1)]:
        norms, shares = [], []
        for seed in seeds(s):
            rng = np.random.default_rng(seed)
            world = experiment_two(rng)
            for target in range(s.targets):
                kin = int((world.cluster == world.cluster[target]).sum()) - 1
                size = min(most, kin) if oracle else most
                if size < 1:
                    continue
                start = rng.standard_normal(world.d)
                w, _ = algorithm1(world, rng, target, size, 1000, 0.01 * 2 / 30, start, s.guard, oracle)
                norms.append(float(np.sqrt(world.error(w, target) * world.d)))
                shares.append(kin / (world.n - 1))
        norms, shares = np.array(norms), np.array(shares)
        # A target whose cluster is small seldom finds kin among B of all.
        rare = shares < 0.25
        print(json.dumps({
            "figure": "fig3", "sampling": name, "B": most, "mean_norm": float(f"{norms.mean():.4g}"),
            "median_norm": float(f"{np.median(norms):.4g}"), "largest": float(f"{norms.max():.4g}"),
            "stderr": float(f"{norms.std(ddof=1) / np.sqrt(norms.size):.2g}"), "runs": int(norms.size),
            "mean_norm_where_kin_are_a_quarter": float(f"{norms[~rare].mean():.4g}"), "kin_below_a_quarter": int(rare.sum()),
        }), flush=True)


def tuned(s):
    """Uniform sampling at 400 and 800 queries, over steps: what the cost of all clients is compared with."""
    for clusters in [2, 4]:
        for size in [5, 10, 20]:
            marks = (400 // size, 800 // size)
            for step in [0.002, 0.01, 0.02, 0.03, 0.04, 0.05]:
                out = []
                for seed in seeds(s):
                    rng = np.random.default_rng(seed)
                    world = experiment_one(rng, clusters=clusters)
                    start = np.zeros(world.d)
                    out.append(algorithm1(world, rng, 0, size, marks[1], step, start, True, marks=marks)[1])
                for queries, errors in zip((400, 800), np.array(out).T):
                    show("tuned", {"clusters": clusters, "B": size, "step": step, "queries": queries}, errors)


# ---------------------------------------------------------------- time
def timed(s):
    rng = np.random.default_rng(1)
    world = experiment_two(rng) if s.which == "federation" else experiment_one(rng)
    best = np.inf
    for _ in range(s.repeats):
        begin = time.process_time()
        if s.which == "ifca":
            own, _ = ifca(world, rng.uniform(0, 1, (2, world.d)), 200, 0.01, "pickers", 0, (200,))
            error = own[0]
        else:
            step, start = (0.01, np.zeros(world.d)) if s.which == "one" else (0.02 / 30, np.zeros(world.d))
            run = {"plain": plain, "loop": loop}.get(s.style, algorithm1)
            w, _ = run(world, rng, 0, 20, 1000, step, start)
            error = world.error(w, 0)
        best = min(best, time.process_time() - begin)
    print(json.dumps({"cpu_seconds": best, "log10_error": float(np.log10(error))}))


def main():
    parts = {"fig1a": fig1a, "fig1a-mean": lambda s: fig1a(s, "mean"), "fig1b": fig1b, "fig1c": fig1c, "guard": guards,
             "fig2": fig2, "fig3": fig3, "tuned": tuned, "time": timed}
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=list(parts))
    parser.add_argument("which", nargs="?", choices=["one", "federation", "ifca"], default="one")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--targets", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5, help="time: the fastest of so many")
    parser.add_argument("--style", choices=["plain", "batched", "loop"], default="batched", help="time: all candidates at once, or in turn")
    parser.add_argument("--guard", action="store_true", help="fig3: refuse steps as accept = \"guard\" does")
    s = parser.parse_args()
    parts[s.what](s)


if __name__ == "__main__":
    main()
