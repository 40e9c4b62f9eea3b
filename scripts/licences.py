#!/usr/bin/env python3
"""Enforces deny.toml on the locked dependency tree: licences, banned crates, sources.

Needs python3 >= 3.11 and cargo, nothing else. `--self-test` runs the tests of this file.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
from collections import defaultdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKEN = re.compile(r"\s*([()]|[A-Za-z0-9.+:-]+)")

# What makes a licence file the MIT licence: its grant, its condition, its disclaimer, and nothing else of length.
MIT = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
    "documentation files (the \"Software\"), to deal in the Software without restriction",
    "The above copyright notice and this permission notice shall be included in all copies",
    "THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND",
)


def tokens(expression):
    """The words of an SPDX expression; `A/B`, the old form, means `A OR B`."""
    text = expression.replace("/", " OR ").strip()
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"cannot read the licence {expression!r}")
        found.append(match[1])
        at = match.end()
    return found


def satisfied(expression, allowed):
    """Whether the allowed licences satisfy an SPDX expression (AND binds tighter than OR)."""
    rest = tokens(expression)

    def either():
        value = both()
        while rest and rest[0].upper() == "OR":
            rest.pop(0)
            value = both() or value
        return value

    def both():
        value = single()
        while rest and rest[0].upper() == "AND":
            rest.pop(0)
            value = single() and value
        return value

    def single():
        if not rest or rest[0] == ")" or rest[0].upper() in ("AND", "OR", "WITH"):
            raise ValueError(f"cannot read the licence {expression!r}")
        word = rest.pop(0)
        if word == "(":
            value = either()
            if not rest or rest.pop(0) != ")":
                raise ValueError(f"cannot read the licence {expression!r}")
            return value
        if rest and rest[0].upper() == "WITH":
            rest.pop(0)
            if not rest:
                raise ValueError(f"cannot read the licence {expression!r}")
            word += " WITH " + rest.pop(0)
        return word in allowed

    value = either()
    if rest:
        raise ValueError(f"cannot read the licence {expression!r}")
    return value


def licence_of(package):
    """The licence a package names, or that of the licence file it points to, where that is the text of MIT."""
    if package.get("license") or not package.get("license_file"):
        return package.get("license")
    path = os.path.join(os.path.dirname(package["manifest_path"]), package["license_file"])
    try:
        with open(path, encoding="utf-8") as file:
            words = " ".join(file.read().split())
    except (OSError, UnicodeDecodeError):
        return None
    return "MIT" if all(sentence in words for sentence in MIT) and len(words) < 1200 else None


def name_of(entry):
    return entry if isinstance(entry, str) else entry.get("crate") or entry.get("name")


def check(metadata, rules):
    """(errors, warnings) of a `cargo metadata` document under the rules of a deny.toml."""
    errors, warnings = [], []
    packages = {package["id"]: package for package in metadata["packages"]}
    dependents = defaultdict(set)
    for node in metadata["resolve"]["nodes"]:
        for dependency in node["dependencies"]:
            dependents[packages[dependency]["name"]].add(packages[node["id"]]["name"])

    allowed = set(rules["licenses"]["allow"])
    # Without a list of registries there may be one: what all packages but the workspace's own come from.
    listed = rules.get("sources", {}).get("allow-registry")
    sources = sorted({p["source"] for p in packages.values() if (p.get("source") or "").startswith("registry+")})
    registries = {f"registry+{url}" for url in listed} if listed else set(sources[:1])
    bans = rules.get("bans", {})
    banned = {name_of(entry): entry if isinstance(entry, dict) else {} for entry in bans.get("deny", [])}
    versions = defaultdict(list)

    for package in sorted(packages.values(), key=lambda p: (p["name"], p["version"])):
        who = f"{package['name']} {package['version']}"
        versions[package["name"]].append(package["version"])
        licence = licence_of(package)
        try:
            if not licence:
                errors.append(f"{who}: names no licence")
            elif not satisfied(licence, allowed):
                errors.append(f"{who}: licence {licence!r} is not allowed")
        except ValueError as error:
            errors.append(f"{who}: {error}")

        source = package.get("source")
        if source is not None and source not in registries:
            errors.append(f"{who}: comes from {source}, which is not an allowed source")

        if package["name"] in banned:
            ban = banned[package["name"]]
            users = dependents[package["name"]] - set(ban.get("wrappers", []))
            if users or not ban.get("wrappers"):
                why = f" ({ban['reason']})" if "reason" in ban else ""
                by = f", used by {', '.join(sorted(users))}" if users else ""
                errors.append(f"{who}: is banned{by}{why}")

        if source is None and bans.get("wildcards") == "deny":
            for dependency in package["dependencies"]:
                if dependency["req"] == "*" and dependency.get("path") is None:
                    errors.append(f"{who}: depends on any version of {dependency['name']}")

    level = bans.get("multiple-versions", "warn")
    for name, found in versions.items():
        if len(found) > 1 and level != "allow":
            (errors if level == "deny" else warnings).append(f"{name}: {len(found)} versions, {', '.join(found)}")
    return errors, warnings


def main():
    with open(os.path.join(ROOT, "deny.toml"), "rb") as file:
        rules = tomllib.load(file)
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE)
    if done.returncode != 0:
        return f"licences: `{' '.join(command)}` failed"
    metadata = json.loads(done.stdout)
    errors, warnings = check(metadata, rules)
    for warning in warnings:
        print(f"licences: note: {warning}")
    for error in errors:
        print(f"licences: error: {error}", file=sys.stderr)
    if errors:
        return f"licences: {len(errors)} of the rules in deny.toml are broken"
    print(f"licences: {len(metadata['packages'])} crates, all within deny.toml")
    return 0


class Test(unittest.TestCase):
    ALLOWED = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"}

    def test_expressions(self):
        cases = {
            "MIT": True,
            "GPL-3.0": False,
            "MIT OR GPL-3.0": True,
            "GPL-3.0 OR LGPL-2.1-or-later OR MIT": True,
            "MIT AND GPL-3.0": False,
            "MIT/GPL-3.0": True,
            "(MIT OR Apache-2.0) AND Unicode-3.0": True,
            "(MIT OR Apache-2.0) AND OFL-1.1": False,
            "MIT OR Apache-2.0 AND OFL-1.1": True,
            "OFL-1.1 AND MIT OR GPL-3.0": False,
            "Apache-2.0 WITH LLVM-exception": True,
            "GPL-3.0 WITH Classpath-exception-2.0": False,
            "MIT WITH LLVM-exception": False,
        }
        for expression, expected in cases.items():
            self.assertEqual(satisfied(expression, self.ALLOWED), expected, expression)

    def test_unreadable_expressions_are_errors(self):
        for expression in ("", "MIT OR", "(MIT", "MIT)", "MIT MIT", "AND MIT", "MIT WITH", "MIT; GPL"):
            with self.assertRaises(ValueError, msg=expression):
                satisfied(expression, self.ALLOWED)

    def run_check(self, packages, edges=(), bans=None):
        base = {"version": "1.0.0", "license": "MIT", "source": "registry+a", "dependencies": []}
        full = [{**base, "id": p["name"] + p.get("version", ""), **p} for p in packages]
        nodes = [{"id": p["id"], "dependencies": [b for a, b in edges if a == p["id"]]} for p in full]
        rules = {
            "licenses": {"allow": sorted(self.ALLOWED)},
            "bans": bans or {},
            "sources": {},
        }
        return check({"packages": full, "resolve": {"nodes": nodes}}, rules)

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.run_check([{"name": "a"}, {"name": "b", "source": None}]), ([], []))

    def test_licences_and_sources(self):
        git = "git+https://example.org/x"
        errors, _ = self.run_check([{"name": "a", "license": None}, {"name": "b", "license": "GPL-3.0"}, {"name": "c", "source": git}])
        self.assertEqual(len(errors), 3, errors)

    def test_a_licence_file_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            package = {"name": "a", "license": None, "license_file": "L", "manifest_path": os.path.join(folder, "Cargo.toml")}
            self.assertEqual(len(self.run_check([package])[0]), 1, "there is no file")
            for text, found in ((" ... ".join(MIT), 0), (" ... ".join(MIT[:2]), 1), (" ... ".join(MIT) + " except" * 200, 1)):
                with open(os.path.join(folder, "L"), "w", encoding="utf-8") as file:
                    file.write(text.replace(" copy ", "\n  copy "))
                self.assertEqual(len(self.run_check([package])[0]), found, text)

    def test_bans_and_wrappers(self):
        tree = [{"name": "evil"}, {"name": "user"}, {"name": "other"}]
        errors, _ = self.run_check(tree, [("user", "evil")], {"deny": [{"crate": "evil"}]})
        self.assertEqual(len(errors), 1)
        wrapped = {"deny": [{"crate": "evil", "wrappers": ["user"]}]}
        self.assertEqual(self.run_check(tree, [("user", "evil")], wrapped)[0], [])
        errors, _ = self.run_check(tree, [("user", "evil"), ("other", "evil")], wrapped)
        self.assertEqual(errors, ["evil 1.0.0: is banned, used by other"])

    def test_versions_and_wildcards(self):
        twice = [{"name": "a"}, {"name": "a", "version": "2.0.0"}]
        self.assertEqual(self.run_check(twice), ([], ["a: 2 versions, 1.0.0, 2.0.0"]))
        self.assertEqual(len(self.run_check(twice, bans={"multiple-versions": "deny"})[0]), 1)
        star = [{"name": "own", "source": None, "dependencies": [{"name": "x", "req": "*"}]}]
        self.assertEqual(len(self.run_check(star, bans={"wildcards": "deny"})[0]), 1)


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        unittest.main(argv=sys.argv[:1])
    if sys.argv[1:]:
        sys.exit("usage: scripts/licences.py [--self-test]")
    sys.exit(main())
