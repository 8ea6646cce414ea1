{{- /* Labels have at most 63 characters, with the longest suffix: -instance-metrics. */ -}}
{{- define "crownlabs.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 46 | trimSuffix "-" }}
{{- end }}

{{- /* The same applies to the names of Services: -instance-metrics-metrics. */ -}}
{{- define "crownlabs.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 38 | trimSuffix "-" }}
{{- else if contains (include "crownlabs.name" .) .Release.Name }}
{{- .Release.Name | trunc 38 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "crownlabs.name" .) | trunc 38 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "crownlabs.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "crownlabs.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: with serviceAccount.create: false, the name of an existing account is needed" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "crownlabs.bastion.fullname" -}}
{{ include "crownlabs.fullname" . }}-bastion
{{- end }}

{{- define "crownlabs.selectorLabels" -}}
app.kubernetes.io/name: {{ include "crownlabs.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Whether the loops of the bastion and the SSH server are in the pods of the daemon. */ -}}
{{- define "crownlabs.bastion.inDaemon" -}}
{{- if and .Values.bastion.enabled .Values.bastion.inDaemon -}}
true
{{- end -}}
{{- end }}

{{- define "crownlabs.bastion.namespace" -}}
{{- ternary .Release.Namespace .Values.bastion.namespace .Values.bastion.inDaemon -}}
{{- end }}

{{- define "crownlabs.bastion.serviceAccount" -}}
{{- if .Values.bastion.inDaemon -}}
{{ include "crownlabs.serviceAccount" . }}
{{- else -}}
{{ include "crownlabs.bastion.fullname" . }}
{{- end -}}
{{- end }}

{{- define "crownlabs.bastion.selectorLabels" -}}
app.kubernetes.io/name: {{ include "crownlabs.name" . }}{{ if not .Values.bastion.inDaemon }}-bastion{{ end }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "crownlabs.releaseLabels" -}}
app.kubernetes.io/part-of: crownlabs
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The labels that the namespace of the release needs. */ -}}
{{- define "crownlabs.namespaceLabels" -}}
{{- $labels := deepCopy .Values.namespace.labels -}}
{{- $bastion := include "crownlabs.bastion.inDaemon" . -}}
{{- if or $bastion (include "crownlabs.login.isOn" .) -}}
{{- /* The NetworkPolicies of Tenants let pods of such namespaces connect to machines: the bastion, and the login for peers. */ -}}
{{- $_ := set $labels "crownlabs.polito.it/allow-instance-access" "true" -}}
{{- end -}}
{{- if or .Values.hostNetwork (and $bastion (include "crownlabs.bastion.captures" .)) -}}
{{- /* `baseline` would reject the network of the node, and the capability NET_RAW. */ -}}
{{- $_ := set $labels "pod-security.kubernetes.io/enforce" "privileged" -}}
{{- end -}}
{{- toYaml $labels -}}
{{- end }}

{{- define "crownlabs.labels" -}}
{{ include "crownlabs.selectorLabels" . }}
{{ include "crownlabs.releaseLabels" . }}
{{- end }}

{{- define "crownlabs.bastion.labels" -}}
{{ include "crownlabs.bastion.selectorLabels" . }}
{{ include "crownlabs.releaseLabels" . }}
{{- end }}

{{- /* The image of a dictionary with repository, tag and digest; the tag is the version of the chart if there is none. */ -}}
{{- define "crownlabs.image" -}}
{{- with .root.Values.global.imageRegistry -}}
{{ . }}/
{{- end -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}
{{- end }}

{{- /* A security context with its users, except on OpenShift, which assigns users: root, context */ -}}
{{- define "crownlabs.users" -}}
{{- toYaml (ternary (omit .context "runAsUser" "runAsGroup" "fsGroup") .context .root.Values.openshift.enabled) -}}
{{- end }}

{{- /* The objects that let another SCC of OpenShift admit pods that `restricted-v2` would reject: name, namespace, account, scc, labels */ -}}
{{- define "crownlabs.scc" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}-scc
  namespace: {{ .namespace }}
  labels: {{- .labels | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:openshift:scc:{{ .scc }}"}
subjects:
- {kind: ServiceAccount, name: {{ .account }}, namespace: {{ .namespace }}}
{{- end }}

{{- /* The port of a listen address. */ -}}
{{- define "crownlabs.port" -}}
{{ regexFind "[0-9]+$" . }}
{{- end }}

{{- /* The port of a URL. */ -}}
{{- define "crownlabs.urlPort" -}}
{{- $url := urlParse . -}}
{{ default (ternary "443" "80" (eq $url.scheme "https")) (regexFind ":[0-9]+$" $url.host | trimPrefix ":") }}
{{- end }}

{{- /* Anti-affinity and affinity: mode, labels, affinity. */ -}}
{{- define "crownlabs.affinity" -}}
{{- $own := dict }}
{{- $term := dict "topologyKey" .topologyKey "labelSelector" (dict "matchLabels" .labels) }}
{{- if eq .mode "soft" }}
{{- $own = dict "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" (list (dict "weight" 100 "podAffinityTerm" $term))) }}
{{- else if eq .mode "hard" }}
{{- $own = dict "podAntiAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term)) }}
{{- end }}
{{- with mergeOverwrite $own .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Constraints without a pod selector apply to the own pods: constraints, labels. */ -}}
{{- define "crownlabs.topologySpread" -}}
{{- with .constraints }}
topologySpreadConstraints:
{{- range . }}
- {{ toYaml (merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" $.labels))) | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end }}

{{- /* With hard anti-affinity and as many nodes as replicas, a new pod can only be scheduled after an old one is gone. */ -}}
{{- define "crownlabs.strategy" -}}
{{- if .strategy }}
strategy:
  {{- toYaml .strategy | nindent 2 }}
{{- else if eq .mode "hard" }}
strategy:
  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
{{- end }}
{{- end }}

{{- /* The ports of DNS servers, for a NetworkPolicy. On OpenShift, their pods listen on port 5353. */ -}}
{{- define "crownlabs.dnsPorts" -}}
{{- range ternary (list 53 5353) (list 53) .Values.openshift.enabled }}
- {port: {{ . }}}
- {port: {{ . }}, protocol: UDP}
{{- end }}
{{- end }}

{{- /*
The ports that the daemon connects to beside DNS: of the API server and of the servers that the configuration names. Status URLs
have the usual ports.
*/ -}}
{{- define "crownlabs.egressPorts" -}}
{{- $effective := include "crownlabs.effective" . | fromYaml -}}
{{- $keycloak := $effective.integrations.keycloak -}}
{{- $mail := $effective.integrations.mail -}}
{{- $urls := list $effective.integrations.prometheus.url (ternary $keycloak.url "" $keycloak.enabled) -}}
{{- if $effective.controllers.imageList.enabled -}}
{{- range $effective.controllers.imageList.registries -}}
{{- $urls = append (append $urls .url) (default "" .tokenUrl) -}}
{{- end -}}
{{- end -}}
{{- $ports := concat .Values.networkPolicy.apiServerPorts .Values.networkPolicy.egressPorts -}}
{{- range compact $urls -}}
{{- $ports = append $ports (include "crownlabs.urlPort" .) -}}
{{- end -}}
{{- if eq $mail.transport "smtp" -}}
{{- if $mail.configDir -}}
{{- /* The file in the Secret names the port. */ -}}
{{- $ports = concat $ports (list 25 465 587) -}}
{{- else -}}
{{- $ports = append $ports (default (get (dict "implicit" 465 "starttls" 587 "none" 25) $mail.tls) $mail.port) -}}
{{- end -}}
{{- end -}}
{{- if $effective.controllers.termination.enabled -}}
{{- $ports = concat $ports (list 80 443) -}}
{{- end -}}
{{- if and (include "crownlabs.bastion.inDaemon" .) (not .Values.bastion.networkPolicy.enabled) -}}
{{- /* The machines, without the policy of the bastion, which would name them. */ -}}
{{- $ports = append (append $ports $effective.controllers.sshTracker.port) $effective.controllers.webSsh.port -}}
{{- end -}}
{{- $numbers := list -}}
{{- range $ports -}}
{{- $numbers = append $numbers (printf "%05d" (int .)) -}}
{{- end -}}
{{- $ports = list -}}
{{- range $numbers | uniq | sortAlpha -}}
{{- $ports = append $ports (regexReplaceAll "^0+" . "" | int) -}}
{{- end -}}
{{- toYaml (dict "ports" $ports) -}}
{{- end }}

{{- /*
The rules of a NetworkPolicy for open ports (`ports`), and for metrics (`server`, of the configuration). Metrics are open to
Prometheus, or to all clients if its namespace is not configured. root, ports, server
*/ -}}
{{- define "crownlabs.openRules" -}}
{{- $prometheus := .root.Values.networkPolicy.prometheusNamespace -}}
{{- $ports := .ports -}}
{{- if .server.health -}}
{{- $ports = append $ports "health" -}}
{{- end -}}
{{- if and .server.metrics (not $prometheus) -}}
{{- $ports = append $ports "metrics" -}}
{{- end -}}
{{- with $ports }}
- ports:
  {{- range . }}
  - {port: {{ . }}}
  {{- end }}
{{- end }}
{{- if and .server.metrics $prometheus }}
- from:
  - namespaceSelector:
      matchLabels: {kubernetes.io/metadata.name: {{ $prometheus }}}
  ports:
  - {port: metrics}
{{- end }}
{{- end }}
