#!/usr/bin/env python3
"""Independent numpy peer of PGFL and GFedMtl on the synthetic standard experiment.

Written as a competent numpy user would write it: every client is factorised once on
its sample side (at most nine rows instead of sixty columns), clients are padded to the
same number of rows and stepped as one batch, servers are small dense matrix products.
`direct` is the opposite on purpose: the equations one by one, as a golden checker.
"""
import argparse
import csv
import json
import time
from dataclasses import dataclass, field

import numpy as np

import pgfl_loop

ROUNDS_SHOWN = (50, 100, 200, 300)


def decibel(x):
    return 10.0 * np.log10(x)


# --------------------------------------------------------------------------- experiment


@dataclass
class Setting:
    servers: int = 10
    per_server: int = 15
    clusters: int = 3
    dim: int = 60
    edges: int = 15
    samples: tuple = (2, 9)
    spread: float = 0.15
    noise: tuple = (0.01, 0.022)
    gamma: str = "scalar"  # or "per-coordinate"


PGFL_SETTING = Setting()
GFEDMTL_SETTING = Setting(samples=(1, 9), spread=0.1, noise=(0.005, 0.0115))


@dataclass
class Problem:
    X: np.ndarray  # clients x rows x dim, zero rows after the D_k-th
    y: np.ndarray  # clients x rows
    D: np.ndarray
    server: np.ndarray
    cluster: np.ndarray
    adjacency: np.ndarray  # no self loops
    truth: np.ndarray  # clusters x dim
    fitted: np.ndarray = field(default=None)  # least squares on pooled test data, (19)


def connected_graph(rng, n, m):
    """Uniform over the graphs with n nodes and m edges that are connected."""
    a, b = np.triu_indices(n, 1)
    while True:
        pick = rng.choice(a.size, m, replace=False)
        A = np.zeros((n, n))
        A[a[pick], b[pick]] = A[b[pick], a[pick]] = 1.0
        reach = np.linalg.matrix_power(A + np.eye(n), n - 1)
        if (reach > 0).all():
            return A


def make_problem(seed, setting=PGFL_SETTING):
    rng = np.random.default_rng([seed, 1])
    c = setting
    K = c.servers * c.per_server
    A = connected_graph(rng, c.servers, c.edges)
    server = np.repeat(np.arange(c.servers), c.per_server)
    cluster = rng.integers(c.clusters, size=K)
    w0 = rng.standard_normal(c.dim)
    w0 /= np.linalg.norm(w0)
    shape = (c.clusters, 1) if c.gamma == "scalar" else (c.clusters, c.dim)
    truth = w0 * (1.0 + rng.uniform(-c.spread, c.spread, shape))
    D = rng.integers(c.samples[0], c.samples[1] + 1, size=K)
    sigma = np.sqrt(rng.uniform(*c.noise, size=K))
    rows = c.samples[1]
    mask = np.arange(rows) < D[:, None]

    def draw():
        X = rng.standard_normal((K, rows, c.dim)) * mask[:, :, None]
        y = (X @ truth[cluster][:, :, None])[:, :, 0]
        return X, y + mask * sigma[:, None] * rng.standard_normal((K, rows))

    X, y = draw()
    Xt, yt = draw()
    fitted = np.stack([
        np.linalg.lstsq(Xt[cluster == q].reshape(-1, c.dim), yt[cluster == q].ravel(), rcond=None)[0]
        for q in range(c.clusters)
    ])
    return Problem(X, y, D, server, cluster, A, truth, fitted)


# --------------------------------------------------------------------------- algorithms


@dataclass
class Options:
    algorithm: str = "pgfl"  # pgfl | gfl | clusterfl | one-cloud | gfedmtl | single-step
    tau: object = 0.4  # number, ("decay", tau0, ratio) or "adaptive"
    rho: float = 5.0
    lam: float = 0.01
    dual: str = "served"  # or "aggregate"
    chosen: int = 0  # clients per server and round, 0 = everyone
    phi0: float = 0.0  # 0 = no privacy noise
    zeta: float = 0.99
    bound: float = 0.01  # C, assumed
    mix: str = "paper"  # GFedMtl (12): "paper" or "mean"
    one_model: bool = False  # Q = 1
    edges: bool = True
    window: float = 0.05  # floor of the weight of the exponential averages
    sign: float = 1.0  # single-step (7): +1 is w_s - w_p, -1 is as printed
    metric: str = "truth"  # or "fitted", (19)


class Diverged(RuntimeError):
    pass


