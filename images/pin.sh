#!/usr/bin/env bash
# Writes names into the files of a release:
#
#   pin.sh names [CLONE]                      the account OWNER that publishes the repository, and the version of Cargo.toml, in the chart,
#                                             documents, plain manifests and images of a clone, and the version in Cargo.lock;
#                                             without OWNER, only the version
#   pin.sh digests CHART REGISTRY < DIGESTS   the registry of the images, and the digests that push.sh prints
#
# The placeholder for the account is OWNER. After `names`, the links of an artifact lead to the tag of its version. `names` can be
# repeated, also with another OWNER.
#
# REGISTRY ends with /crownlabs, the first folder of the repositories in the chart's values. Administrators who copy
# the images into their own registry then set only its name, and the digests stay.
set -euo pipefail

# The files with the account, and those with the version.
WITH_OWNER=(.github/CODEOWNERS CONTRIBUTING.md Cargo.toml Dockerfile README.md SECURITY.md docs images manifests)
WITH_VERSION=(config docs/gitops.md docs/installing.md docs/quickstart.md docs/reference manifests)

# Edits files in place, those that match: edit PATTERN SCRIPT FILE...
edit() {
	local pattern=$1 script=$2 files
	shift 2
	mapfile -d '' files < <(find "$@" -type f -print0 | xargs -0 grep -IlEZ -e "$pattern")
	if [ ${#files[@]} -gt 0 ]; then sed -Ei "$script" "${files[@]}"; fi
}

names() { # CLONE
	cd "$1"
	local chart=manifests/chart/Chart.yaml version previous owner account='[A-Za-z0-9-]+'
	version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
	previous=$(sed -n 's/^version: //p' $chart)
	owner=${OWNER:-$(sed -nE "s#^home: https://github.com/($account)/crownlabs\$#\1#p" $chart)}
	[[ $owner =~ ^$account$ ]] || { echo "OWNER is '$owner': expected the name of an account" >&2; exit 1; }
	local there="(github\.com/|raw\.githubusercontent\.com/|@|--repo )$account/crownlabs" registry="ghcr\.io/$account/crownlabs"
	# An account's own link has its name as the text.
	local named="\[\`($account)\`\]\(https://github\.com/\1\)"
	edit "$there" "s#$there#\1$owner/crownlabs#g" "${WITH_OWNER[@]}"
	edit "$registry" "s#$registry#ghcr.io/${owner,,}/crownlabs#g" "${WITH_OWNER[@]}"
	edit "$named" "s#$named#[\`$owner\`](https://github.com/$owner)#g" "${WITH_OWNER[@]}"
	if [ "$previous" != "$version" ]; then
		local old="(^|[^0-9.])${previous//./\\.}([^0-9.]|\.[^0-9]|\.?$)"
		edit "$old" "s#$old#\1$version\2#g; s#$old#\1$version\2#g" "${WITH_VERSION[@]}"
	fi
	sed -i "/^name = \"crownlabs\"\$/ { n; s/.*/version = \"$version\"/ }" Cargo.lock
}

digests() { # CHART REGISTRY
	local chart=$1 registry=$2 values=$1/values.yaml name digest
	[[ $registry == */crownlabs ]] || { echo "$registry does not end with /crownlabs" >&2; exit 1; }
	sed -i "s#^  imageRegistry: \"\"\$#  imageRegistry: \"${registry%/crownlabs}\"#" "$values"
	echo "  artifacthub.io/images: |" >>"$chart/Chart.yaml"
	while read -r name digest; do
		sed -i "\#repository: crownlabs/$name\$#,/digest:/ s#digest: \"\"#digest: \"$digest\"#" "$values"
		grep -qF "digest: \"$digest\"" "$values" || { echo "$values has no place for the digest of $name" >&2; exit 1; }
		printf '    - name: %s\n      image: %s/%s@%s\n' "$name" "$registry" "$name" "$digest" >>"$chart/Chart.yaml"
	done
	# A link in the repository, a file in a copy of the chart: the defaults of its templates.
	local defaults=$chart/files/values.yaml
	if [ -f "$defaults" ] && [ ! -L "$defaults" ]; then cp "$values" "$defaults"; fi
}

case ${1-} in
names) names "${2:-$(dirname "$0")/..}" ;;
digests) digests "$2" "$3" ;;
*) sed -n '2,/^set/ { /^set/d; s/^# \{0,1\}//p }' "$0" >&2; exit 2 ;;
esac
