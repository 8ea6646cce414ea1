#!/usr/bin/env bash
# Has a chart name the images of a release by their digests: pin.sh CHART REGISTRY, with what push.sh prints on standard input.
#
# REGISTRY ends with the folder that the repositories in the chart's values begin with, /crownlabs. Whoever copies the images
# into a registry of his own gives its name alone then, and the digests stay.
set -euo pipefail
chart=$1 registry=$2
values=$chart/values.yaml
[[ $registry == */crownlabs ]] || { echo "$registry does not end with /crownlabs" >&2; exit 1; }

sed -i "s#^  imageRegistry: \"\"\$#  imageRegistry: \"${registry%/crownlabs}\"#" "$values"
echo "  artifacthub.io/images: |" >>"$chart/Chart.yaml"
while read -r name digest; do
	sed -i "\#repository: crownlabs/$name\$#,/digest:/ s#digest: \"\"#digest: \"$digest\"#" "$values"
	grep -qF "digest: \"$digest\"" "$values" || { echo "$values has no place for the digest of $name" >&2; exit 1; }
	printf '    - name: %s\n      image: %s/%s@%s\n' "$name" "$registry" "$name" "$digest" >>"$chart/Chart.yaml"
done
