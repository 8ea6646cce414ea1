# Sourced: sets HELM, the path of helm. Unless it is set already, helm is built once from tests/cluster/go/helm, as the
# control plane is. With HELM_MAJOR=4, it is Helm 4, from tests/cluster/go/helm4; HELM4 names another one.
case ${HELM_MAJOR:-3} in
4) HELM=${HELM4:-} module=tests/cluster/go/helm4 package=helm.sh/helm/v4 ;;
*) module=tests/cluster/go/helm package=helm.sh/helm/v3 ;;
esac
if [ -z "${HELM:-}" ]; then
	cache=${CROWNLABS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crownlabs}
	HELM=$cache/${module##*/}-$(cat "$module/go.mod" "$module/go.sum" tests/helm.sh | sha256sum | cut -c1-16)/helm
	if [ ! -x "$HELM" ]; then
		echo "building helm once into $(dirname "$HELM")"
		mkdir -p "$(dirname "$HELM")"
		# The version of Kubernetes for `helm template`, as in a downloaded helm; without it, the version is 1.20.
		# Helm 4 takes the version of its module.
		minor=$(sed -n 's|.*k8s\.io/client-go v0\.\([0-9]*\)\..*|\1|p' "$module/go.mod")
		flags="-s -w"
		for part in pkg/lint/rules pkg/chartutil; do
			flags+=" -X $package/$part.k8sVersionMajor=1 -X $package/$part.k8sVersionMinor=$minor"
		done
		# The flags of tests/cluster/programs.sh: what has been compiled for the control plane is not compiled again.
		(cd "$module" && CGO_ENABLED=0 GOGC=400 go build -trimpath -gcflags=all=-dwarf=false -ldflags "$flags" -o "$HELM.new" "$package/cmd/helm")
		mv "$HELM.new" "$HELM"
	fi
fi
export HELM
