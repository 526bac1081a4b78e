{{- define "hydrallm.labels" -}}
app.kubernetes.io/part-of: hydrallm
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "hydrallm.image" -}}
{{ .root.Values.image.registry }}hydrallm/{{ .service }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- /* The configuration of all services: what the chart knows, and over it what the values say. */ -}}
{{- define "hydrallm.config" -}}
{{- $server := dict "host" "0.0.0.0" "port" 8100 "admin_key" "${ADMIN_API_KEY}" "client_keys" (list "${CLIENT_API_KEY}") "stop_pause" .Values.stopPause "drain_timeout" .Values.drainTimeout }}
{{- $config := dict "server" $server "log" (dict "format" "json") }}
{{- if eq .Values.mode "services" }}
{{- $nats := dict "url" "${NATS_URL}" "replicas" 3 "work_storage" "file" }}
{{- if .Values.secrets.natsIdentity }}
{{- $_ := set $nats "ca" "${NATS_CA}" }}
{{- $_ := set $nats "nkey_seed_file" "${NATS_NKEY_SEED}" }}
{{- end }}
{{- $_ := set $config "nats" $nats }}
{{- $_ := set $config "sessions" (dict "database" "${DATABASE_URL}") }}
{{- else if .Values.secrets.database }}
{{- $_ := set $config "sessions" (dict "database" "${DATABASE_URL}") }}
{{- end }}
{{- mergeOverwrite $config (deepCopy .Values.config) | toYaml }}
{{- end }}

{{- define "hydrallm.natsURL" -}}
{{- if .Values.nats.embedded -}}
tls://nats-0.nats-nodes:4222,tls://nats-1.nats-nodes:4222,tls://nats-2.nats-nodes:4222
{{- else -}}
{{ required "nats.url is needed when nats.embedded is false" .Values.nats.url }}
{{- end }}
{{- end }}

{{- define "hydrallm.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "hydrallm.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "hydrallm.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Probes of a server of the gateway: the port of its health checks, and the one that says whether it takes requests. */ -}}
{{- define "hydrallm.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ .health }}}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: {{ .health }}}
  periodSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: {{ .ready }}}
  periodSeconds: 3
  failureThreshold: 2
{{- end }}

{{- define "hydrallm.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  labels: {{ include "hydrallm.labels" .root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {app.kubernetes.io/name: {{ .name }}}
{{- end }}
