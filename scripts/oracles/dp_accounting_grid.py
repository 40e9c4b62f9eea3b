#!/usr/bin/env python3
"""Writes crates/privacy/tests/oracles/dp_accounting.csv: epsilons of Google's dp-accounting, for the accountant's tests.

Needs dp-accounting and mpmath (the first lines of the file name the versions it was made with):

    python3 -m venv venv && venv/bin/pip install dp-accounting mpmath
    venv/bin/python scripts/oracles/dp_accounting_grid.py > crates/privacy/tests/oracles/dp_accounting.csv

Kinds of lines, all for neighbours that differ by one record more or less, and a record's contribution of norm 1:

renyi     RdpAccountant at the orders of Fedkin's accountant: the same bound, so the same number
default   RdpAccountant at its own orders, fractions among them: a tighter bound
gaussian  the exact epsilon of composed Gaussians, solved with 60 digits; dp-accounting's own agrees to 1e-6
sampled   a lower bound on the exact epsilon: PLDAccountant with optimistic rounding
sigma     the noise of dp-accounting's analytic Gaussian mechanism for the epsilon in the last column
"""

import importlib.metadata
import itertools
import sys

import dp_accounting as dp
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import privacy_loss_distribution
from mpmath import erfc, exp, mp, mpf, sqrt

ORDERS = [*range(2, 65), 72, 80, 96, 128, 192, 256, 384, 512, 768, 1024]
# 60 digits are left after the largest cancellation below.
mp.dps = 90


def renyi(sigma, rounds, rate, delta, orders):
    accountant = dp.rdp.RdpAccountant(orders)
    accountant.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), rounds)
    return float(accountant.get_epsilon(delta))


def gaussian(sigma, rounds, delta):
    mu = sqrt(mpf(rounds)) / mpf(sigma)

    def tail(x):
        return erfc(x / sqrt(mpf(2))) / 2

    def excess(epsilon):
        return tail(epsilon / mu - mu / 2) - exp(epsilon) * tail(epsilon / mu + mu / 2) - mpf(delta)

    if excess(mpf(0)) <= 0:
        return 0.0
    low, high = mpf(0), mpf(1)
    while excess(high) > 0:
        low, high = high, high * 2
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return float(high)


def sampled(sigma, rounds, rate, delta):
    one = privacy_loss_distribution.from_gaussian_mechanism(
        standard_deviation=sigma,
        sampling_prob=rate,
        pessimistic_estimate=False,
        use_connect_dots=False,
        value_discretization_interval=1e-4,
    )
    return float(one.self_compose(rounds).get_epsilon_for_delta(delta))


def main():
    names = ("dp-accounting", "mpmath", "scipy", "numpy")
    print("# written by scripts/oracles/dp_accounting_grid.py with", end=" ")
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))
    print("kind,sigma,rounds,rate,delta,epsilon")
    grid = itertools.product((0.5, 0.8, 1.1, 2.0, 4.0, 10.0), (1, 100, 10000), (0.001, 0.01, 0.1, 0.5, 1.0), (1e-5, 1e-8))
    for sigma, rounds, rate, delta in grid:
        print(f"renyi,{sigma!r},{rounds},{rate!r},{delta!r},{renyi(sigma, rounds, rate, delta, ORDERS)!r}")
    for sigma, rounds, rate, delta in itertools.product((1.1, 2.0), (1, 1000), (0.004, 0.05), (1e-5, 1e-10)):
        print(f"default,{sigma!r},{rounds},{rate!r},{delta!r},{renyi(sigma, rounds, rate, delta, None)!r}")
    for sigma, rounds, delta in itertools.product((0.3, 1.0, 4.0, 30.0), (1, 30, 1000), (1e-3, 1e-5, 1e-8, 1e-12, 1e-15)):
        epsilon = gaussian(sigma, rounds, delta)
        other = gaussian_mechanism.get_epsilon_gaussian(sigma / rounds**0.5, delta)
        if abs(other - epsilon) > 1e-6 * max(1.0, epsilon):
            print(f"sigma {sigma}, rounds {rounds}, delta {delta}: {epsilon} and {other}", file=sys.stderr)
        print(f"gaussian,{sigma!r},{rounds},1.0,{delta!r},{epsilon!r}")
    for sigma, rounds, rate, delta in itertools.product((0.8, 1.1, 2.0), (1, 100, 1000), (0.01, 0.1), (1e-5,)):
        print(f"sampled,{sigma!r},{rounds},{rate!r},{delta!r},{sampled(sigma, rounds, rate, delta)!r}")
    for epsilon, delta in itertools.product((0.01, 0.1, 0.926, 1.0, 10.0), (1e-5, 1e-10)):
        print(f"sigma,{float(gaussian_mechanism.get_sigma_gaussian(epsilon, delta))!r},1,1.0,{delta!r},{epsilon!r}")


if __name__ == "__main__":
    main()
