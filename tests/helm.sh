# Sourced: sets HELM, the path of helm. Unless it is set already, helm is built once from tests/cluster/go/helm, as the
# control plane is.
if [ -z "${HELM:-}" ]; then
	module=tests/cluster/go/helm
	cache=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crownlabs}
	HELM=$cache/helm-$(cat "$module/go.mod" "$module/go.sum" tests/helm.sh | sha256sum | cut -c1-16)/helm
	if [ ! -x "$HELM" ]; then
		echo "building helm once into $(dirname "$HELM")"
		mkdir -p "$(dirname "$HELM")"
		# The version of Kubernetes for which `helm template` renders, as in a helm that was downloaded; else it is 1.20.
		minor=$(sed -n 's|.*k8s\.io/client-go v0\.\([0-9]*\)\..*|\1|p' "$module/go.mod")
		flags="-s -w"
		for package in pkg/lint/rules pkg/chartutil; do
			flags+=" -X helm.sh/helm/v3/$package.k8sVersionMajor=1 -X helm.sh/helm/v3/$package.k8sVersionMinor=$minor"
		done
		(cd "$module" && CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$HELM.new" helm.sh/helm/v3/cmd/helm)
		mv "$HELM.new" "$HELM"
	fi
fi
export HELM
