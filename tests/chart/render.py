"""Renders the chart, reads manifests, and normalises both for comparison."""

import copy
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "manifests/chart"
NAMESPACE = "crownlabs-system"
# The version of the tests' control plane. A helm built with `go build` would assume a version that the chart
# rejects.
KUBERNETES = "1.36.3"
HELM = os.environ.get("HELM", "helm")
CLUSTER_SCOPED = {
    "Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "StorageClass",
}
# Every installation must say which pods must not call the webhooks.
NETWORK = {"networkPolicy": {"podNetworks": ["10.244.0.0/16"]}}
# The fields that Helm adds to objects, and the annotation that rolls the pods when the configuration
# changes.
OF_HELM = {
    "helm.sh/chart", "helm.sh/resource-policy", "app.kubernetes.io/managed-by", "app.kubernetes.io/version",
    "app.kubernetes.io/instance", "checksum/config",
}
# The values of these keys replace the default completely, as in the daemon.
WHOLE = {"selector", "namespaceLabels", "sandboxLabels"}


class Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):
    """Rejects duplicate keys, as the API server does."""


def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise yaml.YAMLError(f"{node.start_mark}: written twice: {twice}")
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


Loader.add_constructor("tag:yaml.org,2002:map", mapping)


def helm(*args):
    return subprocess.run([HELM, *map(str, args)], capture_output=True, text=True)


def values_file(values):
    """A file with values, for helm's option `-f`."""
    if not isinstance(values, dict):
        return values
    file = tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False)
    with file:
        json.dump(values, file)
    return file.name


def template(*values, chart=CHART, release="crownlabs", kubernetes=KUBERNETES, network=NETWORK, hooks=False, validated=True):
    """The output of `helm template`. Each of `values` is a file or a mapping; later ones win. `hooks` are the objects of `helm test`.
    `validated` is whether the values must match the schema."""
    options = ["--no-hooks"] * (not hooks) + ["--skip-schema-validation"] * (not validated)
    options += [option for one in (network, *values) for option in ("-f", values_file(one))]
    return helm("template", release, chart, "-n", NAMESPACE, "--kube-version", kubernetes, *options)


def evaluated(body, *values):
    """The text of a template that is added to the chart."""
    with tempfile.TemporaryDirectory() as folder:
        chart = Path(shutil.copytree(CHART, Path(folder, "chart")))
        head = "{{ include \"crownlabs.complete\" . }}\nkind: Evaluated\nmetadata: {name: text}\ntext: {{ include \"evaluated\" . | quote }}\n"
        Path(chart, "templates/evaluated.yaml").write_text(f'{{{{- define "evaluated" }}}}{body}{{{{ end }}}}\n{head}')
        [found] = [document for document in rendered(*values, chart=chart, network={}) if document["kind"] == "Evaluated"]
    return " ".join(found["text"].split())


def notes(*values):
    """The notes of `helm install`. Without a cluster, helm renders no notes, so here they are an object."""
    return evaluated(Path(CHART, "templates/NOTES.txt").read_text(), *values)


# What was rendered with each set of values: many tests read the same objects, and each rendering takes a second.
RENDERED = {}


def text(*values, **options):
    asked = json.dumps([values, options], default=str)
    if asked not in RENDERED or "chart" in options:
        done = template(*values, **options)
        if done.returncode:
            raise AssertionError(done.stderr)
        RENDERED[asked] = done.stdout
    return RENDERED[asked]


def documents(source):
    return [document for document in yaml.load_all(source, Loader) if document is not None]


def rendered(*values, **options):
    return documents(text(*values, **options))


def key(document):
    metadata = document["metadata"]
    return f"{document['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def by_key(source):
    found = {}
    for document in source:
        assert key(document) not in found, f"{key(document)} is there twice"
        found[key(document)] = document
    return found


def configuration(document):
    return yaml.load(document["data"]["crownlabs.yaml"], Loader)


def effective(configuration, defaults=None):
    """A configuration with the defaults of the daemon."""
    if defaults is None:
        defaults = yaml.load((ROOT / "config/crownlabs.yaml").read_text(), Loader)
    merged = copy.deepcopy(defaults)
    for name, value in configuration.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = effective(value, merged[name]) if both and name not in WHOLE else value
    return merged


def rights(role):
    """The rights of a role, as (group, resource, name, verb). A right for one name is left out if all names are allowed."""
    found = set()
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", [""]):
                    found |= {(group, resource, name, verb) for verb in rule["verbs"]}
    return {right for right in found if right[2] == "" or (*right[:2], "", right[3]) not in found}


def cleaned(value):
    """The object without Helm's fields and without empty members."""
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: cleaned(item) for name, item in value.items() if name not in OF_HELM}
    # An empty selector selects everything, so it stays.
    kept = {"namespaceSelector", "podSelector", "spec"}
    return {name: item for name, item in members.items() if name in kept or item not in (None, {}, "")}


def comparable(document):
    found = cleaned(document)
    if document["kind"] in ("ClusterRole", "Role"):
        found["rules"] = rights(document)
    if "crownlabs.yaml" in document.get("data", {}):
        found["data"] = {"crownlabs.yaml": effective(configuration(document))}
    return found


def pods(source):
    return {
        key(document): (document["metadata"]["namespace"], document["spec"]["template"])
        for document in source
        if document["kind"] in ("Deployment", "DaemonSet")
    }