def client_solver(p, D, weight, rho):
    """What never changes in (4): w = a v + L (y - a X v), v the centre, L solved on the sample side."""
    curvature = rho + 2.0 * weight  # K
    gram = p.X @ p.X.transpose(0, 2, 1)
    rows = gram.shape[1]
    gram += (0.5 * D * curvature)[:, None, None] * np.eye(rows)
    lift = np.linalg.solve(gram, p.X)  # K x rows x dim
    shrink = (rho / curvature)[:, None]
    return shrink, lift.transpose(0, 2, 1)


def run(p, o, rounds, seed, record=None):
    """Runs one curve; returns a dict of arrays (one number per round, linear scale)."""
    rng_pick = np.random.default_rng([seed, 2])
    rng_noise = np.random.default_rng([seed, 3])
    K, rows, d = p.X.shape
    S0 = p.adjacency.shape[0]
    Qt = p.truth.shape[0]
    if o.algorithm == "one-cloud":
        server, S, A = np.zeros(K, int), 1, np.zeros((1, 1))
    else:
        server, S, A = p.server, S0, p.adjacency
    if o.algorithm == "clusterfl" or not o.edges:
        A = np.zeros_like(A)
    Q = 1 if (o.algorithm == "gfl" or o.one_model) else Qt
    group = np.zeros(K, int) if Q == 1 else p.cluster
    cell = server * Q + group
    degree = A.sum(1)
    closed = A + np.eye(S)
    mean9 = closed / closed.sum(1, keepdims=True)
    size = np.bincount(server, minlength=S)[server]
    shrink, lift = client_solver(p, p.D, o.lam / size, o.rho)
    X, y = p.X, p.y[:, :, None]
    sigma0 = 2.0 * o.bound / (o.rho * p.D) / np.sqrt(2.0 * o.phi0) if o.phi0 > 0 else None

    reference = p.truth if o.metric == "truth" else p.fitted
    energy = np.einsum("qd,qd->q", reference, reference)
    target = reference[p.cluster]
    scale = 1.0 / energy[p.cluster]
    share = np.zeros((S, Qt))
    np.add.at(share, (server, p.cluster), scale / K)  # weight of a served model in (50)

    member = np.zeros((S * Q, K))
    member[cell, np.arange(K)] = 1.0
    members_of = np.argsort(p.server, kind="stable").reshape(S0, -1) if o.chosen else None
    everyone = np.arange(K)

    w = np.zeros((K, d))
    f = np.zeros((K, d))  # phi_k / rho
    served = np.zeros((S * Q, d))
    averaged = np.zeros((S * Q, d))
    u = np.zeros((S, Q, d))
    psi = np.zeros((S * Q, d))
    error = np.full(K, 1.0)  # |0 - w*|^2 / |w*|^2
    adaptive = isinstance(o.tau, str)
    out = {m: np.empty(rounds) for m in ("client", "served", "active", "averaged")}
    noisy_error = np.full(K, 1.0)
    extra = record if record is not None else ()
    if "noisy" in extra:
        out["noisy"] = np.empty(rounds)
    if "tau" in extra:
        out["tau"] = np.empty(rounds)

    def readout(m):
        diff = m.reshape(S, Q, d) - reference
        return float(np.sum(np.einsum("sqd,sqd->sq", diff, diff) * share))

    for n in range(1, rounds + 1):
        # (4) and (12) of 000
        if o.chosen:
            pick = np.argpartition(rng_pick.random(members_of.shape), o.chosen - 1, axis=1)[:, :o.chosen]
            idx = np.take_along_axis(members_of, pick, 1).ravel()
            here, Xi, Li, yi, fi = cell[idx], X[idx], lift[idx], y[idx], f[idx]
            a, Mi = shrink[idx], member[:, idx]
        else:
            idx, here, Xi, Li, yi, fi, a, Mi = everyone, cell, X, lift, y, f, shrink, member
        centre = a * (served[here] + fi)
        new = centre + (Li @ (yi - Xi @ centre[:, :, None]))[:, :, 0]
        diff = new - target[idx]
        e = np.einsum("kd,kd->k", diff, diff) * scale[idx]
        error[idx] = e
        sent = new
        if sigma0 is not None:
            std = sigma0[idx] * o.zeta ** (0.5 * n)
            sent = new + std[:, None] * rng_noise.standard_normal(new.shape)

        # (8)
        count = Mi.sum(1)
        agg = Mi @ (sent - fi)
        filled = count > 0
        agg[filled] /= count[filled, None]
        agg[~filled] = served[~filled]

        if adaptive:
            tau = None
        elif isinstance(o.tau, tuple):
            tau = o.tau[1] * o.tau[2] ** n
        else:
            tau = o.tau

        if o.algorithm == "gfedmtl":
            m = agg.reshape(S, Q, d)
            m = (m + tau * (m.sum(1, keepdims=True) - m)) / (1.0 + tau * (Q - 1))  # (10)
            for_dual = m.reshape(S * Q, d)
            near = (A @ for_dual.reshape(S, Q * d)).reshape(S, Q, d)
            third = (m + near) / (degree + 1.0)[:, None, None]  # (11)
            others = near.sum(1, keepdims=True) - near
            reach = degree
            if o.mix == "mean":
                others = others / np.maximum(degree, 1.0)[:, None, None]
                reach = np.minimum(degree, 1.0)
            served = (third + tau * others) / (1.0 + tau * reach * (Q - 1))[:, None, None]  # (12)
            served = served.reshape(S * Q, d)
        elif o.algorithm == "single-step":
            old = served.reshape(S, Q, d)
            near = (A @ served.reshape(S, Q * d)).reshape(S, Q, d)
            nbr_mean = (mean9 @ served.reshape(S, Q * d)).reshape(S, Q, d)
            others = (nbr_mean.sum(1, keepdims=True) - nbr_mean) / max(Q - 1, 1)
            deg = degree[:, None, None]
            top = agg.reshape(S, Q, d) - 0.5 * psi.reshape(S, Q, d)
            top = top + 0.5 * o.rho * (deg * old + near) + tau * others
            new_s = top / (1.0 + tau + o.rho * deg)  # (6), with w_s + w_p
            served = new_s.reshape(S * Q, d)
            near = (A @ served.reshape(S, Q * d)).reshape(S, Q, d)
            psi = psi + o.sign * o.rho * (deg * new_s - near).reshape(S * Q, d)  # (7)
            for_dual = served
        else:
            hat = (mean9 @ agg.reshape(S, Q * d)).reshape(S, Q, d)  # (9)
            if Q > 1:
                if adaptive:
                    u += max(o.window, 1.0 / n) * (agg.reshape(S, Q, d) - u)
                    tau = adaptive_tau(u, closed, mean9)[:, :, None]
                others = (hat.sum(1, keepdims=True) - hat) / (Q - 1)
                served = ((1.0 - tau) * hat + tau * others).reshape(S * Q, d)  # (10)
            else:
                served = hat.reshape(S * Q, d)
            for_dual = served if o.dual == "served" else agg

        # (5)
        if o.chosen:
            f[idx] = fi + for_dual[here] - sent
            w[idx] = new
        else:
            f = f + for_dual[here] - sent
            w = new
        averaged += max(o.window, 1.0 / n) * (served - averaged)

        i = n - 1
        out["client"][i] = error.mean()
        out["active"][i] = e.mean()
        out["served"][i] = readout(served)
        out["averaged"][i] = readout(averaged)
        if "noisy" in out:
            diff = sent - target[idx]
            noisy_error[idx] = np.einsum("kd,kd->k", diff, diff) * scale[idx]
            out["noisy"][i] = noisy_error.mean()
        if "tau" in out:
            out["tau"][i] = np.mean(tau)
        if not np.isfinite(out["served"][i]) or out["served"][i] > 1e12:
            raise Diverged(f"round {n}")
    out["models"], out["served_models"] = w, served.reshape(S, Q, d)
    return out


