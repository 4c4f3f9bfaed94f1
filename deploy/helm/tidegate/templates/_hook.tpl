{{/* Before everything else, at each install and upgrade; nothing of it stays but the definitions. */}}
{{- define "tidegate.hook" }}
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
