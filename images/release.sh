#!/usr/bin/env bash
# Makes the artifacts of a release from its archives: release.sh REGISTRY FOLDER [NAME...].
#
# FOLDER has crownlabs-VERSION-linux-ARCH.tar.gz and its bill of materials for each architecture. The script pushes the images NAME (by
# default all) to REGISTRY, and the chart that names them by digest to REGISTRY/charts. FOLDER then also has the bills of materials
# of the images, the chart, `digests` (the name and the digest of each image and of the chart) and SHA256SUMS.
#
# It signs nothing: .github/workflows/release.yml does that. tests/ship/release.sh runs it with a registry on loopback, and sets
# HELM and TLS_VERIFY=false.
set -euo pipefail
images=$(cd "$(dirname "$0")" && pwd)
registry=$1
cd "$2"
shift 2
helm=${HELM:-helm}
plain=()
if [ "${TLS_VERIFY:-true}" = false ]; then plain=(--plain-http); fi
if [ $# = 0 ]; then set -- crownlabs img-exporter uploader ssh-bastion; fi
version=$(sed -n 's/^version: //p' "$images/../manifests/chart/Chart.yaml")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for archive in crownlabs-"$version"-linux-*.tar.gz; do
	tar --extract --file "$archive" --directory "$work"
	cp "${archive%.tar.gz}.cdx.json" "$work"
done
(cd "$work" && "$images/push.sh" "$registry" "$version" "$@") >digests
cp "$work"/image-*.cdx.json .
cp -rL "$images/../manifests/chart" "$work/chart"
"$images/pin.sh" digests "$work/chart" "$registry" <digests
"$helm" package "$work/chart" --destination . >/dev/null
pushed=$("$helm" push "${plain[@]}" "crownlabs-$version.tgz" "oci://$registry/charts" 2>&1) || { echo "$pushed" >&2; exit 1; }
digest=$(sed -n 's/^Digest: //p' <<<"$pushed")
[[ $digest == sha256:* ]] || { echo "helm push printed no digest: $pushed" >&2; exit 1; }
echo "charts/crownlabs $digest" >>digests
sha256sum ./*.tar.gz ./*.cdx.json ./*.tgz | sed 's#  \./#  #' >SHA256SUMS
