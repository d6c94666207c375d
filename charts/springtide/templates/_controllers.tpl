{{/* The controllers that run, as a JSON list: each has a file with its rules. An unknown name is an error. */}}
{{- define "springtide.controllers" -}}
{{- $known := list -}}
{{- range $path, $_ := .Files.Glob "files/roles/controllers/*.yaml" -}}
{{- $known = append $known (base $path | trimSuffix ".yaml") -}}
{{- end -}}
{{- $only := list -}}
{{- $off := list -}}
{{- range .Values.controllers -}}
{{- $name := trimPrefix "-" . -}}
{{- if not (has $name $known) -}}
{{- fail (printf "controllers: there is no controller %q, expected some of %s" $name (join ", " $known)) -}}
{{- end -}}
{{- if hasPrefix "-" . -}}{{- $off = append $off $name -}}{{- else -}}{{- $only = append $only $name -}}{{- end -}}
{{- end -}}
{{- $on := list -}}
{{- range $known -}}
{{- if and (or (empty $only) (has . $only)) (not (has . $off)) -}}{{- $on = append $on . -}}{{- end -}}
{{- end -}}
{{- if empty $on -}}
{{- fail (printf "controllers: none is left of %s" (join ", " $known)) -}}
{{- end -}}
{{- toJson $on -}}
{{- end }}

{{/* A ClusterRole, or Role, and its binding for one component: root, name, file, and whether it only reads. */}}
{{- define "springtide.roles" -}}
{{- $root := .root -}}
{{- $rules := $root.Files.Get .file | fromYaml -}}
{{- $name := printf "%s-%s" (include "springtide.fullname" $root) .name -}}
{{- $cluster := include "springtide.rules" (dict "rules" $rules.cluster "reading" .reading) | fromJsonArray -}}
{{- $namespace := include "springtide.rules" (dict "rules" $rules.namespace "reading" .reading) | fromJsonArray -}}
{{- if $cluster }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "springtide.labels" $root | nindent 4 }}
rules:
  {{- toYaml $cluster | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "springtide.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "springtide.serviceAccount" $root }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- if $namespace }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "springtide.labels" $root | nindent 4 }}
rules:
  {{- toYaml $namespace | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "springtide.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "springtide.serviceAccount" $root }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- end }}

{{/* Rules as a JSON list; for components that only read, without the verbs that write. */}}
{{- define "springtide.rules" -}}
{{- $kept := list -}}
{{- range .rules -}}
{{- $verbs := .verbs -}}
{{- if $.reading -}}
{{- $verbs = list -}}
{{- range .verbs -}}{{- if has . (list "get" "list" "watch") -}}{{- $verbs = append $verbs . -}}{{- end -}}{{- end -}}
{{- end -}}
{{- if $verbs -}}{{- $kept = append $kept (merge (dict "verbs" $verbs) (omit . "verbs")) -}}{{- end -}}
{{- end -}}
{{- toJson $kept -}}
{{- end }}
