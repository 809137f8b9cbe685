{{/* Copyright The fleetgate Authors. */}}
{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* Name of all namespaced objects of the release. */}}
{{- define "gateway.name" -}}
{{- if contains "gateway" .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- else -}}{{ printf "%s-gateway" .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{/* Name of cluster-scoped objects. It contains the namespace, so that two releases do not conflict. */}}
{{- define "gateway.clusterName" -}}
{{- printf "fleetgate:%s:%s" .Release.Namespace (include "gateway.name" .) -}}
{{- end -}}

{{/* Name of the policy that limits the gateway's ServiceAccount. */}}
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

{{/* Image reference by digest or by tag. Arguments: (list image defaultTag). */}}
{{- define "gateway.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}{{ $image.repository }}@{{ $image.digest }}{{- else -}}{{ $image.repository }}:{{ $image.tag | default (index . 1) }}{{- end -}}
{{- end -}}

{{/* Checks that the schema cannot express: values that depend on each other. */}}
{{- define "gateway.validate" -}}
{{- if and (.Values.tracing).samplingRatePerMillion (not .Values.tracing.endpoint) -}}
{{- fail "tracing.samplingRatePerMillion has no effect without tracing.endpoint: set it to the host:port of a collector" -}}
{{- end -}}
{{- if and (hasPrefix "reference" .Values.guardRails) (not (or (hasPrefix "fleet-" .Release.Namespace) (hasPrefix "kube-" .Release.Namespace))) -}}
{{- fail (printf "guardRails=reference rejects Pods in all namespaces except fleet-* and kube-*, including the namespace of the gateway: install into fleet-system instead of %s" .Release.Namespace) -}}
{{- end -}}
{{- if and (ne .Values.agents.service.type "None") (not .Values.agents.address) -}}
{{- fail "agents.service.type has no effect without agents.address: set it to the host:port at which members reach the Service" -}}
{{- end -}}
{{- if ne (eq .Values.certificates.source "files") (not (empty .Values.certificates.secretName)) -}}
{{- fail "certificates.source=files and certificates.secretName need each other" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (has "--leader-elect=false" .Values.extraArgs) -}}
{{- fail "several replicas need leader election: remove --leader-elect=false from extraArgs" -}}
{{- end -}}
{{- end -}}
