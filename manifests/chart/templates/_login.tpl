{{- define "crownlabs.login.fullname" -}}
{{ include "crownlabs.fullname" . }}-login
{{- end }}

{{- define "crownlabs.login.selectorLabels" -}}
app.kubernetes.io/name: {{ include "crownlabs.name" . }}-login
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "crownlabs.login.labels" -}}
{{ include "crownlabs.login.selectorLabels" . }}
{{ include "crownlabs.releaseLabels" . }}
{{- end }}

{{- /* Whether machines have the daemon's own login. */ -}}
{{- define "crownlabs.login.isOn" -}}
{{- $access := (include "crownlabs.effective" . | fromYaml).controllers.instance.access -}}
{{- if has "daemon" (list $access.mode $access.exams) -}}
{{- if not .Values.dashboard.enabled -}}
{{- fail "config.controllers.instance.access: mode: daemon and exams: daemon need the dashboard, where users log in: set dashboard.enabled, or another mode" -}}
{{- end -}}
true
{{- end -}}
{{- end }}

{{- /* The loop of these pods, with the keys that follow from the values. */ -}}
{{- define "crownlabs.login.loops" -}}
{{- $folder := "/etc/crownlabs-files" -}}
{{- $keys := dict
  "enabled" true
  "peersListen" "0.0.0.0:8090"
  "sessionKeyFile" (printf "%s/session/%s" $folder .Values.dashboard.secret.sessionKey)
  "hostKeyFile" (printf "%s/machine-hosts/key" $folder)
-}}
{{- toYaml (dict "login" $keys) -}}
{{- end }}

{{- define "crownlabs.login.config" -}}
{{- include "crownlabs.part.config" (dict "root" . "part" "login" "loops" (include "crownlabs.login.loops" . | fromYaml)) -}}
{{- end }}

{{- define "crownlabs.login.effective" -}}
{{- include "crownlabs.part.effective" (dict "root" . "part" "login" "loops" (include "crownlabs.login.loops" . | fromYaml)) -}}
{{- end }}
