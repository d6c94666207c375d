{{/* The names and labels of all objects of a release. */}}
{{- define "springtide.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "springtide.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "springtide.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{- define "springtide.selector" -}}
app.kubernetes.io/name: {{ include "springtide.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "springtide.labels" -}}
{{ include "springtide.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "springtide.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "springtide.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "springtide.webhookService" -}}
{{ include "springtide.fullname" . }}-webhooks
{{- end }}

{{/* The same for every release: a cluster has one provider, and its role names the Endpoints of this Service. */}}
{{- define "springtide.externalMetricsService" -}}
springtide-external-metrics
{{- end }}

{{- define "springtide.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}
