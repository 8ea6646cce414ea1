#!/usr/bin/env bash
# `make demo`: builds the daemon and the demo while the programs of the control plane are fetched or built, and runs the demo.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The profile of Cargo.toml with the shortest build. With it, an RSA key for the bastion would take
# a minute.
profile=${DEMO_PROFILE:-${BASTION:+dev}}
profile=${profile:-demo}
programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok)

# Checked before anything is built.
needs_root() {
	if [ "${!1:-0}" != 0 ] && [ "$(id -u)" != 0 ]; then
		echo "$1=1 needs root, because $2: sudo -E make demo $1=1" >&2
		exit 1
	fi
}
needs_root BASTION "packets are captured, and this machine gets the address of a Service"
needs_root METRICS "it makes pods and their networks"
needs_root PODCONFIG "it makes pods and their networks"

from=$(tests/cluster/programs.sh --from "${programs[@]}") || { echo "$from" >&2; exit 1; }
# If the archives could not be reached, they are not tried again.
[ "$from" != modules ] || export CROWNLABS_ARCHIVES=none
# The parts of the demo that need further programs.
parts=()
for part in AUTOMATION BASTION DASHBOARD IMAGES KEYCLOAK METRICS PODCONFIG; do
	[ "${!part:-0}" = 0 ] || parts+=("${part,,}")
done
tests/prerequisites.sh demo "$from" "${parts[@]}"
if [ "${DASHBOARD:-0}" != 0 ]; then
	# npm is one of the prerequisites. If npm reaches no registry, the pages have no live updates, and say so.
	make --quiet assets || true
fi

# Both run at the same time, each in its own process group, so that each can be ended with all its children. If one fails, the
# other is ended. The build reports on `built` which programs exist: the demo starts as soon as it is one of them, and waits for
# the daemon itself.
said=$(mktemp)
built=$(mktemp -u)
mkfifo "$built"
stop() {
	rm -f "$said" "$built"
	kill -TERM -- "-$control_plane" "-$build" 2>/dev/null || true
}
trap 'exit 130' INT TERM HUP
trap 'echo "the demo does not start" >&2; exit 1' USR1
build() {
	"${CARGO:-cargo}" build --quiet --locked --profile "$profile" --package crownlabs --bin crownlabs --package crownlabs-demo \
		--bin demo --message-format json-render-diagnostics
}
set -m
{ tests/cluster/programs.sh "${programs[@]}" >"$said" || { cat "$said" >&2; kill -USR1 $$; }; } &
control_plane=$!
{ build | sed -un 's/.*"executable":"\([^"]*\)".*/\1/p' >"$built" || kill -USR1 $$; } &
build=$!
trap stop EXIT
set +m

case $from in
cache) time="about 2 minutes with empty caches" ;;
archives) time="about 2 minutes with empty caches, while the control plane is fetched, which takes about 1" ;;
modules) time="about 5 minutes with empty caches, while the control plane is built, which takes about 6" ;;
esac
echo "building the daemon and the demo ($time) …"
daemon=- demo=
exec {announced}<"$built"
while [ -z "$demo" ] && read -r program <&"$announced"; do
	case ${program##*/} in
	crownlabs) daemon=$program ;;
	demo) demo=$program ;;
	esac
done
# The build has failed, and the signal reports it.
[ -n "$demo" ] || wait
wait "$control_plane"
echo "the control plane runs, after $SECONDS s"
trap - EXIT
rm -f "$said" "$built"
# From here on, the demo notices any failure.
trap '' USR1
exec "$demo" --daemon "$daemon" --build "$build" "$@" <&"$announced"
