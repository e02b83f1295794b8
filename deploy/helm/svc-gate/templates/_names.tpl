{{- define "svc-gate.name" -}}
{{ contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "svc-gate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "svc-gate.labels" -}}
{{ include "svc-gate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "svc-gate.contracts" -}}
{{ .Values.contracts.configMap | default (printf "%s-contracts" (include "svc-gate.name" .)) }}
{{- end }}
