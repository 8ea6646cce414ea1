{{- /*
The files that are mounted from existing Secrets and ConfigMaps, each with its configuration key. A folder is mounted as a
whole, and everything else as a single key.
*/ -}}
{{- define "crownlabs.files" -}}
{{- $s := .Values.secrets -}}
{{- $files := list
  (dict "id" "keycloak" "from" $s.keycloak "at" "integrations.keycloak.clientSecretFile")
  (dict "id" "keycloak-password" "from" $s.keycloakPassword "at" "integrations.keycloak.passwordFile")
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

{{- /* The defaults of the daemon for missing keys. */ -}}
{{- define "crownlabs.defaults" -}}
{{- .Files.Get "files/defaults.yaml" -}}
{{- end }}

{{- /*
The keys of a configuration that some entries of files/keys.yaml read: root, config, of (the names of the entries). All other keys
are left out.
*/ -}}
{{- define "crownlabs.read" -}}
{{- $lists := .root.Files.Get "files/keys.yaml" | fromYaml -}}
{{- $read := dict -}}
{{- range $name := .of -}}
{{- range $key := get $lists $name -}}
{{- $parts := splitList "." $key -}}
{{- $found := dict "value" $.config -}}
{{- range $part := $parts -}}
{{- $section := get $found "value" -}}
{{- $found = dict -}}
{{- if kindIs "map" $section -}}
{{- if hasKey $section $part -}}
{{- $found = dict "value" (get $section $part) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if hasKey $found "value" -}}
{{- $value := $found.value -}}
{{- range $part := reverse $parts -}}
{{- $value = dict $part $value -}}
{{- end -}}
{{- $read = mergeOverwrite $read (deepCopy $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $read -}}
{{- end }}

{{- /* The sections of the values that enable loops in separate pods, by loop. */ -}}
{{- define "crownlabs.separate" -}}
{{- toYaml (dict "bastion" "bastion" "sshTracker" "bastion" "webSsh" "bastion" "dashboard" "dashboard" "login" "login" "instanceMetrics" "instanceMetrics" "podConfigNode" "podNetworks") -}}
{{- end }}

{{- /* The configuration file of the daemon: the keys that its loops and the webhooks read. */ -}}
{{- define "crownlabs.config" -}}
{{- $separate := include "crownlabs.separate" . | fromYaml -}}
{{- if include "crownlabs.bastion.inDaemon" . -}}
{{- $separate = omit $separate "bastion" "sshTracker" "webSsh" -}}
{{- end -}}
{{- $of := list -}}
{{- range $name := keys (.Files.Get "files/keys.yaml" | fromYaml) | sortAlpha -}}
{{- if not (hasKey $separate $name) -}}
{{- $of = append $of $name -}}
{{- end -}}
{{- end -}}
{{- include "crownlabs.read" (dict "root" . "config" (include "crownlabs.whole" . | fromYaml) "of" $of) -}}
{{- end }}

{{- /* The configuration of the whole release: `config`, and defaults from the release. `config` takes precedence. */ -}}
{{- define "crownlabs.whole" -}}
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
{{- $given := $own -}}
{{- range splitList "." .at -}}
{{- $given = ternary (get (default dict $given) .) "" (kindIs "map" $given) -}}
{{- end -}}
{{- if and $given (ne $given .path) -}}
{{- fail (printf "config.%s: it is %s, and what `secrets`, `configMaps` or `webhook.certManager` name is mounted at %s: leave this key out, or that" .at $given .path) -}}
{{- end -}}
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
{{- $made = mergeOverwrite $made (dict "controllers" (dict "snapshot" (dict "containerExportImg" (include "crownlabs.image" (dict "image" .Values.imgExporter.image "root" .))))) -}}
{{- $made = mergeOverwrite $made (dict "controllers" (dict "submission" (dict "uploaderImage" (include "crownlabs.image" (dict "image" .Values.uploader.image "root" .))))) -}}
{{- if include "crownlabs.bastion.inDaemon" . -}}
{{- $loops := mergeOverwrite (include "crownlabs.bastion.loops" . | fromYaml) (deepCopy (default dict .Values.bastion.config.controllers)) -}}
{{- if not .Values.secrets.webSshMasterKey.name -}}
{{- $_ := set $loops "instance" (dict "websshMasterKeyFile" "/web-keys/webssh-bastion-master.pub") -}}
{{- end -}}
{{- $made = mergeOverwrite $made (dict "controllers" $loops) -}}
{{- end -}}
{{- with include "crownlabs.access" . | fromYaml -}}
{{- $made = mergeOverwrite $made (dict "controllers" (dict "instance" (dict "access" .))) -}}
{{- end -}}
{{- /* Mails link to the dashboard. */ -}}
{{- if and .Values.dashboard.enabled .Values.dashboard.host -}}
{{- $made = mergeOverwrite $made (dict "controllers" (dict "dashboard" (dict "publicUrl" (printf "https://%s" .Values.dashboard.host)))) -}}
{{- end -}}
{{- if dig "integrations" "prometheus" "url" "" $own -}}
{{- $made = mergeOverwrite $made (dict "integrations" (dict "prometheus" (dict "queries" (include "crownlabs.queries" . | fromYaml)))) -}}
{{- end -}}
{{- $made = mergeOverwrite $made $own -}}
{{- /* A selector replaces the default, because a merged one would require both labels. */ -}}
{{- $made = set $made "selector" (default $defaults.selector .Values.config.selector) -}}
{{- if ne $made.leaderElection.namespace .Release.Namespace -}}
{{- fail (printf "config.leaderElection.namespace: the Lease and the certificate of the webhooks are in the namespace of the release, %s: leave this key out" .Release.Namespace) -}}
{{- end -}}
{{- range $loop, $section := include "crownlabs.separate" . | fromYaml -}}
{{- if dig "controllers" $loop "enabled" false $own -}}
{{- $switch := ternary "controllers.instance.access.mode: daemon below config" (printf "%s.enabled" $section) (eq $section "login") -}}
{{- fail (printf "config.controllers.%s.enabled: this loop runs in pods of its own: set %s, and this key below %s.config" $loop $switch $section) -}}
{{- end -}}
{{- end -}}
{{- toYaml $made -}}
{{- end }}

{{- /*
The login of machines with host names of their own. The daemon's login begins at the dashboard, so it is the default only with the
dashboard. Its Service is in templates/login.yaml. NGINX resolves its name without search domains, so the name is complete.
*/ -}}
{{- define "crownlabs.access" -}}
{{- $access := dict -}}
{{- if and .Values.dashboard.enabled (eq (dig "controllers" "instance" "urls" "path" .Values.config) "host") -}}
{{- $login := dict
  "authUrl" (printf "http://%s-login.%s.svc.cluster.local/auth" (include "crownlabs.fullname" .) .Release.Namespace)
  "signInUrl" (printf "https://%s/login/machine" .Values.dashboard.host)
-}}
{{- /* The machines of the exam agent belong to its Tenant, so their students could not log in. They have a token instead. */ -}}
{{- $exams := ternary "none" "daemon" (dig "controllers" "examAgent" "enabled" false .Values.config) -}}
{{- $access = dict "mode" "daemon" "exams" $exams "daemon" $login -}}
{{- end -}}
{{- toYaml $access -}}
{{- end }}

{{- /* The same with the defaults of the daemon. */ -}}
{{- define "crownlabs.effective" -}}
{{- $config := include "crownlabs.whole" . | fromYaml -}}
{{- $effective := mergeOverwrite (include "crownlabs.defaults" . | fromYaml) $config -}}
{{- toYaml (set $effective "selector" $config.selector) -}}
{{- end }}

{{- /*
The sources of SSH use: the metrics of this release's bastion, or nothing without a bastion. If `config` has a query for a source,
the query is kept, because it belongs to another bastion.
*/ -}}
{{- define "crownlabs.queries" -}}
{{- $given := dig "integrations" "prometheus" "queries" dict .Values.config -}}
{{- $queries := dict -}}
{{- range $loop, $source := dict "sshTracker" (list "bastionSsh" "sum(bastion_ssh_tracker_running)") "webSsh" (list "webSsh" "count(bastion_web_ssh_sessions)") -}}
{{- $available := printf "%sAvailable" (first $source) -}}
{{- $data := printf "%sData" (first $source) -}}
{{- if not (or (hasKey $given $available) (hasKey $given $data)) -}}
{{- if and $.Values.bastion.enabled (dig "controllers" $loop "enabled" true $.Values.bastion.config) -}}
{{- $_ := set $queries $available (last $source) -}}
{{- else -}}
{{- $_ := set $queries $data "" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $queries -}}
{{- end }}

{{- /* The loops of the bastion, with their keys from the values. */ -}}
{{- define "crownlabs.bastion.loops" -}}
{{- $namespace := include "crownlabs.bastion.namespace" . -}}
{{- $loops := dict
  "bastion" (dict "enabled" true "hostKeys" (dict "namespace" $namespace) "webSshKey" (dict "namespace" $namespace))
  "sshTracker" (dict "enabled" true)
  "webSsh" (dict "enabled" true "privateKeyFile" "/web-keys/webssh-bastion-master")
-}}
{{- if .Values.bastion.inDaemon -}}
{{- $other := concat (keys (omit .Values.bastion.config "controllers")) (keys (omit (default dict .Values.bastion.config.controllers) "bastion" "sshTracker" "webSsh")) -}}
{{- with $other -}}
{{- fail (printf "bastion.config: with bastion.inDaemon, it has controllers.bastion, .sshTracker and .webSsh alone: set %s below config" (join ", " .)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $loops -}}
{{- end }}

{{- /*
The configuration of pods with separate loops: root, part (their section of the values, such as `bastion`), loops (the loops in these
pods, with the keys that follow from the values). All other keys that these loops read come from `config`; the section takes
precedence. These pods have no election and no other loop.
*/ -}}
{{- define "crownlabs.part.config" -}}
{{- $whole := include "crownlabs.whole" .root | fromYaml -}}
{{- $given := (get .root.Values .part).config -}}
{{- $controllers := dict -}}
{{- range $loop, $keys := (include "crownlabs.defaults" .root | fromYaml).controllers -}}
{{- if not (hasKey $.loops $loop) -}}
{{- if $keys.enabled -}}
{{- $_ := set $controllers $loop (dict "enabled" false) -}}
{{- end -}}
{{- if dig "controllers" $loop "enabled" false $given -}}
{{- fail (printf "%s.config.controllers.%s.enabled: this loop runs in the other pods: set it below config" $.part $loop) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $of := append (keys .loops | sortAlpha) "common" -}}
{{- $made := include "crownlabs.read" (dict "root" .root "config" $whole "of" $of) | fromYaml -}}
{{- $controllers = mergeOverwrite $controllers (deepCopy .loops) -}}
{{- $made = mergeOverwrite $made (dict "leaderElection" (dict "enabled" false) "controllers" $controllers) -}}
{{- $own := include "crownlabs.read" (dict "root" .root "config" $given "of" (append $of "process")) | fromYaml -}}
{{- $made = mergeOverwrite $made $own -}}
{{- if $made.leaderElection.enabled -}}
{{- fail (printf "%s.config.leaderElection.enabled: these pods never lead: leave this key out" .part) -}}
{{- end -}}
{{- toYaml (set $made "selector" $whole.selector) -}}
{{- end }}

{{- /* The same with the defaults of the daemon. */ -}}
{{- define "crownlabs.part.effective" -}}
{{- $config := include "crownlabs.part.config" . | fromYaml -}}
{{- toYaml (set (mergeOverwrite (include "crownlabs.defaults" .root | fromYaml) $config) "selector" $config.selector) -}}
{{- end }}

{{- define "crownlabs.bastion.config" -}}
{{- include "crownlabs.part.config" (dict "root" . "part" "bastion" "loops" (include "crownlabs.bastion.loops" . | fromYaml)) -}}
{{- end }}

{{- define "crownlabs.bastion.effective" -}}
{{- if .Values.bastion.inDaemon -}}
{{ include "crownlabs.effective" . }}
{{- else -}}
{{- include "crownlabs.part.effective" (dict "root" . "part" "bastion" "loops" (include "crownlabs.bastion.loops" . | fromYaml)) -}}
{{- end -}}
{{- end }}

{{- /* Whether Keycloak's events are received: the endpoint belongs to the tenant loop, which ignores them without Keycloak. */ -}}
{{- define "crownlabs.hasEvents" -}}
{{- $effective := include "crownlabs.effective" . | fromYaml -}}
{{- if and $effective.integrations.keycloak.enabled $effective.controllers.tenant.enabled $effective.server.keycloakEvents.listen -}}
true
{{- end -}}
{{- end }}
