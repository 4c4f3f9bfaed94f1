{{/* What Kubernetes calls the restricted profile. */}}

{{- define "service-lib.podsecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "service-lib.containersecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The account, and its rights where it has some: files/rules.yaml of the chart, by the parts that `parts` names. */}}
{{- define "service-lib.account" -}}
{{- $ := index . 0 -}}{{- $service := index . 1 -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "service-lib.fullname" $ }}
  namespace: {{ $.Release.Namespace }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
  {{- with $.Values.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- $written := $.Files.Get "files/rules.yaml" | fromYaml -}}
{{- $wide := list -}}{{- $own := list -}}
{{- range $part := $service.parts | default list -}}
{{- $rules := get $written $part | default dict -}}
{{- $wide = concat $wide ($rules.cluster | default list) -}}
{{- $own = concat $own ($rules.namespace | default list) -}}
{{- end }}
{{- if $wide }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "service-lib.clustername" $ }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
rules: {{- toYaml $wide | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "service-lib.clustername" $ }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "service-lib.clustername" $ }}
subjects:
  - kind: ServiceAccount
    name: {{ include "service-lib.fullname" $ }}
    namespace: {{ $.Release.Namespace }}
{{- end }}
{{- if $own }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "service-lib.fullname" $ }}
  namespace: {{ $.Release.Namespace }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
rules: {{- toYaml $own | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "service-lib.fullname" $ }}
  namespace: {{ $.Release.Namespace }}
  labels: {{- include "service-lib.labels" $ | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "service-lib.fullname" $ }}
subjects:
  - kind: ServiceAccount
    name: {{ include "service-lib.fullname" $ }}
    namespace: {{ $.Release.Namespace }}
{{- end }}
{{- end -}}
