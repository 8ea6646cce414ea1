{{- /* The names of the entries of files/rights.yaml that the configuration needs. */ -}}
{{- define "crownlabs.parts" -}}
{{- $effective := include "crownlabs.effective" . | fromYaml -}}
{{- $rights := .Files.Get "files/rights.yaml" | fromYaml -}}
{{- $parts := list -}}
{{- range $loop, $keys := $effective.controllers -}}
{{- if and (hasKey $rights $loop) (or $keys.enabled $.Values.rbac.everyLoop) -}}
{{- $parts = append $parts $loop -}}
{{- end -}}
{{- end -}}
{{- if $parts -}}
{{- $parts = append $parts "common" -}}
{{- end -}}
{{- if $effective.server.webhook.enabled -}}
{{- $parts = append $parts "webhook" -}}
{{- end -}}
{{- toYaml (dict "parts" $parts) -}}
{{- end }}

{{- /* One rule for each set of verbs in an API group. */ -}}
{{- define "crownlabs.rules" -}}
{{- $rights := .Files.Get "files/rights.yaml" | fromYaml -}}
{{- $verbs := dict -}}
{{- range (include "crownlabs.parts" . | fromYaml).parts -}}
{{- range $resource, $allowed := get $rights . -}}
{{- $known := default (dict) (get $verbs $resource) -}}
{{- range splitList " " $allowed -}}
{{- $_ := set $known . true -}}
{{- end -}}
{{- $_ := set $verbs $resource $known -}}
{{- end -}}
{{- end -}}
{{- /* The policies of routes, whose kind is in the configuration. */ -}}
{{- $gateways := (include "crownlabs.effective" . | fromYaml).controllers.instance.gatewayApi -}}
{{- $resource := dig "policy" "resource" "" $gateways -}}
{{- if and $resource $gateways.enabled (has "instance" (include "crownlabs.parts" . | fromYaml).parts) -}}
{{- $group := first (splitList "/" (dig "policy" "template" "apiVersion" "" $gateways)) -}}
{{- $_ := set $verbs (printf "%s/%s" $group $resource) (dict "get" true "list" true "watch" true "create" true "patch" true "delete" true) -}}
{{- end -}}
{{- $rules := dict -}}
{{- range $resource := keys $verbs | sortAlpha -}}
{{- $known := get $verbs $resource -}}
{{- $allowed := list -}}
{{- range list "get" "list" "watch" "create" "update" "patch" "delete" -}}
{{- if hasKey $known . -}}
{{- $allowed = append $allowed . -}}
{{- end -}}
{{- end -}}
{{- $group := first (splitList "/" $resource) -}}
{{- $name := trimPrefix (printf "%s/" $group) $resource -}}
{{- $key := printf "%s/%s" $group (join " " $allowed) -}}
{{- $_ := set $rules $key (append (default (list) (get $rules $key)) $name) -}}
{{- end -}}
{{- range $key := keys $rules | sortAlpha }}
- apiGroups: [{{ first (splitList "/" $key) | quote }}]
  resources: [{{ join ", " (get $rules $key) }}]
  verbs: [{{ last (splitList "/" $key) | replace " " ", " }}]
{{- end }}
{{- end }}

{{- /* The ClusterRoles that the loops bind to users. */ -}}
{{- define "crownlabs.bound" -}}
{{- $effective := include "crownlabs.effective" . | fromYaml -}}
{{- $parts := (include "crownlabs.parts" . | fromYaml).parts -}}
{{- $roles := list -}}
{{- if has "workspace" $parts -}}
{{- $roles = concat $roles (list "crownlabs-manage-instances" "crownlabs-manage-tenants" "crownlabs-view-templates" "crownlabs-manage-templates" "crownlabs-manage-sharedvolumes") -}}
{{- end -}}
{{- if has "tenant" $parts -}}
{{- $roles = concat $roles (list $effective.controllers.tenant.instancesClusterRole "crownlabs-manage-templates" $effective.controllers.tenant.sandboxClusterRole) -}}
{{- end -}}
{{- toYaml (dict "roles" ($roles | uniq | sortAlpha)) -}}
{{- end }}
