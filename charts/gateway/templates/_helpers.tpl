{{/* Copyright The fleetgate Authors. */}}
{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* Name of everything that the release makes in its namespace. */}}
{{- define "gateway.name" -}}
{{- if contains "gateway" .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- else -}}{{ printf "%s-gateway" .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{/* Name of what it makes for the whole cluster: two releases do not meet. */}}
{{- define "gateway.clusterName" -}}
{{- printf "fleetgate:%s:%s" .Release.Namespace (include "gateway.name" .) -}}
{{- end -}}

{{/* Name of the policy that limits the gateway's account. */}}
{{- define "gateway.accountPolicy" -}}
{{- printf "fleetgate.%s.%s" .Release.Namespace (include "gateway.name" .) -}}
{{- end -}}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: fleetgate-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "gateway.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "gateway.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* An image by digest, or by tag. Given: (list image defaultTag). */}}
{{- define "gateway.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}{{ $image.repository }}@{{ $image.digest }}{{- else -}}{{ $image.repository }}:{{ $image.tag | default (index . 1) }}{{- end -}}
{{- end -}}

{{/* What cannot be checked by the schema: values that must fit each other. */}}
{{- define "gateway.validate" -}}
{{- if and (.Values.tracing).samplingRatePerMillion (not .Values.tracing.endpoint) -}}
{{- fail "tracing.samplingRatePerMillion does nothing without tracing.endpoint, the host:port of a collector" -}}
{{- end -}}
{{- if and (hasPrefix "reference" .Values.guardRails) (not (or (hasPrefix "fleet-" .Release.Namespace) (hasPrefix "kube-" .Release.Namespace))) -}}
{{- fail (printf "guardRails=reference keeps Pods out of every namespace but fleet-... and kube-..., also the gateway's own: install into fleet-system, not into %s" .Release.Namespace) -}}
{{- end -}}
{{- if and (ne .Values.agents.service.type "None") (not .Values.agents.address) -}}
{{- fail "agents.service.type does nothing without agents.address, the host:port at which members reach it" -}}
{{- end -}}
{{- if ne (eq .Values.certificates.source "files") (not (empty .Values.certificates.secretName)) -}}
{{- fail "certificates.source=files goes with certificates.secretName, and it with that" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (has "--leader-elect=false" .Values.extraArgs) -}}
{{- fail "several replicas need to elect a leader: take --leader-elect=false out of extraArgs" -}}
{{- end -}}
{{- end -}}
