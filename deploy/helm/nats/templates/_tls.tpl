{{/* What global.nats.tls says, in JSON; `{}` without TLS. */}}
{{- define "nats.tls" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- $tls := ($global.nats | default dict).tls | default dict -}}
{{- if $tls.enabled }}{{ toJson $tls }}{{ else }}{}{{ end -}}
{{- end -}}

{{/* The names of the servers, together and each for the others, as a list in JSON. */}}
{{- define "nats.names" -}}
{{- $fullname := include "service-lib.fullname" . -}}
{{- $names := list $fullname (printf "%s.%s" $fullname .Release.Namespace) (printf "%s.%s.svc" $fullname .Release.Namespace) -}}
{{- range until 3 -}}
{{- $names = append $names (printf "%s-%d.%s-servers" $fullname . $fullname) -}}
{{- end -}}
{{- append $names "localhost" | toJson -}}
{{- end -}}