def adaptive_tau(u, closed, mean9):
    """One weight per server and cluster, from averaged aggregates u (servers x clusters x dim)."""
    S, Q, d = u.shape
    n = closed.sum(1)[:, None]
    near = (mean9 @ u.reshape(S, Q * d)).reshape(S, Q, d)
    total = closed @ np.einsum("sqd,sqd->sq", u, u)
    v = (total - n * np.einsum("sqd,sqd->sq", near, near)) / np.maximum(n * (n - 1.0), 1.0)
    gap = near - (near.sum(1, keepdims=True) - near) / (Q - 1)
    d2 = np.einsum("sqd,sqd->sq", gap, gap)
    v, d2 = mean9 @ v, mean9 @ d2
    return np.minimum(v / np.maximum(d2, 1e-300), (Q - 1.0) / Q)


def local_only(p, lam=0.01):
    """Every client alone: the minimiser of f_k in (16)."""
    size = np.bincount(p.server)[p.server]
    _, lift = client_solver(p, p.D, lam / size, 0.0)
    w = (lift @ p.y[:, :, None])[:, :, 0]
    t = p.truth[p.cluster]
    return float(np.mean(((w - t) ** 2).sum(1) / (t ** 2).sum(1)))


def centralized(p, lam=0.01):
    """One ridge model per cluster: the minimiser of the sum of its clients' f_k in (16)."""
    size = np.bincount(p.server)[p.server]
    total = 0.0
    for q in range(p.truth.shape[0]):
        ks = np.flatnonzero(p.cluster == q)
        wt = 1.0 / p.D[ks]
        H = np.einsum("k,kri,krj->ij", wt, p.X[ks], p.X[ks], optimize=True)
        H += np.sum(lam / size[ks]) * np.eye(H.shape[0])
        m = np.linalg.solve(H, np.einsum("k,kri,kr->i", wt, p.X[ks], p.y[ks], optimize=True))
        total += ks.size * np.sum((m - p.truth[q]) ** 2) / np.sum(p.truth[q] ** 2)
    return float(total / p.cluster.size)


