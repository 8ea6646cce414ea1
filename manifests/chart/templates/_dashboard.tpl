{{- define "crownlabs.dashboard.fullname" -}}
{{ include "crownlabs.fullname" . }}-dashboard
{{- end }}

{{- define "crownlabs.dashboard.selectorLabels" -}}
app.kubernetes.io/name: {{ include "crownlabs.name" . }}-dashboard
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "crownlabs.dashboard.labels" -}}
{{ include "crownlabs.dashboard.selectorLabels" . }}
{{ include "crownlabs.releaseLabels" . }}
{{- end }}

{{- /* The configuration of the dashboard's daemon: selector, log and the web site of machines come from `config`. */ -}}
{{- define "crownlabs.dashboard.config" -}}
{{- $values := .Values.dashboard -}}
{{- $main := include "crownlabs.config" . | fromYaml -}}
{{- $defaults := include "crownlabs.defaults" . | fromYaml -}}
{{- $_ := required "dashboard.secret.name: the Secret with the secret of the client and the key of sessions (docs/dashboard.md)" $values.secret.name -}}
{{- $folder := "/etc/crownlabs-files/dashboard" -}}
{{- $keys := dict
  "enabled" true
  "publicUrl" (printf "https://%s" (required "dashboard.host: the host at which browsers open the dashboard" $values.host))
  "clientSecretFile" (printf "%s/%s" $folder $values.secret.clientSecret)
  "sessionKeyFile" (printf "%s/%s" $folder $values.secret.sessionKey)
-}}
{{- if $values.ca.name -}}
{{- $_ := set $keys "caFile" (printf "/etc/crownlabs-files/dashboard-ca/%s" $values.ca.key) -}}
{{- end -}}
{{- $website := (include "crownlabs.effective" . | fromYaml).controllers.instance.websiteBaseUrl -}}
{{- $controllers := dict "dashboard" $keys "instance" (dict "enabled" false "websiteBaseUrl" $website) -}}
{{- range $loop, $of := $defaults.controllers -}}
{{- if and $of.enabled (not (hasKey $controllers $loop)) -}}
{{- $_ := set $controllers $loop (dict "enabled" false) -}}
{{- end -}}
{{- if and (ne $loop "dashboard") (dig "controllers" $loop "enabled" false $values.config) -}}
{{- fail (printf "dashboard.config.controllers.%s.enabled: this loop runs in the other pods: set it below config" $loop) -}}
{{- end -}}
{{- end -}}
{{- $made := dict "apiVersion" $main.apiVersion "kind" $main.kind "leaderElection" (dict "enabled" false) "controllers" $controllers -}}
{{- with $main.log -}}
{{- $_ := set $made "log" . -}}
{{- end -}}
{{- $made = mergeOverwrite $made (deepCopy $values.config) -}}
{{- toYaml (set $made "selector" $main.selector) -}}
{{- end }}

{{- define "crownlabs.dashboard.effective" -}}
{{- $config := include "crownlabs.dashboard.config" . | fromYaml -}}
{{- toYaml (mergeOverwrite (include "crownlabs.defaults" . | fromYaml) $config) -}}
{{- end }}
