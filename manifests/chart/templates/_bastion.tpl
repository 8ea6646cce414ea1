{{- /* The contents of a pod with the loops of the bastion and the SSH server: a bastion's own pod, or a pod of the daemon. */ -}}

{{- define "crownlabs.bastion.webKey" -}}
{{- (include "crownlabs.bastion.effective" . | fromYaml).controllers.bastion.webSshKey.secretName -}}
{{- end }}

{{- /* Whether packets are captured. The daemon is then root with one capability. */ -}}
{{- define "crownlabs.bastion.captures" -}}
{{- if (include "crownlabs.bastion.effective" . | fromYaml).controllers.sshTracker.enabled -}}
true
{{- end -}}
{{- end }}

{{- /* The mounts of the daemon's container, which is the only one with the token of the account. */ -}}
{{- define "crownlabs.bastion.mounts" -}}
- {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
- {name: auth-keys, mountPath: /auth-keys}
- {name: host-keys, mountPath: /host-keys}
{{- if include "crownlabs.bastion.webKey" . }}
- {name: web-keys, mountPath: /web-keys, readOnly: true}
{{- end }}
{{- end }}

{{- define "crownlabs.bastion.sshd" -}}
- name: sshd
  image: {{ include "crownlabs.image" (dict "image" .Values.bastion.sshd.image "root" .) }}
  {{- with .Values.bastion.sshd.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  ports:
  - {name: ssh, containerPort: 2222}
  startupProbe:
    tcpSocket: {port: ssh}
    periodSeconds: 2
    failureThreshold: 60
  readinessProbe:
    tcpSocket: {port: ssh}
    periodSeconds: 30
  resources:
    {{- toYaml .Values.bastion.sshd.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    capabilities: {drop: [ALL]}
  volumeMounts:
  - {name: auth-keys, mountPath: /auth-keys, readOnly: true}
  - {name: host-keys, mountPath: /host-keys, readOnly: true}
{{- end }}

{{- define "crownlabs.bastion.volumes" -}}
- name: token
  projected:
    sources:
    - serviceAccountToken: {path: token, expirationSeconds: 3607}
    - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
    - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
# In memory, so that private keys are not written to the disk of the node.
- name: auth-keys
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
- name: host-keys
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- with include "crownlabs.bastion.webKey" . }}
# Created by the daemon at its first start, so it may not exist before the pod.
- name: web-keys
  secret: {secretName: {{ . }}, optional: true, defaultMode: {{ ternary "0400" "0440" (eq (include "crownlabs.bastion.captures" $) "true") }}}
{{- end }}
{{- end }}
