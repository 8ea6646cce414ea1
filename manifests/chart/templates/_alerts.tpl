{{- /* The alerts. Other programs also use the metric names of controller-runtime, so the matchers are needed. */ -}}
{{- define "crownlabs.alerts" -}}
{{- $effective := include "crownlabs.effective" . | fromYaml }}
{{- $namespaces := .Release.Namespace }}
{{- if and .Values.bastion.enabled (not .Values.bastion.inDaemon) }}
{{- $namespaces = printf "%s|%s" $namespaces .Values.bastion.namespace }}
{{- end }}
{{- if .Values.podNetworks.enabled }}
{{- $namespaces = printf "%s|%s" $namespaces .Values.podNetworks.namespace }}
{{- end }}
{{- $of := default (printf "namespace=~%q,container=\"crownlabs\"" $namespaces) .Values.prometheusRule.matchers }}
alerts:
{{- $webhook := $effective.server.webhook }}
{{- $leads := and $webhook.enabled (empty $webhook.certificateDir) }}
{{- range $loop, $keys := $effective.controllers }}
{{- if and $keys.enabled (not (has $loop (list "bastion" "sshTracker" "webSsh" "examAgent" "podConfigNode" "dashboard" "login" "instanceMetrics"))) }}
{{- $leads = true }}
{{- end }}
{{- end }}
{{- /* Pods without a loop that needs a leader do not take the Lease. */}}
{{- if and $effective.leaderElection.enabled $leads }}
- alert: CrownlabsNoLeader
  expr: absent(leader_election_master_status{ {{- $of }},name={{ $effective.leaderElection.name | quote -}} } == 1)
  for: 2m
  labels: {severity: critical}
  annotations:
    summary: No replica of crownlabs leads
    description: >-
      No replica holds the Lease {{ $effective.leaderElection.name }}, or none is scraped: nothing is reconciled. Check
      the pods and their logs in {{ .Release.Namespace }}.
{{- end }}
- alert: CrownlabsStoreStale
  expr: max by (namespace, pod, kind) (store_staleness_seconds{ {{- $of -}} }) > 300
  for: 1m
  labels: {severity: warning}
  annotations:
    summary: The cached {{ "{{ $labels.kind }}" }} objects of crownlabs are stale
    description: >-
      The watch in {{ "{{ $labels.pod }}" }} has been broken for {{ "{{ $value | humanizeDuration }}" }}. Check the API
      server, the rights of the account and /readyz.
- alert: CrownlabsCrdMismatch
  expr: max by (crd) (crownlabs_crd_mismatch{ {{- $of -}} }) == 1
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: The CRD {{ "{{ $labels.crd }}" }} does not match crownlabs
    description: >-
      The API server drops fields that crownlabs writes, or stores objects in a version that its CRDs do not have. /readyz and
      the log name them; apply the CRDs of this version.
- alert: CrownlabsReconcileErrors
  expr: >-
    sum by (controller) (rate(controller_runtime_reconcile_errors_total{ {{- $of -}} }[10m]))
    / sum by (controller) (rate(controller_runtime_reconcile_total{ {{- $of -}} }[10m])) > 0.1
  for: 15m
  labels: {severity: warning}
  annotations:
    summary: Reconciles of the loop {{ "{{ $labels.controller }}" }} fail
    description: >-
      {{ "{{ $value | humanizePercentage }}" }} of the reconciles have failed for 15 minutes. The log and the events of the
      objects state the reason.
- alert: CrownlabsReconcilePanics
  expr: sum by (controller) (increase(controller_runtime_reconcile_panics_total{ {{- $of -}} }[15m])) > 0
  labels: {severity: warning}
  annotations:
    summary: The loop {{ "{{ $labels.controller }}" }} panics
    description: An object makes the loop panic, and is not reconciled. This is a defect of crownlabs; the log names the object.
- alert: CrownlabsReconcileStuck
  expr: max by (namespace, pod, controller) (workqueue_longest_running_processor_seconds{ {{- $of -}} }) > 600
  labels: {severity: warning}
  annotations:
    summary: A reconcile of the loop {{ "{{ $labels.controller }}" }} does not end
    description: It has run for {{ "{{ $value | humanizeDuration }}" }} in {{ "{{ $labels.pod }}" }}.
{{- if $effective.server.webhook.enabled }}
- alert: CrownlabsWebhookCertificateExpiring
  expr: >-
    min by (namespace, pod) (crownlabs_webhook_certificate_expiration_timestamp_seconds{ {{- $of -}} } > 0) - time()
    < 7 * 86400
  for: 10m
  labels: {severity: critical}
  annotations:
    summary: The certificate of the webhooks expires soon
    description: >-
      {{ "{{ $labels.pod }}" }} serves a certificate that expires in {{ "{{ $value | humanizeDuration }}" }}. After that, Tenants cannot
      be changed and Instances cannot be created. It should have been renewed long before: check
      {{ ternary "the log of the leader" "the program that writes the Secret of the certificate" (empty $effective.server.webhook.certificateDir) }}.
