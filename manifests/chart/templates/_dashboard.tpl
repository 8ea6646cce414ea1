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

{{- /* The loop of these pods, with the keys that follow from the values. */ -}}
{{- define "crownlabs.dashboard.loops" -}}
{{- $values := .Values.dashboard -}}
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
{{- if .Values.bastion.enabled -}}
{{- /* Its pods have the DNS of the cluster. */ -}}
{{- $_ := set $keys "sshByName" true -}}
{{- $webSsh := (include "crownlabs.bastion.effective" . | fromYaml).controllers.webSsh -}}
{{- if $webSsh.enabled -}}
{{- $service := printf "%s-web-ssh.%s" (include "crownlabs.fullname" .) (include "crownlabs.bastion.namespace" .) -}}
{{- $_ := set $keys "webSshUrl" (printf "ws://%s:%s/webssh" $service (include "crownlabs.port" $webSsh.listen)) -}}
{{- end -}}
{{- end -}}
{{- if eq (include "crownlabs.effective" . | fromYaml).controllers.instance.access.mode "daemon" -}}
{{- $_ := set $keys "peerDesktops" (not (empty (include "crownlabs.login.effective" . | fromYaml).controllers.login.peersListen)) -}}
{{- end -}}
{{- toYaml (dict "dashboard" $keys) -}}
{{- end }}

{{- define "crownlabs.dashboard.config" -}}
{{- include "crownlabs.part.config" (dict "root" . "part" "dashboard" "loops" (include "crownlabs.dashboard.loops" . | fromYaml)) -}}
{{- end }}

{{- define "crownlabs.dashboard.effective" -}}
{{- include "crownlabs.part.effective" (dict "root" . "part" "dashboard" "loops" (include "crownlabs.dashboard.loops" . | fromYaml)) -}}
{{- end }}
