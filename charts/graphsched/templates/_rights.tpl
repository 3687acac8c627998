{{/* A setting (a dict of `config` and `setting`, a path with dots) as `{"value": …}`, since JSON is all that can be passed on. */}}
{{- define "graphsched.setting" -}}
{{- $value := .config -}}
{{- range splitList "." .setting -}}
{{- $value = index $value . -}}
{{- end -}}
{{- dict "value" $value | toJson -}}
{{- end -}}

{{/* The rules of one scope (a dict of `root` and `scope`) that the configuration in effect needs. */}}
{{- define "graphsched.rules" -}}
{{- $config := include "graphsched.config" .root | fromYaml -}}
{{- range .root.Files.Get "rights.yaml" | fromYamlArray }}
{{- $needed := eq .scope $.scope }}
{{- range $setting, $values := .if }}
{{- $value := (include "graphsched.setting" (dict "config" $config "setting" $setting) | fromJson).value }}
{{- $needed = and $needed (has $value $values) }}
{{- end }}
{{- if $needed }}
- {{ pick . "apiGroups" "resources" "verbs" | toYaml | nindent 2 | trim }}
  {{- with .name }}
  resourceNames: [{{ (include "graphsched.setting" (dict "config" $config "setting" .) | fromJson).value | quote }}]
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}
