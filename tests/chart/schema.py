#!/usr/bin/env python3
"""Prints values.schema.json of the chart: values.schema.in.json with the schema of the configuration, which is read from
standard input (`crownlabs config schema`), in place of `config`, `bastion.config`, `dashboard.config`,
`login.config`, `instanceMetrics.config` and `podNetworks.config`, and with the conditions between its keys."""

import json
import re
import sys
from pathlib import Path

CHART = Path(__file__).resolve().parents[2] / "manifests/chart"
PARTS = ("bastion", "dashboard", "login", "instanceMetrics", "podNetworks")
# The loop of the dashboard. The values enable it, and set these keys; the templates require those values.
DASHBOARD = "controllers.dashboard."
SET_BY_VALUES = {f"{DASHBOARD}{key}" for key in ("publicUrl", "clientSecretFile", "sessionKeyFile")}

# The URLs of the daemon's login, which follow from the host of the dashboard.
LOGIN = {f"controllers.instance.access.daemon.{key}": "dashboard.host" for key in ("authUrl", "signInUrl")}


def mounted():
    """The keys of the configuration that the chart sets if the values name a Secret, each with the name of the Secret."""
    template = (CHART / "templates/_config.tpl").read_text()
    found = re.findall(r'"from" \$s\.(\w+) "at" "([\w.]+)"', template)
    assert len(found) > 10, "the list in _config.tpl looks different"
    return {key: f"secrets.{secret}.name" for secret, key in found}


def path(node):
    """The path of the only key that a schema is about, and the schema of its value."""
    keys = []
    while list(node) in (["properties"], ["properties", "required"]):
        [(key, node)] = node["properties"].items()
        keys.append(key)
    return ".".join(keys), node


def at(key, schema):
    """A schema for values in which a key has a value."""
    for part in reversed(key.split(".")):
        schema = {"properties": {part: schema}, "required": [part]}
    return schema


def paths(node):
    """The keys that a condition is about."""
    if isinstance(node, list):
        return {found for item in node for found in paths(item)}
    if "properties" in node:
        return {path(node)[0]}
    return {found for item in node.values() for found in paths(item)}


def of_values(node, section, instead):
    """A condition of the configuration as one of the values, where it is below `section`. `instead` has the values that set
    a key of the configuration."""
    if isinstance(node, list):
        return [of_values(item, section, instead) for item in node]
    if "properties" not in node:
        return {keyword: of_values(inner, section, instead) for keyword, inner in node.items()}
    key, schema = path(node)
    whole = node
    for part in reversed(section.split(".")):
        whole = {"properties": {part: whole}} | ({"required": [part]} if "required" in node else {})
    if key not in instead or schema not in ({"minLength": 1}, {"const": True}):
        return whole
    return {"anyOf": [whole, at(instead[key], schema)]}


def main():
    config = json.load(sys.stdin)
    # The chart sets apiVersion and kind.
    del config["$schema"], config["required"]
    config.pop("title", None)
    conditions = config.pop("allOf")
    schema = json.loads((CHART / "values.schema.in.json").read_text())
    schema["properties"]["config"] = {"$ref": "#/$defs/config"}
    for part in PARTS:
        schema["properties"][part]["properties"]["config"] = {"$ref": "#/$defs/config"}
    # The templates refuse these loops below `config`.
    elsewhere = tuple(f"controllers.{loop}." for loop in ("dashboard", "login", "webSsh"))
    of_main = [one for one in conditions if not any(key.startswith(elsewhere) for key in paths(one))]
    schema["allOf"] = [of_values(one, "config", mounted() | LOGIN) for one in of_main]
    of_dashboard = [one for one in conditions if all(key.startswith(DASHBOARD) for key in paths(one))]
    enabled = {f"{DASHBOARD}enabled": "dashboard.enabled"}
    schema["allOf"] += [of_values(one, "dashboard.config", enabled) for one in of_dashboard if not paths(one) & SET_BY_VALUES]
    schema["$defs"] = {"config": config}
    json.dump(schema, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
