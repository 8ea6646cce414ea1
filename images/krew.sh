#!/usr/bin/env bash
# Prints the manifest that Krew uses to install the kubectl plugin: krew.sh VERSION URL SUMS. URL is the folder of the
# archives, REPOSITORY/releases/download/TAG, and SUMS is the output of sha256sum for them.
set -euo pipefail
version=$1 url=$2 sums=$3
repository=${url%/releases/download/*}
cat <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: crownlabs
spec:
  version: v$version
  homepage: $repository
  shortDescription: Explain the lab machines of CrownLabs
  description: |
    \`kubectl crownlabs why INSTANCE\` says what an Instance waits for, and what happens to it next; \`status WORKSPACE\` lists who
    runs what in a course; \`plan\` prints what the daemon would make of files, or write in a cluster.
  platforms:
END
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do
	os=${platform%/*} arch=${platform#*/} name=crownlabs-cli
	[ "$os" != linux ] || name=crownlabs
	archive=$name-$version-$os-$arch.tar.gz
	sum=$(awk -v archive="$archive" '$2 == archive { print $1 }' "$sums")
	[ -n "$sum" ] || { echo "krew.sh: $sums does not name $archive" >&2; exit 1; }
	bin=crownlabs$([ "$os" != windows ] || echo .exe)
	cat <<-END
	  - selector: {matchLabels: {os: $os, arch: $arch}}
	    uri: $url/$archive
	    sha256: $sum
	    files: [{from: "*/$bin", to: .}, {from: "*/LICENSE", to: .}]
	    bin: $bin
	END
done
