"""FedGL in numpy: the peer that `cargo bench -p fedkin-experiment --bench graphs` is measured against.

    python fedgl_numpy.py block FILE --alpha A --beta B --tolerance T [--solve lu|cg] [--repeats R]
    python fedgl_numpy.py coupled FILE --alpha A --beta B --rho R --lam L --target F [--cap SECONDS] [--step S ...]

FILE holds an array (clients, p) of mean squared differences as .npy, pairs row by row of the upper triangle. One line
of JSON is printed; CPU seconds are those of this process, without reading and without setting up index arrays.

    g(w) = 2 zbar'w - alpha 1'log(S w) + 2 beta |w|^2, w >= 0
    (8)  = sum_i g_i(w_i) + rho sum_i |w_i - c|_2 + lam |c|_1
"""
import argparse
import json
import time

import numpy as np


class Pairs:
    """Positions of the pairs of d nodes, made once."""

    def __init__(self, p):
        self.d = int(round((1 + np.sqrt(1 + 8 * p)) / 2))
        self.i, self.j = np.triu_indices(self.d, 1)
        # Where the row of a node begins, for sums over rows of the triangle.
        self.starts = np.concatenate([[0], np.cumsum(np.arange(self.d - 1, 1, -1))])

    def matrix(self, w, diagonal):
        m = np.full((self.d, self.d), diagonal)
        m[self.i, self.j] = w
        m[self.j, self.i] = w
        return m

    def degrees(self, w):
        """S w for w of shape (clients, p)."""
        out = np.zeros(w.shape[:-1] + (self.d,))
        out[..., :-1] = np.add.reduceat(w, self.starts, axis=-1)
        for k in range(w.shape[0]):
            out[k] += np.bincount(self.j, weights=w[k], minlength=self.d)
        return out


def value(pairs, zbar, w, alpha, beta):
    return 2 * (zbar * w).sum(-1) - alpha * np.log(pairs.degrees(w)).sum(-1) + 2 * beta * (w * w).sum(-1)


def objective(pairs, zbar, w, c, s):
    ties = np.sqrt(((w - c) ** 2).sum(-1)).sum()
    return float(value(pairs, zbar, w, s.alpha, s.beta).sum() + s.rho * ties + s.lam * np.abs(c).sum())


# ---------------------------------------------------------------- one client: Newton's method on the dual
def start(lin, alpha, h):
    """As if the graph were complete: first one y for all, then each node against it."""
    d = lin.shape[0]
    rows = lin.sum(1, where=np.isfinite(lin)) / (d - 1)
    mean = rows.mean()
    common = (mean + np.sqrt(mean * mean + 8 * alpha * h / (d - 1))) / 4
    q = common - rows
    return (-q + np.sqrt(q * q + 4 * alpha * h / (d - 1))) / 2


def conjugate(active, diagonal, h, right, tolerance):
    """Conjugate gradients for diag(diagonal) + active / h, scaled by the diagonal."""
    x, residual = np.zeros_like(right), right.copy()
    scaled = residual / diagonal
    direction, size = scaled.copy(), residual @ scaled
    enough, products = size * tolerance * tolerance, 0
    while size > enough:
        image = diagonal * direction + active @ direction / h
        length = size / (direction @ image)
        x += length * direction
        residual -= length * image
        scaled = residual / diagonal
        before, size = size, residual @ scaled
        direction = scaled + size / before * direction
        products += 1
    return x, products


def newton(lin, alpha, h, tolerance, solve):
    """min over y > 0 of sum max(0, y_i + y_j - lin_ij)^2 / 2h - alpha sum log y. lin: d x d, infinite diagonal."""
    y = start(lin, alpha, h)
    products = 0

    def evaluate(y):
        r = np.add.outer(y, y)
        r -= lin
        np.maximum(r, 0, out=r)
        return r, r.sum(1) / h, np.vdot(r, r) / (4 * h) - alpha * np.log(y).sum()

    r, degree, phi = evaluate(y)
    for k in range(100):
        mismatch = np.abs(degree * y / alpha - 1).max()
        if mismatch <= tolerance:
            break
        gradient = degree - alpha / y
        active = (r > 0).astype(float)
        diagonal = alpha / y**2 + active.sum(1) / h
        if solve == "cg":
            step, more = conjugate(active, diagonal, h, -gradient, 0.1 * min(0.1, mismatch))
            products += more
        else:
            active /= h
            active.flat[:: len(y) + 1] += diagonal
            step = np.linalg.solve(active, -gradient)
        short = step < 0
        t = min(1.0, 0.9 * (-y[short] / step[short]).min()) if short.any() else 1.0
        slope = gradient @ step
        while True:
            trial = y + t * step
            r, degree, now = evaluate(trial)
            if now <= phi + 1e-4 * t * slope + 1e-13 * abs(phi) or t < 1e-12:
                break
            t /= 2
        y, phi = trial, now
    return y, r, k, float(mismatch), products


