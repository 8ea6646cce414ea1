#!/bin/sh
# Starts the SSH server, with the options given, once the daemon in the same pod has written host keys and public keys.
set -eu

config=${SSHD_CONFIG:-/etc/ssh/sshd_config}
keys=$(sed -n 's/^AuthorizedKeysFile //p' "$config")
# The daemon writes this file last.
host_key=$(sed -n 's/^HostKey \(.*_ed25519\)$/\1/p' "$config")

waited=0
until [ -r "$keys" ] && [ -r "$host_key" ]; do
	if [ "$waited" -ge 120 ]; then
		echo "$keys and $host_key do not exist after $waited s: does the daemon run in this pod, with controllers.bastion enabled and the same folders mounted? Its /readyz says what it waits for." >&2
		exit 1
	fi
	sleep 1
	waited=$((waited + 1))
done
# In the foreground, with its log on standard error.
exec /usr/sbin/sshd -D -e -f "$config" "$@"
