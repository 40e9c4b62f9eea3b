#!/usr/bin/env python3
"""What to do for clients that are missing in a round of PGFL: the numbers of docs/decisions/0021.

    python3 -m venv venv && venv/bin/pip install numpy
    venv/bin/python scripts/oracles/silence.py everybody|few|private

The world of Fig 1 of the PGFL paper (150 clients at 10 servers, 3 clusters, d = 60, tau 0.4, rho 5), 300 rounds, six
seeds; `few` asks 3 of 15 clients of a server in a round, `private` adds the noise of Fig 3 to that. Printed is by how many
percent the NMSD of the served models exceeds that of a run without silence, least and most over the seeds.

    out     (8) averages those who answered
    last    a missing client's last term of (8) counts
    agree   (8) is solved for w as if the missing ones answered with w
    dual k  w - phi / rho counts while k rho |w - w at the first miss| <= |phi|; `dual 0` always, once it was heard
"""
import sys

import numpy as np

SERVERS, EACH, CLUSTERS, D, TAU, RHO, LAMBDA, ROUNDS = 10, 15, 3, 60, 0.4, 5.0, 0.01, 300
K = SERVERS * EACH
SERVER = np.repeat(np.arange(SERVERS), EACH)
FIFTH = np.arange(K) % 5
POLICIES = ["out", "last", "agree", "dual 0", "dual 1", "dual 2", "dual 4"]


class World:
    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        edges, order = set(), rng.permutation(SERVERS)
        for i in range(1, SERVERS):
            edges.add(tuple(sorted((order[i], order[rng.integers(i)]))))
        while len(edges) < 15:
            a, b = rng.integers(SERVERS, size=2)
            if a != b:
                edges.add(tuple(sorted((a, b))))
        near = np.eye(SERVERS)
        for a, b in edges:
            near[a, b] = near[b, a] = 1
        self.mix = near / near.sum(1, keepdims=True)
        base = rng.standard_normal(D)
        base /= np.linalg.norm(base)
        models = np.array([base * (1 + rng.uniform(-0.15, 0.15)) for _ in range(CLUSTERS)])
        self.cluster = rng.integers(CLUSTERS, size=(SERVERS, EACH)).ravel()
        self.truth = models[self.cluster]
        self.samples, self.inverse, self.moment = np.empty(K), np.empty((K, D, D)), np.empty((K, D))
        for k in range(K):
            n = rng.integers(2, 10)
            x = rng.standard_normal((n, D))
            noise = np.sqrt(rng.uniform(0.01, 0.022))
            y = x @ self.truth[k] + noise * rng.standard_normal(n)
            hessian = 2 / n * x.T @ x + (2 * LAMBDA / EACH + RHO) * np.eye(D)
            self.samples[k], self.inverse[k], self.moment[k] = n, np.linalg.inv(hessian), 2 / n * x.T @ y


def run(world, silent, policy, few=False, private=False):
    """NMSD of the served models after all rounds; `silent(n)` tells who is missing in round n."""
    rng = np.random.default_rng(0)
    phi, last, since = np.zeros((K, D)), np.zeros((K, D)), np.full((K, D), np.nan)
    served, heard = np.zeros((SERVERS, CLUSTERS, D)), np.zeros(K, bool)
    cell = SERVER * CLUSTERS + world.cluster
    for n in range(1, ROUNDS + 1):
        asked = np.ones(K, bool)
        if few:
            asked[:] = False
            for s in range(SERVERS):
                asked[s * EACH + rng.choice(EACH, 3, replace=False)] = True
        missing, there = silent(n) & asked, ~silent(n) & asked
        now = served[SERVER, world.cluster]
        w = np.einsum("kij,kj->ki", world.inverse, world.moment + RHO * now + phi)
        if private:
            sigma = 2 * 0.01 / (RHO * world.samples) / np.sqrt(2 * 0.001 / 0.99**n)
            w = w + sigma[:, None] * rng.standard_normal(w.shape)
        term, weight, known = w - phi / RHO, there.astype(float), missing & heard
        last[there] = term[there]
        total, count = np.zeros((SERVERS * CLUSTERS, D)), np.zeros(SERVERS * CLUSTERS)
        if policy == "last":
            term[known], weight[known] = last[known], 1
        elif policy == "agree":
            np.add.at(total, cell[known], -phi[known] / RHO)
        elif policy.startswith("dual"):
            first = missing & np.isnan(since[:, 0])
            since[first] = now[first]
            moved = np.linalg.norm(now - np.nan_to_num(since), axis=1)
            speaks = known & (float(policy[5:]) * RHO * moved <= np.linalg.norm(phi, axis=1))
            term[speaks], weight[speaks] = (now - phi / RHO)[speaks], 1
        np.add.at(total, cell, term * weight[:, None])
        np.add.at(count, cell, weight)
        aggregate = served.reshape(-1, D).copy()
        aggregate[count > 0] = total[count > 0] / count[count > 0, None]
        heard |= there
        since[there] = np.nan
        means = np.einsum("sp,pqd->sqd", world.mix, aggregate.reshape(served.shape))
        served = (1 - TAU) * means + TAU * (means.sum(1, keepdims=True) - means) / (CLUSTERS - 1)
        phi[there] += RHO * (served[SERVER, world.cluster] - w)[there]
    gap = served[SERVER, world.cluster] - world.truth
    return np.mean((gap**2).sum(1) / (world.truth**2).sum(1))


def main():
    setting = {"everybody": {}, "few": {"few": True}, "private": {"few": True, "private": True}}[sys.argv[1]]
    drawn = np.random.default_rng(0).random((ROUNDS + 1, K)) < 0.2
    nobody = np.zeros(K, bool)
    patterns = {"in turns": lambda n: FIFTH == n // 20 % 5, "at random": lambda n: drawn[n], "never there": lambda n: FIFTH == 4}
    for left in [3, 10, 20, 30, 50, 100]:
        patterns[f"left after {left}"] = lambda n, left=left: (FIFTH == 4) & (n > left)
    worlds = [World(seed) for seed in range(1, 7)]
    strict = [run(world, lambda n: nobody, "out", **setting) for world in worlds]
    for name, silent in patterns.items():
        found = []
        for policy in POLICIES:
            more = [100 * (run(world, silent, policy, **setting) / base - 1) for world, base in zip(worlds, strict)]
            found.append(f"{policy} {min(more):+.1f} to {max(more):+.1f}")
        print(f"{name:14}", ", ".join(found), flush=True)


if __name__ == "__main__":
    main()
