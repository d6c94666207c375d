{{/* The kinds whose CRDs are wanted, as a JSON list: those of the values, or those that the controllers act on. */}}
{{- define "springtide.wantedKinds" -}}
{{- $wanted := list -}}
{{- if .Values.crds.kinds -}}
{{- $known := list -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" -}}
{{- $known = append $known ($.Files.Get $path | fromYaml).spec.names.kind -}}
{{- end -}}
{{- range .Values.crds.kinds -}}
{{- if not (has . $known) -}}
{{- fail (printf "crds.kinds: there is no kind %q, expected some of %s" . (join ", " $known)) -}}
{{- end -}}
{{- end -}}
{{- $wanted = .Values.crds.kinds -}}
{{- else -}}
{{- $acted := .Files.Get "files/kinds.yaml" | fromYaml -}}
{{- range include "springtide.controllers" . | fromJsonArray -}}{{- $wanted = concat $wanted (get $acted .) -}}{{- end -}}
{{- end -}}
{{- toJson $wanted -}}
{{- end }}

{{/*
Whose a CRD is: `release` if this release has installed it, `other` if the cluster has it from elsewhere, else `none`.
`helm template` asks no cluster, and finds none.
*/}}
{{- define "springtide.crdOwner" -}}
{{- $present := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name -}}
{{- $annotations := dig "metadata" "annotations" dict $present -}}
{{- if not $present -}}
none
{{- else if and (eq (get $annotations "meta.helm.sh/release-name") .root.Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") .root.Release.Namespace) -}}
release
{{- else -}}
other
{{- end -}}
{{- end }}

{{/* The names of the CRDs that are wanted and that the cluster has from elsewhere, as a JSON list. */}}
{{- define "springtide.foreignCrds" -}}
{{- $wanted := include "springtide.wantedKinds" . | fromJsonArray -}}
{{- $foreign := list -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" -}}
{{- $definition := $.Files.Get $path | fromYaml -}}
{{- if and (has $definition.spec.names.kind $wanted) (eq "other" (include "springtide.crdOwner" (dict "root" $ "name" $definition.metadata.name))) -}}
{{- $foreign = append $foreign $definition.metadata.name -}}
{{- end -}}
{{- end -}}
{{- toJson $foreign -}}
{{- end }}
