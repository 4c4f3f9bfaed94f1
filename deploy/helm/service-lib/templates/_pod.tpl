{{/* The pod of a service. `$service`: module, parts, readiness, flags, and for special ones ports, volumes, mounts, env. */}}
{{- define "service-lib.pod" -}}
{{- $ := index . 0 -}}{{- $service := index . 1 -}}
{{- $secret := include "service-lib.nats.secret" $ -}}
{{- $authority := include "service-lib.nats.authority" $ -}}
metadata:
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
    {{- with $.Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with $.Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "service-lib.fullname" $ }}
  automountServiceAccountToken: {{ not (empty $service.parts) }}
  # Variables about other Services would look like settings (TIDEGATE_…), and unknown settings are errors.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $.Values.terminationGracePeriodSeconds }}
  {{- include "service-lib.pullsecrets" $ | nindent 2 }}
  {{- if $service.podSecurity }}
  securityContext: {{- toYaml $service.podSecurity | nindent 4 }}
  {{- else }}
  securityContext: {{- include "service-lib.podsecurity" $ | nindent 4 }}
  {{- end }}
  {{- with $.Values.schedulerName }}
  schedulerName: {{ . }}
  {{- end }}
  {{- with $.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $.Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if not $service.onEveryNode }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "service-lib.selector" $ | nindent 10 }}
  {{- end }}
  containers:
    - name: {{ $.Chart.Name }}
      image: {{ include "service-lib.image" $ }}
      imagePullPolicy: {{ $.Values.image.pullPolicy }}
      {{- if $service.containerSecurity }}
      securityContext: {{- toYaml $service.containerSecurity | nindent 8 }}
      {{- else }}
      securityContext: {{- include "service-lib.containersecurity" $ | nindent 8 }}
      {{- end }}
      args:
        - --nats-url={{ include "service-lib.nats.url" $ }}
        {{- if $secret }}
        - --nats-credentials=/etc/tidegate/bus
        {{- end }}
        {{- if $authority }}
        - --nats-authority=/etc/tidegate/authority/ca.crt
        {{- end }}
        - --nats-replicas={{ include "service-lib.nats.replicas" $ }}
        - --listen-host={{ $.Values.listenHost }}
        - --health-port=7470
        - --metrics-port={{ $.Values.metrics.enabled | ternary 9464 0 }}
        - --data-dir=/var/lib/tidegate
        - --holder=$(POD_NAME)
        - --log-level={{ $.Values.logLevel }}
        {{- range $name, $value := $service.flags }}
        - {{ printf "--%s=%v" $name $value | quote }}
        {{- end }}
        {{- range $name, $value := $.Values.settings }}
        - {{ printf "--%s=%s" (kebabcase $name) (include "service-lib.setting" $value) | quote }}
        {{- end }}
      env:
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- range $name, $path := $service.fields }}
        - name: {{ $name }}
          valueFrom:
            fieldRef:
              fieldPath: {{ $path }}
        {{- end }}
        # Compiled kernels are kept where the root is read-only.
        - name: NUMBA_CACHE_DIR
          value: /tmp/numba
      ports:
        - name: health
          containerPort: 7470
        {{- if $.Values.metrics.enabled }}
        - name: metrics
          containerPort: 9464
        {{- end }}
        {{- range $name, $port := $service.ports }}
        - name: {{ $name }}
          containerPort: {{ $port }}
        {{- end }}
      startupProbe:
        grpc: {port: 7470, service: live}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        grpc: {port: 7470, service: live}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        grpc: {port: 7470{{ with $service.readiness }}, service: {{ . }}{{ end }}}
        periodSeconds: 5
        timeoutSeconds: 3
      resources: {{- toYaml $.Values.resources | nindent 8 }}
      volumeMounts:
        {{- if $secret }}
        - name: bus
          mountPath: /etc/tidegate/bus
          readOnly: true
        {{- end }}
        {{- if $authority }}
        - name: authority
          mountPath: /etc/tidegate/authority
          readOnly: true
        {{- end }}
        - name: data
          mountPath: /var/lib/tidegate
        - name: tmp
          mountPath: /tmp
        {{- with $service.mounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    {{- if $secret }}
    - name: bus
      secret:
        secretName: {{ $secret }}
        defaultMode: 0440
    {{- end }}
    {{- if $authority }}
    - name: authority
      secret:
        secretName: {{ $authority }}
        defaultMode: 0440
        items: [{key: ca.crt, path: ca.crt}]
    {{- end }}
    {{- if not (hasKey ($service.replaced | default dict) "data") }}
    - name: data
      emptyDir: {}
    {{- end }}
    - name: tmp
      emptyDir: {}
    {{- with $service.volumes }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end -}}

{{/* On how many servers of the bus each stream is kept. */}}
{{- define "service-lib.nats.replicas" -}}
{{- $global := include "service-lib.global" . | fromJson -}}
{{- .Values.nats.streamReplicas | default ($global.nats | default dict).streamReplicas | default 1 -}}
{{- end -}}

{{/* A setting as a flag's value: JSON where it has parts; whole numbers as such, whatever YAML made of them. */}}
{{- define "service-lib.setting" -}}
{{- if kindIs "map" . -}}{{ toRawJson . }}
{{- else if kindIs "float64" . -}}{{ int64 . }}
{{- else -}}{{ . }}
{{- end -}}
{{- end -}}
