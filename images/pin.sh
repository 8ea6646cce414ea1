#!/usr/bin/env bash
# Pins the images of a release in a chart by their digests: pin.sh CHART REGISTRY, with the output of push.sh on standard
# input.
#
# REGISTRY ends with /crownlabs, the first folder of the repositories in the chart's values. Administrators who copy
# the images into their own registry then set only its name, and the digests stay.
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
