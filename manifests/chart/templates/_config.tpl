{{- /*
The files that are mounted from existing Secrets and ConfigMaps, each with the key of the configuration that names it. A
folder is mounted whole; of anything else, one key.
*/ -}}
{{- define "crownlabs.files" -}}
{{- $s := .Values.secrets -}}
{{- $files := list
  (dict "id" "keycloak" "from" $s.keycloak "at" "integrations.keycloak.clientSecretFile")
  (dict "id" "keycloak-ca" "from" $s.keycloakCa "at" "integrations.keycloak.caFile")
  (dict "id" "keycloak-events" "from" $s.keycloakEvents "at" "server.keycloakEvents.secretFile")
  (dict "id" "oauth2-proxy" "from" $s.oauth2Proxy "at" "controllers.instance.access.oauth2Proxy.clientSecretFile")
  (dict "id" "web-ssh-key" "from" $s.webSshMasterKey "at" "controllers.instance.websshMasterKeyFile")
  (dict "id" "mail-password" "from" $s.mailPassword "at" "integrations.mail.passwordFile")
  (dict "id" "mail-ca" "from" $s.mailCa "at" "integrations.mail.caFile")
  (dict "id" "mail-config" "from" $s.mailConfig "at" "integrations.mail.configDir" "folder" true)
  (dict "id" "mail-templates" "from" .Values.configMaps.mailTemplates "at" "integrations.mail.templateDir" "folder" true "configMap" true)
  (dict "id" "prometheus-token" "from" $s.prometheusToken "at" "integrations.prometheus.bearerTokenFile")
  (dict "id" "prometheus-ca" "from" $s.prometheusCa "at" "integrations.prometheus.caFile")
  (dict "id" "termination-ca" "from" $s.terminationCa "at" "controllers.termination.caFile")
  (dict "id" "exam-agent" "from" $s.examAgentCertificate "at" "controllers.examAgent.certificateDir" "folder" true)
  (dict "id" "webhook-client-ca" "from" $s.webhookClientCa "at" "server.webhook.clientCaFile")
-}}
{{- if .Values.webhook.certManager.enabled -}}
{{- $files = append $files (dict "id" "webhook" "from" (dict "name" (printf "%s-webhook-tls" (include "crownlabs.fullname" .))) "at" "server.webhook.certificateDir" "folder" true) -}}
{{- else -}}
{{- $files = append $files (dict "id" "webhook" "from" $s.webhookCertificate "at" "server.webhook.certificateDir" "folder" true) -}}
{{- end -}}
{{- range $index, $name := $s.registries -}}
{{- $files = append $files (dict "id" (printf "registry-%d" $index) "from" (dict "name" $name) "mount" (printf "registries/%s" $name) "folder" true) -}}
{{- end -}}
{{- $used := list -}}
{{- range $files -}}
{{- if .from.name -}}
{{- $folder := printf "/etc/crownlabs-files/%s" (default .id .mount) -}}
{{- $path := ternary $folder (printf "%s/%s" $folder (default "" .from.key)) (default false .folder) -}}
{{- $used = append $used (merge (dict "folderPath" $folder "path" $path) .) -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "files" $used) -}}
{{- end }}

{{- /* The values that the daemon has for keys that are not given. */ -}}
{{- define "crownlabs.defaults" -}}
{{- .Files.Get "files/defaults.yaml" -}}
{{- end }}