# ------------------------------------------------------------- the equations, one by one


def direct(args):
    """Golden checker: no batching, no tricks, everyone takes part, no noise."""
    with open(args.csv, newline="") as h:
        table = list(csv.DictReader(h))
        features = [c for c in table[0] if c not in ("client", "server", "cluster", "y")]
    with open(args.edges, newline="") as h:
        edges = [(e["a"], e["b"]) for e in csv.DictReader(h)]
    home, kind, xs, ys = {}, {}, {}, {}
    for row in table:
        k = row["client"]
        if home.setdefault(k, row["server"]) != row["server"] or kind.setdefault(k, row["cluster"]) != row["cluster"]:
            raise SystemExit(f"client {k} appears with two servers or two clusters")
        xs.setdefault(k, []).append([float(row[c]) for c in features])
        ys.setdefault(k, []).append(float(row["y"]))
    clients = sorted(home)
    servers = sorted(set(home.values()) | {s for e in edges for s in e})
    true_clusters = sorted(set(kind.values()))
    one = args.algorithm == "gfl"
    clusters = ["*"] if one else true_clusters
    of = {k: "*" if one else kind[k] for k in clients}
    nbrs = {s: set() for s in servers}  # without s itself
    if args.algorithm != "clusterfl":
        for a, b in edges:
            if a != b:
                nbrs[a].add(b)
                nbrs[b].add(a)
    d, rho, lam, tau, Q = len(features), args.rho, args.lam, args.tau, len(clusters)
    zero = np.zeros(d)
    C = {s: [k for k in clients if home[k] == s] for s in servers}
    w = {k: zero for k in clients}
    phi = {k: zero for k in clients}
    W = {(s, q): zero for s in servers for q in clusters}
    for _ in range(args.rounds):
        for k in clients:  # (4)
            X, y, s = np.array(xs[k]), np.array(ys[k]), home[k]
            D = len(y)
            H = (2.0 / D) * X.T @ X + (2.0 * lam / len(C[s]) + rho) * np.eye(d)
            w[k] = np.linalg.solve(H, (2.0 / D) * X.T @ y + phi[k] + rho * W[s, of[k]])
        agg = {}
        for s in servers:  # (8); (9) of 003
            for q in clusters:
                ks = [k for k in C[s] if of[k] == q]
                if ks:
                    agg[s, q] = sum(w[k] for k in ks) / len(ks) - sum(phi[k] for k in ks) / (rho * len(ks))
                else:
                    agg[s, q] = W[s, q]
        new = {}
        if args.algorithm == "gfedmtl":
            mid, wide = {}, {}
            for s, q in agg:  # (10) of 003
                others = sum((agg[s, r] for r in clusters if r != q), zero)
                mid[s, q] = (agg[s, q] + tau * others) / (1.0 + tau * (Q - 1))
            for s, q in agg:  # (11)
                wide[s, q] = (mid[s, q] + sum((mid[t, q] for t in nbrs[s]), zero)) / (len(nbrs[s]) + 1)
            for s, q in agg:  # (12)
                others = sum((mid[t, r] for t in nbrs[s] for r in clusters if r != q), zero)
                reach = len(nbrs[s])
                if args.mix == "mean" and reach:
                    others, reach = others / reach, 1
                new[s, q] = (wide[s, q] + tau * others) / (1.0 + tau * reach * (Q - 1))
            pull = mid
        else:
            hat = {}
            for s, q in agg:  # (9)
                hat[s, q] = (agg[s, q] + sum((agg[p, q] for p in nbrs[s]), zero)) / (len(nbrs[s]) + 1)
            for s, q in agg:  # (10)
                if Q == 1:
                    new[s, q] = hat[s, q]
                else:
                    others = sum((hat[s, r] for r in clusters if r != q), zero)
                    new[s, q] = (1.0 - tau) * hat[s, q] + tau / (Q - 1) * others
            pull = new if args.dual == "served" else agg
        for k in clients:  # (5)
            phi[k] = phi[k] + rho * (pull[home[k], of[k]] - w[k])
        W = new
    arrays = dict(w)
    for s in servers:
        for q in true_clusters:
            arrays[f"{s}/{q}"] = W[s, "*" if one else q]
    with open(args.out, "wb") as h:
        np.savez(h, **arrays)
    return {"clients": len(clients), "servers": len(servers), "clusters": len(true_clusters), "dim": d, "rounds": args.rounds}


