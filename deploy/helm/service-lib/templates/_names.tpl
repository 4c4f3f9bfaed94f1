{{/* Names and labels. Each takes the context of the chart. */}}

{{- define "service-lib.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if eq .Release.Name .Chart.Name -}}
{{- .Chart.Name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of a cluster-wide object: two releases of one name may live in two namespaces. */}}
{{- define "service-lib.clustername" -}}
{{- printf "%s-%s" .Release.Namespace (include "service-lib.fullname" .) -}}
{{- end -}}

{{- define "service-lib.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "service-lib.labels" -}}
{{ include "service-lib.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tidegate
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "service-lib.global" -}}
{{- .Values.global | default dict | toJson -}}
{{- end -}}

{{/* The image of the chart: registry/repository:tag, or @digest. */}}
{{- define "service-lib.image" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- $registry := $global.imageRegistry | default .Values.image.registry -}}
{{- if $registry }}{{ trimSuffix "/" $registry }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- define "service-lib.pullsecrets" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- with concat ($global.imagePullSecrets | default list) (.Values.imagePullSecrets | default list) }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Where the bus is: what the chart says, else an existing one that all charts share, else the one of this release. */}}
{{- define "service-lib.nats.url" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- $nats := $global.nats | default dict -}}
{{- $external := ($nats.external | default dict).url -}}
{{- if .Values.nats.url -}}{{ .Values.nats.url }}
{{- else if $external -}}{{ $external }}
{{- else if $nats.bundled -}}nats://{{ .Release.Name }}-nats:4222
{{- else -}}{{ fail (printf "%s: nats.url is not given: where is the bus? (nats://HOST:4222)" .Chart.Name) }}
{{- end -}}
{{- end -}}

{{/* The Secret with what the service logs in with; empty for a bus that takes anybody. */}}
{{- define "service-lib.nats.secret" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- $nats := $global.nats | default dict -}}
{{- $external := $nats.external | default dict -}}
{{- if .Values.nats.credentialsSecret -}}{{ .Values.nats.credentialsSecret }}
{{- else if .Values.nats.url -}}
{{- else if $external.url -}}{{ if $external.credentialsPrefix }}{{ $external.credentialsPrefix }}{{ .Chart.Name }}{{ end }}
{{- else -}}{{ .Release.Name }}-nats-{{ .Chart.Name }}
{{- end -}}
{{- end -}}

{{/* The Secret whose `ca.crt` vouches for the bus, which is then spoken to over TLS alone; empty where that is not asked for. */}}
{{- define "service-lib.nats.authority" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- $nats := $global.nats | default dict -}}
{{- $external := $nats.external | default dict -}}
{{- if .Values.nats.authoritySecret -}}{{ .Values.nats.authoritySecret }}
{{- else if .Values.nats.url -}}
{{- else if $external.url -}}{{ $external.authoritySecret }}
{{- else if ($nats.tls | default dict).enabled -}}{{ include "service-lib.nats.certificate" . }}
{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of this release's bus. */}}
{{- define "service-lib.nats.certificate" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- ($global.nats.tls | default dict).secretName | default (printf "%s-nats-tls" .Release.Name) -}}
{{- end -}}

{{/* Whether the bus is the one of this release. */}}
{{- define "service-lib.nats.own" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- $nats := $global.nats | default dict -}}
{{- if and $nats.bundled (not .Values.nats.url) (not ($nats.external | default dict).url) }}yes{{ end -}}
{{- end -}}
