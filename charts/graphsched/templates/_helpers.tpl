{{/* The name of all objects: the release's, with the chart's unless it holds it already. */}}
{{- define "graphsched.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods; it never changes within a release. */}}
{{- define "graphsched.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "graphsched.labels" -}}
{{ include "graphsched.selectorLabels" . }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "graphsched.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "graphsched.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "graphsched.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The configuration file: what the chart sets, under what the user sets. */}}
{{- define "graphsched.config" -}}
{{- $tls := dict "selfSigned" (not (dig "http" "tls" "certFile" "" .Values.config)) -}}
{{- $http := dict "host" "0.0.0.0" "port" .Values.http.port "auth" "delegated" "tls" $tls -}}
{{- $lease := dict "enabled" .Values.leaderElection.enabled "namespace" .Release.Namespace "leaseName" (include "graphsched.fullname" .) -}}
{{- $base := dict "schedulerName" .Values.schedulerName "mode" .Values.mode "topology" .Values.topology "leaderElection" $lease "http" $http -}}
{{- $_ := set $base "policies" (dict "enabled" "auto") -}}
{{- mergeOverwrite $base (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* Where it listens in effect: probes, Service and notes go by it. */}}
{{- define "graphsched.port" -}}
{{- $port := (include "graphsched.config" . | fromYaml).http.port -}}
{{- if not $port -}}
{{- fail "config.http.port: a port that is not known beforehand can not be probed: set http.port" -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{/* Refuses arguments that would win over what is rendered for the values. */}}
{{- define "graphsched.extraArgs" -}}
{{- range .Values.extraArgs -}}
{{- if regexMatch "^--(config|mode|host|port|scheduler-name|(no-)?leader-elect)(=|$)" . -}}
{{- fail (printf "extraArgs: %s would win over what rights, probes and replicas are rendered for: set the value instead" .) -}}
{{- end -}}
{{- end -}}
{{- toYaml .Values.extraArgs -}}
{{- end -}}

{{/* More volumes; each name once, and not those of the chart's own. */}}
{{- define "graphsched.extraVolumes" -}}
{{- $taken := list "config" "tmp" -}}
{{- range .Values.extraVolumes -}}
{{- if has .name $taken -}}
{{- fail (printf "extraVolumes: there is a volume %s already: give it another name" .name) -}}
{{- end -}}
{{- $taken = append $taken .name -}}
{{- end -}}
{{- with .Values.extraVolumes }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
Where more volumes are mounted. Below the chart's own places nothing can be made (the configuration is read-only) or the
program's own files would be hidden; above them it would hide the system's.
*/}}
{{- define "graphsched.extraVolumeMounts" -}}
{{- $named := list -}}
{{- range .Values.extraVolumes -}}{{- $named = append $named .name -}}{{- end -}}
{{- $taken := list "/etc/graphsched" "/tmp" -}}
{{- range .Values.extraVolumeMounts -}}
{{- if not (has .name $named) -}}
{{- fail (printf "extraVolumeMounts: no volume %s for %s: name one of extraVolumes" .name .mountPath) -}}
{{- end -}}
{{- $below := printf "%s/" (clean .mountPath | trimSuffix "/") -}}
{{- range $taken -}}
{{- $other := printf "%s/" . -}}
{{- if or (hasPrefix $other $below) (hasPrefix $below $other) -}}
{{- fail (printf "extraVolumeMounts: %s collides with what is mounted at %s: choose a place beside it" $below .) -}}
{{- end -}}
{{- end -}}
{{- $taken = append $taken (trimSuffix "/" $below) -}}
{{- end -}}
{{- with .Values.extraVolumeMounts }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- define "graphsched.priorityClassName" -}}
{{- if .Values.priorityClass.create -}}
{{- include "graphsched.fullname" . -}}
{{- else -}}
{{- .Values.priorityClassName -}}
{{- end -}}
{{- end -}}

{{/* What the user says, or replicas on different nodes: a wish, so that one node is enough. */}}
{{- define "graphsched.affinity" -}}
{{- if .Values.affinity -}}
{{- toYaml .Values.affinity -}}
{{- else -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "graphsched.selectorLabels" . | nindent 12 }}
{{- end -}}
{{- end -}}

{{/* What the user says, or replicas in different zones, those of one revision among themselves. */}}
{{- define "graphsched.spread" -}}
{{- if .Values.topologySpreadConstraints -}}
{{- toYaml .Values.topologySpreadConstraints -}}
{{- else -}}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "graphsched.selectorLabels" . | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end -}}
{{- end -}}
