{{- /*
Pods on every node: a daemon with separate loops, as a DaemonSet. `part` is the section of the values, such as
`instanceMetrics`, and `suffix` the end of the names of its objects, such as `instance-metrics`.
*/ -}}

{{- /* root, suffix */ -}}
{{- define "crownlabs.node.fullname" -}}
{{ include "crownlabs.fullname" .root }}-{{ .suffix }}
{{- end }}

{{- define "crownlabs.node.selectorLabels" -}}
app.kubernetes.io/name: {{ include "crownlabs.name" .root }}-{{ .suffix }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "crownlabs.node.labels" -}}
{{ include "crownlabs.node.selectorLabels" . }}
{{ include "crownlabs.releaseLabels" .root }}
{{- end }}

{{- /* The loops of the pods that measure the usage of Instances, with the keys that follow from the values. */ -}}
{{- define "crownlabs.instanceMetrics.loops" -}}
{{- $keys := dict "enabled" true "runtimeEndpoint" (printf "unix://%s" .Values.instanceMetrics.runtimeSocket) -}}
{{- $controllers := (include "crownlabs.effective" . | fromYaml).controllers -}}
{{- if $controllers.examAgent.enabled -}}
{{- $_ := set $keys "namespaces" (append $controllers.instanceMetrics.namespaces $controllers.examAgent.namespace) -}}
{{- end -}}
{{- toYaml (dict "instanceMetrics" $keys) -}}
{{- end }}

{{- /* The same for the pods that create links. */ -}}
{{- define "crownlabs.podNetworks.loops" -}}
{{- $keys := dict "enabled" true "runtimeEndpoint" (printf "unix://%s" .Values.podNetworks.runtimeSocket) -}}
{{- toYaml (dict "podConfigNode" $keys) -}}
{{- end }}

{{- /* The namespace. `baseline` and `restricted` reject paths of the node. root, part, suffix, why */ -}}
{{- define "crownlabs.node.namespace" -}}
{{- $values := get .root.Values .part -}}
{{- if $values.createNamespace }}
apiVersion: v1
kind: Namespace
metadata:
  name: {{ $values.namespace }}
  labels:
    {{- include "crownlabs.releaseLabels" .root | nindent 4 }}
    # `baseline` would reject {{ .why }}.
    pod-security.kubernetes.io/enforce: privileged
    pod-security.kubernetes.io/warn: privileged
{{- end }}
{{- end }}

{{- define "crownlabs.node.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "crownlabs.node.fullname" . }}
  namespace: {{ (get .root.Values .part).namespace }}
  labels: {{- include "crownlabs.node.labels" . | nindent 4 }}
data:
  crownlabs.yaml: |
    {{- include "crownlabs.part.config" . | nindent 4 }}
{{- end }}

{{- /*
The DaemonSet: root, part, suffix, loops as above; probe (the loop whose readiness is that of the pod), token (whether the
account is used: the pod has a token then), ports (of the loops, as a list), pod (more of the pod's spec, such as hostPID),
container (its securityContext), env, volumes and mounts.
*/ -}}
{{- define "crownlabs.node.daemonSet" -}}
{{- $values := get .root.Values .part -}}
{{- $effective := include "crownlabs.part.effective" . | fromYaml -}}
{{- $name := include "crownlabs.node.fullname" . -}}
{{- $server := $effective.server -}}
{{- $ports := .ports -}}
{{- if $server.metrics -}}
{{- $ports = append $ports (dict "name" "metrics" "containerPort" (include "crownlabs.port" $server.metrics | int)) -}}
{{- end -}}
{{- if $server.health -}}
{{- $ports = append $ports (dict "name" "health" "containerPort" (include "crownlabs.port" $server.health | int)) -}}
{{- end -}}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ $name }}
  namespace: {{ $values.namespace }}
  labels: {{- include "crownlabs.node.labels" . | nindent 4 }}
spec:
  {{- with $values.updateStrategy }}
  updateStrategy: {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels: {{- include "crownlabs.node.selectorLabels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "crownlabs.node.labels" . | nindent 8 }}
      annotations:
        checksum/config: {{ include "crownlabs.part.config" . | sha256sum }}
        {{- if and .root.Values.scrapeAnnotations $server.metrics }}
        prometheus.io/scrape: "true"
        prometheus.io/port: {{ include "crownlabs.port" $server.metrics | quote }}
        {{- end }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: {{ .token }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      terminationGracePeriodSeconds: 30
      securityContext:
        seccompProfile: {type: RuntimeDefault}
      {{- with .pod }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations: {{- toYaml . | nindent 6 }}
      {{- end }}
      containers:
      - name: crownlabs
        image: {{ include "crownlabs.image" (dict "image" .root.Values.image "root" .root) }}
        {{- with .root.Values.image.pullPolicy }}
        imagePullPolicy: {{ . }}
        {{- end }}
        args: [run, --config, /etc/crownlabs/crownlabs.yaml]
        {{- with .env }}
        env: {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with $ports }}
        ports: {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if $server.health }}
        livenessProbe:
          httpGet: {path: /healthz, port: health}
          periodSeconds: 10
        readinessProbe:
          httpGet: {path: /readyz/{{ .probe }}, port: health}
          periodSeconds: 5
        {{- end }}
        resources:
          {{- toYaml $values.resources | nindent 10 }}
        securityContext:
          {{- toYaml .container | nindent 10 }}
        volumeMounts:
        - {name: configuration, mountPath: /etc/crownlabs, readOnly: true}
        {{- with .mounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
      - name: configuration
        configMap: {name: {{ $name }}}
      {{- with .volumes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end }}

{{- /* The account, without any rights. */ -}}
{{- define "crownlabs.node.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "crownlabs.node.fullname" . }}
  namespace: {{ (get .root.Values .part).namespace }}
  labels: {{- include "crownlabs.node.labels" . | nindent 4 }}
automountServiceAccountToken: {{ .token }}
{{- end }}

{{- /* The labels of the metrics themselves, such as `pod`, take precedence. */ -}}
{{- define "crownlabs.node.monitor" -}}
{{- include "crownlabs.monitor" (dict "root" .root "section" (printf "%s.config" .part) "name" (include "crownlabs.node.fullname" .) "namespace" (get .root.Values .part).namespace "labels" (include "crownlabs.node.labels" .) "selector" (include "crownlabs.node.selectorLabels" .) "server" (include "crownlabs.part.effective" . | fromYaml).server "honorLabels" true) }}
{{- end }}
