#!/usr/bin/env bash
# The steps of a release (images/release.sh) for a static binary, with a registry on loopback: release.sh BINARY [FOLDER [NAME...]].
# The pushed chart names the pushed image; all ARCHITECTURES have the same binary here. FOLDER keeps the artifacts. Without NAME, only
# the image of the daemon is built: the others need a base image (BASE) and, for other architectures, an emulator.
set -euo pipefail
binary=$(realpath "$1")
cd "$(dirname "$0")/../.."
root=$PWD
. tests/helm.sh
folder=$(mktemp -d)
trap 'kill "$registry_pid" 2>/dev/null || true; rm -rf "$folder"' EXIT
made=$(realpath -m "${2:-$folder/made}")
names=("${@:3}")
if [ ${#names[@]} = 0 ]; then names=(crownlabs); fi
version=$(sed -n 's/^version: //p' manifests/chart/Chart.yaml)
read -ra architectures <<<"${ARCHITECTURES:-amd64 arm64}"
# A port that no test of this machine gets while this script runs: the locks are those of tests/cluster/ports.rs.
locks=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crownlabs}/ports
mkdir -p "$locks"
for ((port = 20000; ; port++)); do
	((port < 30000)) || { echo "no free port from 20000 on" >&2; exit 1; }
	exec {lock}>"$locks/$port.lock"
	if flock --nonblock "$lock" && ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
	exec {lock}>&-
done
address=127.0.0.1:$port
registry=$address/crownlabs
cat >"$folder/registry.yml" <<-END
	version: 0.1
	log: {level: error}
	storage: {filesystem: {rootdirectory: "$folder/registry"}}
	http: {addr: "$address"}
END
docker-registry serve "$folder/registry.yml" >"$folder/log" 2>&1 &
registry_pid=$!
until curl --silent --fail "http://$address/v2/" >/dev/null; do
	kill -0 "$registry_pid" || { cat "$folder/log" >&2; exit 1; }
	sleep 0.1
done

mkdir -p "$made"
for arch in "${architectures[@]}"; do
	archive=$made/crownlabs-$version-linux-$arch
	./images/archive.sh "$binary" "$archive.tar.gz"
	# The bill of a release: musl, with its allocator.
	case $arch in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; esac
	[ -e "$archive.cdx.json" ] || ./images/sbom.py binary "$machine-unknown-linux-musl" --features mimalloc >"$archive.cdx.json"
done
TLS_VERIFY=false ./images/release.sh "$registry" "$made" "${names[@]}" 2>"$folder/log" || { cat "$folder/log" >&2; exit 1; }
for name in "${names[@]}"; do
	buildah manifest rm "$registry/$name:$version" >/dev/null
	for arch in "${architectures[@]}"; do buildah rmi "$registry/$name:$version-$arch" >/dev/null; done
done
(cd "$made" && sha256sum --check --quiet SHA256SUMS)

"$HELM" template crownlabs "oci://$registry/charts/crownlabs" --version "$version" --plain-http \
	--set 'networkPolicy.podNetworks={10.244.0.0/16}' --show-only templates/deployment.yaml >"$folder/rendered" 2>"$folder/log" ||
	{ cat "$folder/log" >&2; exit 1; }
image=$(sed -n 's/^ *image: //p' "$folder/rendered")
[[ $image == $registry/crownlabs@sha256:* ]] || { echo "the chart names $image" >&2; exit 1; }
# The list of all architectures exists with this digest.
content() { curl --silent --fail -H "Accept: application/vnd.oci.image.$1.v1+json" "http://$address/v2/crownlabs/crownlabs/$2"; }
content index "manifests/${image#*@}" >"$folder/index"
for arch in "${architectures[@]}"; do
	grep -q "\"architecture\": *\"$arch\"" "$folder/index" || { echo "$image is not for $arch: $(cat "$folder/index")" >&2; exit 1; }
done
manifest=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["manifests"][0]["digest"])' <"$folder/index")
config=$(content manifest "manifests/$manifest" | python3 -c 'import json, sys; print(json.load(sys.stdin)["config"]["digest"])')
content config "blobs/$config" >"$folder/config"
python3 - "$folder/config" "$version" "$made" "$binary" "${architectures[0]}" <<'CHECK'
import hashlib, json, pathlib, sys

config, version, made, binary, arch = sys.argv[1:]
labels = json.loads(pathlib.Path(config).read_text())["config"]["Labels"]
named = {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()}
missing = {"title", "description", "source", "licenses", "version", "revision"} - set(named)
assert not missing and named["version"] == version, f"labels of the image: {named}"
bill = json.loads(pathlib.Path(made, f"image-crownlabs-{version}-{arch}.cdx.json").read_text())
found = {one["bom-ref"].split("@")[0]: one for one in bill["components"]}
digest = hashlib.sha256(pathlib.Path(binary).read_bytes()).hexdigest()
assert found["/crownlabs"]["hashes"][0]["content"] == digest, "the bill has another binary"
missing = {"pkg:cargo/kube", "pkg:cargo/rustls", "pkg:npm/htmx.org", "pkg:generic/rust-std"} - set(found)
assert not missing, f"the bill of the image lacks {missing}"
CHECK
echo "the chart in the registry names $image, which exists"
