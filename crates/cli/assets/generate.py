"""Writes wards.csv, the example data of `fedkin new`: python3 generate.py > wards.csv

Sixteen wards of four hospitals. The stay of a patient follows a linear rule that wards of one kind share and
that differs a little between kinds. The west hospital has no children's ward: not every hospital needs every kind.
"""

import random

FEATURES = ["age", "pulse", "lactate", "mobility"]
COMMON = {"stay": 6.0, "age": 1.2, "pulse": 0.5, "lactate": 1.6, "mobility": -0.9}
SHIFT = {
    "children": {"stay": -1.5, "age": -0.5, "pulse": 0.3, "lactate": -0.2, "mobility": 0.3},
    "medicine": {"stay": 0.5, "age": 0.3, "pulse": -0.2, "lactate": 0.3, "mobility": -0.2},
    "surgery": {"stay": 1.0, "age": 0.1, "pulse": 0.1, "lactate": -0.4, "mobility": -0.4},
}
WARDS = {
    "north": ["children", "medicine", "surgery", "surgery"],
    "east": ["children", "medicine", "medicine", "surgery"],
    "south": ["children", "children", "medicine", "surgery"],
    "west": ["medicine", "medicine", "surgery", "surgery"],
}

draw = random.Random(20)
print("ward,hospital,kind," + ",".join(FEATURES) + ",stay")
for hospital, kinds in WARDS.items():
    for number, kind in enumerate(kinds, start=1):
        for _ in range(draw.randint(8, 12)):
            x = {name: draw.gauss(0, 1) for name in FEATURES}
            rule = {name: COMMON[name] + SHIFT[kind][name] for name in COMMON}
            y = rule["stay"] + sum(rule[name] * x[name] for name in FEATURES) + draw.gauss(0, 0.8)
            cells = ",".join(f"{x[name]:.2f}" for name in FEATURES)
            print(f"{hospital}-{number},{hospital},{kind},{cells},{y:.2f}")
