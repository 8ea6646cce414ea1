{{- /*
Completes the values, at the beginning of each file. After `helm upgrade --reuse-values`, they are those of an older chart,
and `--set SECTION=null` removes a section. A missing key has the default of values.yaml. Mappings whose keys are not fixed,
such as resources, are taken as they are.
*/ -}}
{{- define "crownlabs.complete" -}}
{{- include "crownlabs.completed" (list .Values (.Files.Get "files/values.yaml" | fromYaml)) -}}
{{- end }}

{{- /* values, defaults */ -}}
{{- define "crownlabs.completed" -}}
{{- $values := first . -}}
{{- range $key, $default := last . -}}
{{- if or (not (hasKey $values $key)) (kindIs "invalid" (get $values $key)) -}}
{{- $_ := set $values $key $default -}}
{{- else if and (kindIs "map" $default) (not (has $key (list "config" "resources" "podSecurityContext" "securityContext" "labels" "annotations"))) -}}
{{- include "crownlabs.completed" (list (get $values $key) $default) -}}
{{- end -}}
{{- end -}}
{{- end }}
