{{/* The metrics APIs that are served, with commas. */}}
{{- define "admission.metricsapis" -}}
{{- $served := list -}}
{{- range list "custom" "external" }}{{ if get $.Values.metricsApis . }}{{ $served = append $served . }}{{ end }}{{ end -}}
{{- $served | join "," -}}
{{- end -}}

{{/* What the API and the webhooks are called by, with commas. */}}
{{- define "admission.names" -}}
{{- $name := include "service-lib.fullname" . -}}
{{- $service := printf "%s.%s" $name .Release.Namespace -}}
{{- concat (list (printf "%s.svc" $service) $service $name) .Values.api.names | join "," -}}
{{- end -}}
