{{- /*
How the Prometheus operator finds metrics: a PodMonitor, or a ServiceMonitor with its Service. root, section (of the
configuration), name, namespace, labels and selector (as texts), server (of the configuration), honorLabels
*/ -}}
{{- define "crownlabs.monitor" -}}
{{- $values := .root.Values }}
{{- range $kind, $monitor := dict "PodMonitor" $values.podMonitor "ServiceMonitor" $values.serviceMonitor }}
{{- if $monitor.enabled }}
{{- if not $.server.metrics }}
{{- fail (printf "%s.enabled: there are no metrics: %s.server.metrics is empty" (untitle $kind) $.section) }}
{{- end }}
{{- $services := eq $kind "ServiceMonitor" }}
{{- if and $services $values.podMonitor.enabled }}
{{- fail "serviceMonitor.enabled: podMonitor.enabled is true, too, and every metric would be there twice: set one of them to false" }}
{{- end }}
---
apiVersion: monitoring.coreos.com/v1
kind: {{ $kind }}
metadata:
  name: {{ $.name }}
  namespace: {{ $.namespace }}
  labels:
    {{- $.labels | nindent 4 }}
    {{- with $monitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- $.selector | nindent 6 }}
      {{- if $services }}
      app.kubernetes.io/component: metrics
      {{- end }}
  {{ ternary "endpoints" "podMetricsEndpoints" $services }}:
  - {port: metrics, interval: {{ $monitor.interval }}{{ if $.honorLabels }}, honorLabels: true{{ end }}}
{{- if $services }}
{{- include "crownlabs.metricsService" $ }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The Service of a ServiceMonitor; as above. */ -}}
{{- define "crownlabs.metricsService" }}
---
# For ServiceMonitors.
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}-metrics
  namespace: {{ .namespace }}
  labels:
    {{- .labels | nindent 4 }}
    app.kubernetes.io/component: metrics
spec:
  selector: {{- .selector | nindent 4 }}
  ports:
  - {name: metrics, port: {{ include "crownlabs.port" .server.metrics }}, targetPort: metrics}
{{- end }}