- alert: CrownlabsWebhookErrors
  expr: sum by (webhook) (rate(controller_runtime_webhook_requests_total{ {{- $of -}} ,code!="200"}[10m])) > 0
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: Admission reviews of {{ "{{ $labels.webhook }}" }} fail
    description: Some have failed for 10 minutes, so their objects cannot be stored. The log states the reason.
{{- end }}
{{- if $effective.integrations.keycloak.enabled }}
- alert: CrownlabsKeycloakDown
  expr: min by (namespace, pod) (keycloak_up{ {{- $of -}} }) == 0
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: Keycloak does not answer
    description: Accounts and roles wait until it does; everything else continues.
{{- end }}
{{- if or $effective.controllers.inactivity.enabled $effective.controllers.expiration.enabled }}
- alert: CrownlabsMailsWaiting
  expr: sum by (controller) (automation_mails_waiting{ {{- $of -}} }) > 0
  for: 1h
  labels: {severity: warning}
  annotations:
    summary: Mails of the loop {{ "{{ $labels.controller }}" }} are not accepted
    description: >-
      {{ "{{ $value }}" }} mails have waited for an hour. No Instance is stopped or deleted before its Tenant is warned. The
      conditions of the Instances contain the response of the mail server.
- alert: CrownlabsMailUndeliverable
  expr: max by (controller) (automation_mails_undeliverable{ {{- $of -}} }) > 0
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: The mail server permanently rejects mails to Tenants
    description: >-
      {{ "{{ $value }}" }} Instances of the loop {{ "{{ $labels.controller }}" }} have the condition reason MailUndeliverable:
      correct spec.email of their Tenants. {{ ternary "They are kept until then." "Their deadlines count from the mails to the managers of their courses." (eq $effective.integrations.mail.undeliverable "keep") }}
- alert: CrownlabsDeadlineMissed
  expr: max by (controller) (next_deadline_seconds{ {{- $of -}} } > 0) < time() - 3600
  for: 5m
  labels: {severity: warning}
  annotations:
    summary: The loop {{ "{{ $labels.controller }}" }} is late with a stop or deletion
    description: It was due more than an hour ago. The conditions of the Instances state the cause.
{{- end }}
{{- if $effective.controllers.imageList.enabled }}
- alert: CrownlabsImageListStale
  expr: >-
    sum by (image_list) (increase(image_list_queries_total{ {{- $of -}} ,result="failed"}[1h])) > 0
    unless sum by (image_list) (increase(image_list_queries_total{ {{- $of -}} ,result="succeeded"}[1h])) > 0
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: The ImageList {{ "{{ $labels.image_list }}" }} is stale
    description: >-
      Its registry could not be read for an hour, so the list may be outdated. The condition Stale of the ImageList
      states the reason.
{{- end }}
{{- if $effective.controllers.examAgent.enabled }}
- alert: CrownlabsExamAgentErrors
  expr: sum by (route) (rate(exam_agent_requests_total{ {{- $of -}} ,code=~"5.."}[10m])) > 0
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: The exam agent fails
    description: >-
      Requests to {{ "{{ $labels.route }}" }} have failed with a server error for 10 minutes, so exams may not start. The
      log states the reason.
{{- end }}
{{- if .Values.podNetworks.enabled }}
- alert: CrownlabsPodNetworkFailures
  expr: sum by (namespace, pod, reason) (increase(pod_network_failures_total{ {{- $of -}} }[10m])) > 0
  for: 15m
  labels: {severity: warning}
  annotations:
    summary: A node cannot create links of pods
    description: >-
      {{ "{{ $labels.pod }}" }} has failed for 15 minutes, with the reason {{ "{{ $labels.reason }}" }}. Its log and the
      condition Ready of the PodConfigs name the links and the cause.
{{- end }}
{{- if .Values.bastion.enabled }}
{{- $tracker := (include "crownlabs.bastion.effective" . | fromYaml).controllers.sshTracker }}
{{- if $tracker.enabled }}
- alert: CrownlabsSshTrackerStopped
  expr: min by (namespace, pod) (bastion_ssh_tracker_running{ {{- $of -}} }) == 0
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: The SSH tracker captures nothing
    description: >-
      SSH connections through {{ "{{ $labels.pod }}" }} are not counted, so machines that are only used over SSH look unused.
      /readyz/sshTracker says why.
- alert: CrownlabsSshTrackerDrops
  expr: sum by (namespace, pod) (increase(bastion_ssh_tracker_drops_total{ {{- $of -}} }[15m])) > 0
  labels: {severity: warning}
  annotations:
    summary: The SSH tracker loses packets
    description: "{{ "{{ $labels.pod }}" }} has lost {{ "{{ $value }}" }} packets in 15 minutes: connections may not be counted."
{{- end }}
{{- end }}
{{- end }}
