#!/usr/bin/env bash
# The steps of a release (.github/workflows/release.yml) for a static binary, with a registry on loopback: release.sh BINARY.
# The pushed chart names the pushed image; all architectures have the same binary here.
set -euo pipefail
binary=$(realpath "$1")
cd "$(dirname "$0")/../.."
root=$PWD
. tests/helm.sh
folder=$(mktemp -d)
trap 'kill "$registry_pid" 2>/dev/null || true; rm -rf "$folder"' EXIT
version=$(sed -n 's/^version: //p' manifests/chart/Chart.yaml)
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

cp -rL manifests/chart "$folder/chart"
cd "$folder"
for arch in amd64 arm64; do
	install -D -m 0755 "$binary" "crownlabs-$version-linux-$arch/crownlabs"
done
TLS_VERIFY=false "$root/images/push.sh" "$registry" "$version" crownlabs >digests 2>log || { cat log >&2; exit 1; }
buildah manifest rm "$registry/crownlabs:$version" >/dev/null
buildah rmi "$registry/crownlabs:$version-amd64" "$registry/crownlabs:$version-arm64" >/dev/null
"$root/images/pin.sh" chart "$registry" <digests
"$HELM" package chart >/dev/null
"$HELM" push --plain-http "crownlabs-$version.tgz" "oci://$registry/charts" 2>/dev/null

"$HELM" template crownlabs "oci://$registry/charts/crownlabs" --version "$version" --plain-http \
	--set 'networkPolicy.podNetworks={10.244.0.0/16}' --show-only templates/deployment.yaml >rendered 2>log || { cat log >&2; exit 1; }
image=$(sed -n 's/^ *image: //p' rendered)
[[ $image == $registry/crownlabs@sha256:* ]] || { echo "the chart names $image" >&2; exit 1; }
# The list of both architectures exists with this digest.
curl --silent --fail -H 'Accept: application/vnd.oci.image.index.v1+json' "http://$address/v2/crownlabs/crownlabs/manifests/${image#*@}" >index
for arch in amd64 arm64; do
	grep -q "\"architecture\": *\"$arch\"" index || { echo "$image is not for $arch: $(cat index)" >&2; exit 1; }
done
echo "the chart in the registry names $image, which exists"
