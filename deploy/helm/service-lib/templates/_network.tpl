{{/* Who is reached by whom. The node's probes are let through by every implementation of network policies. */}}
{{- define "service-lib.networkpolicy" -}}
{{- $ := index . 0 -}}{{- $service := index . 1 -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "service-lib.fullname" $ }}
  namespace: {{ $.Release.Namespace }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "service-lib.selector" $ | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- if $.Values.metrics.enabled }}
    - ports: [{port: metrics, protocol: TCP}]
      {{- with $.Values.networkPolicy.metricsFrom }}
      from: {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- range $port := $service.open }}
    - ports: [{port: {{ $port }}, protocol: TCP}]
    {{- end }}
    {{- if not (or $.Values.metrics.enabled $service.open) }} []{{ end }}
  egress:
    # The cluster's DNS.
    - ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
    # The bus.
    {{- if include "service-lib.nats.own" $ }}
    - ports: [{port: 4222, protocol: TCP}]
      to:
        - podSelector:
            matchLabels:
              app.kubernetes.io/name: nats
              app.kubernetes.io/instance: {{ $.Release.Name }}
    {{- else }}
    {{- $ports := list }}
    {{- range splitList "," (include "service-lib.nats.url" $) }}
    {{- $ports = append $ports (regexFind ":[0-9]+$" . | trimPrefix ":" | default "4222") }}
    {{- end }}
    - ports: {{ range uniq $ports }}
        - {port: {{ . }}, protocol: TCP}{{ end }}
    {{- end }}
    {{- if $service.parts }}
    # The API server: policies see its own address and port, not its Service's.
    - ports: {{ range $.Values.networkPolicy.apiServerPorts }}
        - {port: {{ . }}, protocol: TCP}{{ end }}
    {{- end }}
    {{- if $service.anywhere }}
    # Sources of samples: wherever they are.
    - {}
    {{- end }}
    {{- with $.Values.networkPolicy.extraEgress }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end -}}

{{- define "service-lib.service" -}}
{{- $ := index . 0 -}}{{- $service := index . 1 -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "service-lib.fullname" $ }}
  namespace: {{ $.Release.Namespace }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
spec:
  selector: {{- include "service-lib.selector" $ | nindent 4 }}
  {{- if not $service.open }}
  clusterIP: None
  {{- end }}
  ports:
    {{- if not $service.servicePorts }}
    - {name: health, port: 7470, targetPort: health}
    {{- end }}
    {{- if $.Values.metrics.enabled }}
    - {name: metrics, port: 9464, targetPort: metrics}
    {{- end }}
    {{- range $name, $port := $service.servicePorts }}
    - {name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }}}
    {{- end }}
{{- end -}}

{{- define "service-lib.servicemonitor" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- $monitor := mergeOverwrite (deepCopy ($global.serviceMonitor | default dict)) (.Values.metrics.serviceMonitor | default dict) -}}
{{- $known := .Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor" -}}
{{- if and .Values.metrics.enabled $monitor.enabled $known -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "service-lib.fullname" . }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "service-lib.labels" . | nindent 4 }}
    {{- with $monitor.labels }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  selector:
    matchLabels: {{- include "service-lib.selector" . | nindent 6 }}
  endpoints:
    - port: metrics
      interval: {{ $monitor.interval | default "15s" }}
{{- end -}}
{{- end -}}
