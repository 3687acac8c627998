{{/* The rules of one scope (a dict of `root` and `scope`) that the configuration in effect needs. */}}
{{- define "graphsched.rules" -}}
{{- $config := include "graphsched.config" .root | fromYaml -}}
{{- range .root.Files.Get "rights.yaml" | fromYamlArray }}
{{- $needed := true }}
{{- with .if }}
{{- $value := $config }}
{{- range splitList "." .setting }}
{{- $value = index $value . }}
{{- end }}
{{- $needed = has $value .is }}
{{- end }}
{{- if and $needed (eq .scope $.scope) }}
- {{ pick . "apiGroups" "resources" "verbs" | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end -}}
