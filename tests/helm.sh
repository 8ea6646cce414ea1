# Sourced: sets HELM, the path of helm. Unless it is set already, helm is built once from tests/cluster/go/helm, as the
# control plane is.
if [ -z "${HELM:-}" ]; then
	module=tests/cluster/go/helm
	cache=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crownlabs}
	HELM=$cache/helm-$(cat "$module/go.mod" "$module/go.sum" | sha256sum | cut -c1-16)/helm
	if [ ! -x "$HELM" ]; then
		echo "building helm once into $(dirname "$HELM")"
		mkdir -p "$(dirname "$HELM")"
		(cd "$module" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$HELM.new" helm.sh/helm/v3/cmd/helm)
		mv "$HELM.new" "$HELM"
	fi
fi
export HELM
