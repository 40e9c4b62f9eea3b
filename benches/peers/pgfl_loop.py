"""PGFL as a federated simulation is usually written in numpy: one object per client, one per server.

Same problem, same equations and same metrics as `pgfl_numpy.run`; every client factors its system once and
solves on the smaller side. What differs is the style: clients of unequal sizes take their turns in a loop
instead of being padded into one tensor.
"""

import numpy as np


class Client:
    def __init__(self, X, y, weight, rho):
        self.X, self.y = X, y
        curvature = rho + 2.0 * weight
        self.pull = rho / curvature
        gram = X @ X.T + 0.5 * len(y) * curvature * np.eye(len(y))
        self.lift = np.linalg.solve(gram, X).T
        self.model = np.zeros(X.shape[1])
        self.dual = np.zeros(X.shape[1])  # phi_k / rho

    def step(self, served):
        """(4)"""
        centre = self.pull * (served + self.dual)
        self.model = centre + self.lift @ (self.y - self.X @ centre)
        return self.model


class Server:
    def __init__(self, clients, cells, clusters, dim):
        self.clients, self.cells = clients, cells
        self.served = np.zeros((clusters, dim))
        self.averaged = np.zeros((clusters, dim))

    def round(self, chosen, sigma, rng):
        """(4), (12) and (8): one aggregate per cluster."""
        total, count = np.zeros_like(self.served), np.zeros(len(self.served))
        self.sent = {}
        for i in chosen:
            client, q = self.clients[i], self.cells[i]
            w = client.step(self.served[q])
            if sigma is not None:
                w = w + sigma[i] * rng.standard_normal(len(w))
            self.sent[i] = w
            total[q] += w - client.dual
            count[q] += 1
        filled = count > 0
        self.aggregate = np.where(filled[:, None], total / np.maximum(count, 1)[:, None], self.served)
        return self.aggregate

    def mix(self, near, tau, n, window):
        """(9), (10) and (5)"""
        hat = np.mean(near, axis=0)
        others = (hat.sum(0) - hat) / (len(hat) - 1)
        self.served = (1.0 - tau) * hat + tau * others
        self.averaged += max(window, 1.0 / n) * (self.served - self.averaged)
        for i, w in self.sent.items():
            self.clients[i].dual = self.clients[i].dual + self.served[self.cells[i]] - w


def run(p, o, rounds, seed):
    rng_pick, rng_noise = np.random.default_rng([seed, 2]), np.random.default_rng([seed, 3])
    S, Q, d = p.adjacency.shape[0], len(p.truth), p.truth.shape[1]
    servers, ids = [], []
    for s in range(S):
        mine = np.flatnonzero(p.server == s)
        clients = [Client(p.X[k, : p.D[k]], p.y[k, : p.D[k]], o.lam / len(mine), o.rho) for k in mine]
        servers.append(Server(clients, p.cluster[mine], Q, d))
        ids.append(mine)
    target = p.truth[p.cluster]
    energy = np.sum(target**2, axis=1)
    sigma0 = 2.0 * o.bound / (o.rho * p.D) / np.sqrt(2.0 * o.phi0) if o.phi0 > 0 else None
    out = {m: np.empty(rounds) for m in ("client", "served", "active", "averaged")}
    for n in range(1, rounds + 1):
        active = []
        for s, server in enumerate(servers):
            every = range(len(server.clients))
            chosen = rng_pick.choice(len(server.clients), o.chosen, replace=False) if o.chosen else every
            sigma = sigma0[ids[s]] * o.zeta ** (0.5 * n) if sigma0 is not None else None
            server.round(chosen, sigma, rng_noise)
            active.extend(ids[s][i] for i in chosen)
        near = [
            [servers[q].aggregate for q in range(S) if q == s or p.adjacency[s, q]] for s in range(S)
        ]
        for s, server in enumerate(servers):
            server.mix(near[s], o.tau, n, o.window)
        models = np.concatenate([[c.model for c in server.clients] for server in servers])
        served = np.concatenate([server.served[server.cells] for server in servers])
        averaged = np.concatenate([server.averaged[server.cells] for server in servers])
        errors = [np.sum((m - target) ** 2, axis=1) / energy for m in (models, served, averaged)]
        out["client"][n - 1], out["served"][n - 1], out["averaged"][n - 1] = (e.mean() for e in errors)
        out["active"][n - 1] = errors[0][active].mean()
    return out
