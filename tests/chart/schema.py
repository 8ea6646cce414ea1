#!/usr/bin/env python3
"""Prints values.schema.json of the chart: values.schema.in.json with the schema of the configuration, which is read from
standard input (`crownlabs config schema`), in place of `config`, `bastion.config`, `dashboard.config`,
`instanceMetrics.config` and `podNetworks.config`."""

import copy
import json
import sys
from pathlib import Path

CHART = Path(__file__).resolve().parents[2] / "manifests/chart"
# Go's regular expressions have no lookahead. At the beginning of a pattern, this one requires at least one character.
NOT_EMPTY = "^(?=.)"


def for_go(node):
    """Replaces the lookahead with a minimal length in the whole schema."""
    if isinstance(node, list):
        for item in node:
            for_go(item)
    if not isinstance(node, dict):
        return
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        if pattern.startswith(NOT_EMPTY):
            node["pattern"] = "^" + pattern[len(NOT_EMPTY) :]
            node["minLength"] = 1
        if "(?" in node["pattern"]:
            sys.exit(f"Go's regular expressions may not know this pattern: {pattern}")
    for item in node.values():
        for_go(item)


def main():
    config = json.load(sys.stdin)
    for_go(config)
    # The chart sets apiVersion and kind.
    del config["$schema"], config["required"]
    config.pop("title", None)
    # The only loops of the pods of the bastion and of the nodes; the chart refuses the others with a message.
    schema = json.loads((CHART / "values.schema.in.json").read_text())
    schema["properties"]["config"] = config
    for part in ("bastion", "dashboard", "instanceMetrics", "podNetworks"):
        schema["properties"][part]["properties"]["config"] = copy.deepcopy(config)
    json.dump(schema, sys.stdout, indent=1, ensure_ascii=False)
    print()


main()