{{- /* The configuration file of the daemon: `config`, and what follows from the release. `config` wins. */ -}}
{{- define "crownlabs.config" -}}
{{- $defaults := include "crownlabs.defaults" . | fromYaml -}}
{{- $own := deepCopy .Values.config -}}
{{- $name := include "crownlabs.fullname" . -}}
{{- $made := dict
  "apiVersion" $defaults.apiVersion "kind" $defaults.kind
  "leaderElection" (dict "namespace" .Release.Namespace "name" (printf "%s-controller-manager" $name))
  "server" (dict "webhook" (dict "serviceName" (printf "%s-webhook" $name)))
-}}
{{- range (include "crownlabs.files" . | fromYaml).files -}}
{{- if .at -}}
{{- $value := .path -}}
{{- range reverse (splitList "." .at) -}}
{{- $value = dict . $value -}}
{{- end -}}
{{- $made = mergeOverwrite $made $value -}}
{{- end -}}
{{- end -}}
{{- if .Values.podNetworks.enabled -}}
{{- $made = mergeOverwrite $made (dict "controllers" (dict "podConfig" (dict "enabled" true))) -}}
{{- end -}}
{{- $made = mergeOverwrite $made $own -}}
{{- /* A selector replaces the default: merged, it would demand both labels. */ -}}
{{- $made = set $made "selector" (default $defaults.selector .Values.config.selector) -}}
{{- if ne $made.leaderElection.namespace .Release.Namespace -}}
{{- fail (printf "config.leaderElection.namespace: the Lease and the certificate of the webhooks are in the namespace of the release, %s: leave this key out" .Release.Namespace) -}}
{{- end -}}
{{- range $loop, $section := dict "bastion" "bastion" "sshTracker" "bastion" "webSsh" "bastion" "instanceMetrics" "instanceMetrics" "podConfigNode" "podNetworks" -}}
{{- if dig "controllers" $loop "enabled" false $own -}}
{{- fail (printf "config.controllers.%s.enabled: this loop runs in pods of its own: set %s.enabled, and this key below %s.config" $loop $section $section) -}}
{{- end -}}
{{- end -}}
{{- toYaml $made -}}
{{- end }}

{{- /* The same with the defaults of the daemon. */ -}}
{{- define "crownlabs.effective" -}}
{{- $config := include "crownlabs.config" . | fromYaml -}}
{{- $effective := mergeOverwrite (include "crownlabs.defaults" . | fromYaml) $config -}}
{{- toYaml (set $effective "selector" $config.selector) -}}
{{- end }}

{{- /* The configuration of the bastion's daemon: selector, log and web site are those of `config`. */ -}}
{{- define "crownlabs.bastion.config" -}}
{{- $main := include "crownlabs.config" . | fromYaml -}}
{{- $namespace := .Values.bastion.namespace -}}
{{- $website := (include "crownlabs.effective" . | fromYaml).controllers.instance.websiteBaseUrl -}}
{{- $controllers := dict
  "bastion" (dict "enabled" true "hostKeys" (dict "namespace" $namespace) "webSshKey" (dict "namespace" $namespace))
  "sshTracker" (dict "enabled" true)
  "webSsh" (dict "enabled" true "privateKeyFile" "/web-keys/webssh-bastion-master" "allowedOrigins" (list (printf "https://%s" $website)))
-}}
{{- $defaults := include "crownlabs.defaults" . | fromYaml -}}
{{- range $loop, $keys := $defaults.controllers -}}
{{- if not (hasKey $controllers $loop) -}}
{{- if $keys.enabled -}}
{{- $_ := set $controllers $loop (dict "enabled" false) -}}
{{- end -}}
{{- if dig "controllers" $loop "enabled" false $.Values.bastion.config -}}
{{- fail (printf "bastion.config.controllers.%s.enabled: this loop runs in the other pods: set it below config" $loop) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $made := dict "apiVersion" $main.apiVersion "kind" $main.kind "leaderElection" (dict "enabled" false) "controllers" $controllers -}}
{{- with $main.log -}}
{{- $_ := set $made "log" . -}}
{{- end -}}
{{- $made = mergeOverwrite $made (deepCopy .Values.bastion.config) -}}
{{- toYaml (set $made "selector" $main.selector) -}}
{{- end }}

{{- define "crownlabs.bastion.effective" -}}
{{- $config := include "crownlabs.bastion.config" . | fromYaml -}}
{{- toYaml (mergeOverwrite (include "crownlabs.defaults" . | fromYaml) $config) -}}
{{- end }}

{{- /* Whether Keycloak's events are received: the endpoint belongs to the tenant loop. */ -}}
{{- define "crownlabs.hasEvents" -}}
{{- $effective := include "crownlabs.effective" . | fromYaml -}}
{{- if and $effective.controllers.tenant.enabled $effective.server.keycloakEvents.listen -}}
true
{{- end -}}
{{- end }}
