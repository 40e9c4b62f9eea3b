#!/usr/bin/env python3
"""How many runs are behind the figures that Fig. 1a of the PersFL paper is compared with?

    python3 scripts/oracles/persfl_runs.py

The other implementation gives ten numbers (two gradient scales, five dimensions) and no error. Ours have one each, of 200
repeats, in docs/reproductions.md. If both compute the same, a difference is normal with variance sd^2 (1/N + 1/200) plus
that of rounding to a tenth, sd being the spread of single runs, and the ten together tell N: the likeliest one, and those
that a likelihood ratio test does not reject at 5 %. If they compute different things, no N makes the differences look like
chance: the sum of squares would be too large for the smallest N, too.
"""
import math
import pathlib
import re

OTHER = {"persfl-fig1a": [-30.3, -30.2, -24.7, -13.1, -4.6], "persfl-fig1a-mean": [-13.5, -9.3, -5.8, -2.9, -1.1]}
REPEATS = 200


def ours(text, figure):
    """Mean and standard error at round 500 of every curve in the figure's table."""
    block = text.split(f"<!-- measured: {figure} -->")[1].split("<!-- end -->")[0]
    assert f"of {REPEATS} repeats" in block
    rows = [line.split("|")[4] for line in block.splitlines() if line.startswith("| d/m")]
    return [tuple(float(x) for x in re.findall(r"-?\d+\.\d+", row)) for row in rows]


def main():
    text = (pathlib.Path(__file__).parents[2] / "docs/reproductions.md").read_text()
    pairs = [(*mine, other) for figure, others in OTHER.items() for mine, other in zip(ours(text, figure), others, strict=True)]

    def standard(runs):
        """Every difference over its standard error, and the log-likelihood."""
        values, likelihood = [], 0.0
        for mean, error, other in pairs:
            variance = error**2 * REPEATS * (1 / runs + 1 / REPEATS) + 0.1**2 / 12
            values.append((mean - other) / math.sqrt(variance))
            likelihood -= 0.5 * (values[-1] ** 2 + math.log(variance))
        return values, likelihood

    best = max(range(1, 1000), key=lambda runs: standard(runs)[1])
    likely = [runs for runs in range(1, 1000) if standard(best)[1] - standard(runs)[1] < 1.92]
    print(f"likeliest number of runs {best}, not rejected {likely[0]} to {likely[-1]}")
    for runs in (best, likely[-1], 20):
        values, _ = standard(runs)
        squares = sum(value**2 for value in values)
        print(f"{runs:3} runs: sum of squares {squares:5.1f} of {len(values)}, in standard errors", *(f"{v:+.1f}" for v in values))


if __name__ == "__main__":
    main()
