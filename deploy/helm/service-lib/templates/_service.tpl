{{/* All objects of a service: `include "service-lib.all" (list . (dict "readiness" … "parts" … "flags" …))`. */}}
{{- define "service-lib.all" -}}
{{- $ := index . 0 -}}{{- $service := index . 1 -}}
{{ include "service-lib.account" . }}
---
{{ include "service-lib.service" . }}
---
{{- if $service.onEveryNode }}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ include "service-lib.fullname" $ }}
  namespace: {{ $.Release.Namespace }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
spec:
  selector:
    matchLabels: {{- include "service-lib.selector" $ | nindent 6 }}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 10%}
  template: {{- include "service-lib.pod" . | nindent 4 }}
{{- else }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "service-lib.fullname" $ }}
  namespace: {{ $.Release.Namespace }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
spec:
  replicas: {{ $.Values.replicas }}
  revisionHistoryLimit: 3
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels: {{- include "service-lib.selector" $ | nindent 6 }}
  template: {{- include "service-lib.pod" . | nindent 4 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "service-lib.fullname" $ }}
  namespace: {{ $.Release.Namespace }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "service-lib.selector" $ | nindent 6 }}
{{- end }}
{{- if $.Values.networkPolicy.enabled }}
---
{{ include "service-lib.networkpolicy" . }}
{{- end }}
{{- with include "service-lib.servicemonitor" $ }}
---
{{ . }}
{{- end }}
{{- end -}}

{{/* What to do next, for NOTES.txt of one service. */}}
{{- define "service-lib.notes" -}}
{{ .Chart.Name }} {{ .Chart.AppVersion }} is installed as {{ include "service-lib.fullname" . }} in {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} get pods -l app.kubernetes.io/name={{ .Chart.Name }},app.kubernetes.io/instance={{ .Release.Name }}

It is on the bus at {{ include "service-lib.nats.url" . }}
{{- with include "service-lib.nats.secret" . }}, with the user of the Secret {{ . }}{{ end }}.
{{- end -}}
