"""The soft filter of FedPnP over a sparse graph of clients with scipy: Chebyshev polynomials and conjugate gradients.

    python filters_scipy.py FOLDER --clients K --columns D --beta1 B --beta2 B [--repeats N] [--without-cg]

FOLDER holds what the bench wrote, raw and little-endian: from.u32, to.u32 and weight.f64 (each edge once), sizes.f64
(one per client) and signal.f64 (row by row). One JSON line comes back: CPU seconds of every variant (best of N), and
how far each is from a polynomial that leaves out 1e-13, as a share of the largest value; reference.f64 is that one.
Building the matrices is not timed: a federation keeps its graph.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import scipy.fft as fft
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg


def read(folder, clients, columns):
    load = lambda name, kind: np.fromfile(folder / name, dtype=kind)
    a, b, w = load("from.u32", "<u4"), load("to.u32", "<u4"), load("weight.f64", "<f8")
    adjacency = sparse.coo_array((w, (a, b)), shape=(clients, clients)).tocsr()
    adjacency = (adjacency + adjacency.T).tocsr()
    sizes = load("sizes.f64", "<f8")
    return adjacency, clients * sizes / sizes.sum(), load("signal.f64", "<f8").reshape(clients, columns)


class Filter:
    """(P + 2 b1 L + 2 b2 L P^-1 L) psi = P omega, or psi = h(P^-1 L) omega."""

    def __init__(self, adjacency, mass, beta1, beta2):
        degrees = np.asarray(adjacency.sum(axis=1)).ravel()
        self.mass, self.beta1, self.beta2 = mass, beta1, beta2
        self.laplacian = (sparse.diags_array(degrees) - adjacency).tocsr()
        self.flow = (sparse.diags_array(1.0 / mass) @ self.laplacian).tocsr()
        rate = degrees / mass
        edges = adjacency.tocoo()
        self.reach = float((rate[edges.row] + rate[edges.col]).max())

    def response(self, value):
        return 1.0 / (1.0 + 2.0 * self.beta1 * value + 2.0 * self.beta2 * value * value)

    def terms(self, count):
        points = max(8 * count, 64)
        angles = np.pi * (np.arange(points) + 0.5) / points
        values = self.response(0.5 * self.reach * (1.0 + np.cos(angles)))
        coefficients = fft.dct(values, type=2)[: points // 2] / points
        return coefficients[:count], float(np.abs(coefficients[count:]).sum())

    def needed(self, left_out):
        """The least number of terms that leaves out no more than this."""
        low, high = 1, 2
        while self.terms(high)[1] > left_out and high < 1024:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.terms(middle)[1] > left_out else (low, middle)
        return high

    def chebyshev(self, signal, count):
        terms, _ = self.terms(count)
        shift = (2.0 / self.reach * self.flow - sparse.eye_array(len(self.mass))).tocsr()
        before, now = signal, shift @ signal
        result = 0.5 * terms[0] * before + terms[1] * now
        for term in terms[2:]:
            after = shift @ now
            after *= 2.0
            after -= before
            result += term * after
            before, now = now, after
        return result

    def product(self, x):
        """(I + 2 b1 Q + 2 b2 Q^2) x."""
        once = self.flow @ x
        result = x + 2.0 * self.beta1 * once
        if self.beta2 > 0:
            result += 2.0 * self.beta2 * (self.flow @ once)
        return result

    def gradients(self, signal, tolerance):
        """All columns at once."""
        mass = self.mass[:, None]
        psi = signal.copy()
        rest = signal - self.product(psi)
        direction = rest.copy()
        size = (mass * rest * rest).sum(axis=0)
        goal = tolerance**2 * (mass * signal * signal).sum(axis=0)
        while (size > goal).any():
            image = self.product(direction)
            step = np.where(size > 0, size / np.maximum((mass * direction * image).sum(axis=0), 1e-300), 0)
            psi += step * direction
            rest -= step * image
            after = (mass * rest * rest).sum(axis=0)
            direction *= np.where(size > 0, after / np.maximum(size, 1e-300), 0)
            direction += rest
            size = after
        return psi

    def library(self, signal, tolerance):
        """scipy's cg, one column after the other."""
        system = sparse.diags_array(self.mass) + 2.0 * self.beta1 * self.laplacian
        if self.beta2 > 0:
            system = system + 2.0 * self.beta2 * (self.laplacian @ self.flow)
        system = system.tocsr()
        columns = [
            linalg.cg(system, self.mass * column, x0=column, rtol=tolerance, atol=0.0)[0] for column in signal.T
        ]
        return np.stack(columns, axis=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--columns", type=int, required=True)
    parser.add_argument("--beta1", type=float, required=True)
    parser.add_argument("--beta2", type=float, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--without-cg", action="store_true", help="it takes minutes where beta is large")
    args = parser.parse_args()
    adjacency, mass, signal = read(args.folder, args.clients, args.columns)
    own = Filter(adjacency, mass, args.beta1, args.beta2)
    reference = own.chebyshev(signal, own.needed(1e-13))
    reference.astype("<f8").tofile(args.folder / "reference.f64")
    # 30 terms for comparison, and as many as leave out no more than 1e-6 or 1e-8.
    counts = sorted({30, own.needed(1e-6), own.needed(1e-8)})
    variants = {f"chebyshev, {count} terms": lambda count=count: own.chebyshev(signal, count) for count in counts}
    if not args.without_cg:
        variants["cg, all columns"] = lambda: own.gradients(signal, 1e-8)
        variants["scipy.sparse.linalg.cg"] = lambda: own.library(signal, 1e-8)
    found = []
    for name, work in variants.items():
        best, result = float("inf"), None
        for _ in range(args.repeats):
            begin = time.process_time()
            result = work()
            best = min(best, time.process_time() - begin)
        off = float(np.abs(result - reference).max() / np.abs(signal).max())
        found.append({"name": name, "cpu_seconds": best, "off": off})
    print(json.dumps({"reach": own.reach, "variants": found}))


if __name__ == "__main__":
    main()