# ------------------------------------------------------------------------- subcommands

PRIVATE = {"chosen": 3, "phi0": 1e-3}


def four(**k):
    return {
        "pgfl-tau0": Options(tau=0.0, **k),
        "pgfl-tau0.4": Options(tau=0.4, **k),
        "gfl": Options("gfl", **k),
        "clusterfl": Options("clusterfl", **k),
    }


def figure(name, gamma="scalar"):
    """Setting and curves of a figure."""
    first = Setting(gamma=gamma)
    if name == "fig1":
        return first, four()
    if name == "fig2":
        return first, four(chosen=3)
    if name == "fig3":
        return first, four(**PRIVATE)
    if name == "fig4":
        return first, {f"tau{t}": Options(tau=t, **PRIVATE) for t in (0.0, 0.05, 0.1, 0.4, 0.9)}
    if name == "fig5":
        taus = {"tau0": 0.0, "tau0.4": 0.4, "decay": ("decay", 0.4, 0.98)}
        return Setting(gamma=gamma, spread=0.5), {c: Options(tau=t, **PRIVATE) for c, t in taus.items()}
    if name == "fig6":
        return first, {f"phi0={x:g}": Options(chosen=3, phi0=x) for x in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)}
    if name == "fig7":
        return first, {f"zeta={z}": Options(zeta=z, **PRIVATE) for z in (0.95, 0.98, 0.99, 1.0)}
    if name in ("2a", "2b"):
        k = {"algorithm": "gfedmtl", "metric": "fitted", "chosen": 9 if name == "2b" else 0}
        s = GFEDMTL_SETTING
        return Setting(samples=s.samples, spread=s.spread, noise=s.noise, gamma=gamma), {
            "gfed": Options(tau=0.0, one_model=True, **k),
            "gfedmtl-tau0": Options(tau=0.0, **k),
            "gfedmtl-tau0.5": Options(tau=0.5, **k),
            "no-edges-tau0.5": Options(tau=0.5, edges=False, **k),
        }
    raise SystemExit(f"no figure {name}")


def summary(values):
    """Decibels of the mean over repeats, its standard error (delta method), and the mean of decibels."""
    x = np.asarray(values)
    mean = x.mean(0)
    root = np.sqrt(x.shape[0])
    one = x.shape[0] < 2
    se = 0.0 * mean if one else 10.0 / np.log(10.0) * x.std(0, ddof=1) / root / mean
    db = decibel(x)
    se_db = 0.0 * mean if one else db.std(0, ddof=1) / root
    r = lambda a: np.round(a, 3).tolist()
    return {"db_of_mean": r(decibel(mean)), "se": r(se), "mean_of_db": r(db.mean(0)), "se_of_mean_of_db": r(se_db)}


def command_time(a):
    setting, curves = figure(a.figure)
    if not a.all_curves or a.style == "loop":  # the loop style knows PGFL only
        curves = {"pgfl-tau0.4": curves["pgfl-tau0.4"]}
    p = make_problem(a.seed, setting)
    run(p, Options(**PRIVATE), 2, a.seed)  # first-call costs of numpy, not timed
    final, start = {}, time.process_time()
    for name, o in curves.items():
        final[name] = pgfl_loop.run(p, o, a.rounds, a.seed) if a.style == "loop" else run(p, o, a.rounds, a.seed)
    spent = time.process_time() - start
    last = {c: {m: round(float(decibel(v[-1])), 6) for m, v in r.items() if v.ndim == 1} for c, r in final.items()}
    return {"figure": a.figure, "rounds": a.rounds, "seed": a.seed, "curves": len(curves),
            "cpu_seconds": round(spent, 6), "final": last if len(curves) > 1 else last["pgfl-tau0.4"]}