def block(s):
    zbar = np.load(s.file)[0]
    pairs = Pairs(len(zbar))
    lin = pairs.matrix(2 * zbar, np.inf)
    best = np.inf
    for _ in range(s.repeats):
        begin = time.process_time()
        y, r, steps, mismatch, products = newton(lin, s.alpha, 4 * s.beta, s.tolerance, s.solve)
        r /= 4 * s.beta
        best = min(best, time.process_time() - begin)
    w = r[pairs.i, pairs.j]
    print(json.dumps({
        "cpu_seconds": best,
        "objective": float(value(pairs, zbar[None], w[None], s.alpha, s.beta)[0]),
        "iterations": steps,
        "products": products,
        "mismatch": mismatch,
        "edges": int((w > 0).sum()),
    }))


# ---------------------------------------------------------------- all clients: Algorithm 1 of the paper
def algorithm1(pairs, zbar, s, step, cap):
    """Rounds of 25 steps with momentum 0.9 until the objective reaches the target. The objective is not timed."""
    clients, p = zbar.shape
    w = np.full(zbar.shape, np.sqrt(s.alpha / (2 * s.beta * (pairs.d - 1))))
    before, c = w.copy(), w[0].copy()
    gamma = np.full(clients, 1 / clients)
    spent, rounds, found = 0.0, 0, np.inf
    while spent < cap:
        begin = time.process_time()
        pull = (s.rho * gamma)[:, None]
        for _ in range(25):
            at = w + 0.9 * (w - before)
            before = w
            inverse = 1 / np.maximum(pairs.degrees(at), 1e-6)
            slope = 2 * zbar + 4 * s.beta * at + pull * (at - c)
            slope -= s.alpha * (inverse[:, pairs.i] + inverse[:, pairs.j])
            w = np.maximum(0, at - step * slope)
        total = gamma.sum()
        mean = (gamma[:, None] * w).sum(0) / total
        c = np.sign(mean) * np.maximum(np.abs(mean) - s.lam / (s.rho * total), 0)
        gamma = 1 / (np.sqrt(((w - c) ** 2).sum(1)) + 1e-6)
        spent += time.process_time() - begin
        rounds += 1
        with np.errstate(divide="ignore", invalid="ignore"):
            now = objective(pairs, zbar, w, c, s)
        if not np.isfinite(now) and rounds > 3:
            return spent, rounds, found, False
        found = min(found, now) if np.isfinite(now) else found
        if found <= s.target + s.slack * (1 + abs(s.target)):
            return spent, rounds, found, True
    return spent, rounds, found, False


def coupled(s):
    zbar = np.load(s.file)
    pairs = Pairs(zbar.shape[1])
    tried = []
    for step in s.step:
        # A step that is slower than the best so far need not be run to its end.
        cap = min([s.cap] + [t["cpu_seconds"] for t in tried if t["reached"]])
        spent, rounds, found, reached = algorithm1(pairs, zbar, s, step, cap)
        tried.append({"step": step, "cpu_seconds": spent, "rounds": rounds, "objective": found, "reached": reached})
    reached = [t for t in tried if t["reached"]]
    best = min(reached, key=lambda t: t["cpu_seconds"]) if reached else min(tried, key=lambda t: t["objective"])
    print(json.dumps({**best, "tried": tried}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["block", "coupled"])
    parser.add_argument("file")
    parser.add_argument("--alpha", type=float, default=2.0)
    parser.add_argument("--beta", type=float, required=True)
    parser.add_argument("--tolerance", type=float, default=1e-6)
    parser.add_argument("--solve", choices=["lu", "cg"], default="lu")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rho", type=float, default=0.3)
    parser.add_argument("--lam", type=float, default=0.2)
    parser.add_argument("--target", type=float)
    parser.add_argument("--slack", type=float, default=1e-6)
    parser.add_argument("--cap", type=float, default=60.0)
    parser.add_argument("--step", type=float, nargs="+", default=[5e-4])
    s = parser.parse_args()
    (block if s.what == "block" else coupled)(s)


if __name__ == "__main__":
    main()