def command_figures(a):
    setting, curves = figure(a.figure, a.gamma)
    shown = [n for n in ROUNDS_SHOWN if n <= a.rounds]
    got = {c: {m: [] for m in a.metric} for c in curves}
    ends = {"centralized": [], "local": []}
    for s in range(a.seed, a.seed + a.repeats):
        p = make_problem(s, setting)
        ends["centralized"].append(centralized(p))
        ends["local"].append(local_only(p))
        for c, o in curves.items():
            r = run(p, o, a.rounds, s)
            for m in a.metric:
                got[c][m].append([r[m][n - 1] for n in shown])
    return {"figure": a.figure, "gamma": a.gamma, "repeats": a.repeats, "rounds": shown,
            "curves": {c: {m: summary(v) for m, v in ms.items()} for c, ms in got.items()},
            "ends": {c: summary(v) for c, v in ends.items()}}


def command_adaptive(a):
    setting = Setting(spread=a.spread, gamma=a.gamma)
    taus = {"adaptive": "adaptive", "tau0": 0.0, "tau0.05": 0.05, "tau0.4": 0.4}
    got = {c: [] for c in taus}
    for s in range(a.seed, a.seed + a.repeats):
        p = make_problem(s, setting)
        for c, t in taus.items():
            r = run(p, Options(tau=t, **PRIVATE), a.rounds, s)
            got[c].append([r[m][-1] for m in ("served", "averaged", "client")])
    paired = {}
    for c in list(taus)[1:]:
        gap = decibel(np.array(got["adaptive"])) - decibel(np.array(got[c]))
        se = gap.std(0, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0 * gap[0]
        paired[c] = {"mean_db": np.round(gap.mean(0), 3).tolist(), "se": np.round(se, 3).tolist()}
    return {"spread": a.spread, "gamma": a.gamma, "repeats": a.repeats, "rounds": a.rounds,
            "columns": ["served", "averaged", "client"],
            "curves": {c: summary(v) for c, v in got.items()}, "adaptive_minus": paired}


def main():
    top = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sub = top.add_subparsers(dest="command", required=True)
    t = sub.add_parser("time")
    t.add_argument("--figure", choices=("fig1", "fig3"), required=True)
    t.add_argument("--rounds", type=int, default=300)
    t.add_argument("--seed", type=int, default=0)
    t.add_argument("--all-curves", action="store_true")
    t.add_argument("--style", choices=("batched", "loop"), default="batched")
    t.set_defaults(call=command_time)
    f = sub.add_parser("figures")
    f.add_argument("--figure", required=True)
    f.add_argument("--repeats", type=int, default=20)
    f.add_argument("--rounds", type=int, default=300)
    f.add_argument("--seed", type=int, default=0)
    f.add_argument("--gamma", choices=("scalar", "per-coordinate"), default="scalar")
    f.add_argument("--metric", nargs="+", choices=("client", "served", "active", "averaged"), default=["client"])
    f.set_defaults(call=command_figures)
    v = sub.add_parser("adaptive")
    v.add_argument("--spread", type=float, default=0.15)
    v.add_argument("--repeats", type=int, default=20)
    v.add_argument("--rounds", type=int, default=300)
    v.add_argument("--seed", type=int, default=0)
    v.add_argument("--gamma", choices=("scalar", "per-coordinate"), default="scalar")
    v.set_defaults(call=command_adaptive)
    g = sub.add_parser("direct")
    g.add_argument("--csv", required=True)
    g.add_argument("--edges", required=True)
    g.add_argument("--rounds", type=int, required=True)
    g.add_argument("--rho", type=float, default=5.0)
    g.add_argument("--lambda", dest="lam", type=float, default=0.01)
    g.add_argument("--tau", type=float, default=0.4)
    g.add_argument("--dual", choices=("served", "aggregate"), default="served")
    g.add_argument("--algorithm", choices=("pgfl", "gfedmtl", "gfl", "clusterfl"), default="pgfl")
    g.add_argument("--mix", choices=("paper", "mean"), default="paper")
    g.add_argument("--out", required=True)
    g.set_defaults(call=direct)
    a = top.parse_args()
    print(json.dumps(a.call(a)))


if __name__ == "__main__":
    main()
