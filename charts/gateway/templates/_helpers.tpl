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
{{- if and (gt (int .Values.replicas) 1) (or (has "--leader-elect=false" .Values.extraArgs) (not (dig "process" "leaderElect" true .Values.configuration))) -}}
{{- fail "several replicas need leader election: remove --leader-elect=false from extraArgs and process.leaderElect from configuration" -}}
{{- end -}}
{{- end -}}

{{/* GatewayConfiguration: values of the chart, and configuration on top of them. */}}
{{- define "gateway.configuration" -}}
apiVersion: config.fleetgate.io/v1alpha1
kind: GatewayConfiguration
{{ mergeOverwrite (include "gateway.configured" . | fromYaml) (deepCopy .Values.configuration) | toYaml }}
{{- end -}}

{{- define "gateway.configured" -}}
hub:
  namespace: {{ .Release.Namespace }}
  url: {{ required "hubURL is empty: give the URL at which members reach the hub's API server, such as https://hub.example.org:6443" .Values.hubURL }}
  {{- if .Values.hubCA }}
  caFile: /etc/fleetgate/hub/ca.crt
  {{- end }}
{{- if or .Values.apis .Values.ocm }}
features:
  {{- with .Values.apis }}
  apis: {{ toJson . }}
  {{- end }}
  {{- with .Values.ocm }}
  ocm: {{ toJson . }}
  {{- end }}
{{- end }}
install:
  enabled: true
  adopt: {{ .Values.adopt }}
  guardRails: {{ .Values.guardRails | quote }}
serving:
  service: {{ include "gateway.name" . }}
  securePort: {{ .Values.ports.api }}
  webhookPort: {{ .Values.ports.webhooks }}
  certificates: {{ .Values.certificates.source }}
  {{- if eq .Values.certificates.source "files" }}
  certFile: /etc/fleetgate/tls/tls.crt
  keyFile: /etc/fleetgate/tls/tls.key
  caFile: /etc/fleetgate/tls/ca.crt
  {{- end }}
  {{- with .Values.endpointNames }}
  endpointNames: {{ toJson . }}
  {{- end }}
  {{- with .Values.memberDomain }}
  memberDomain: {{ . }}
  {{- end }}
proxy:
  {{- /* authorizeInner is the previous name of the value. Remove after the next release. */}}
  authorizeMemberRequests: {{ or .Values.authorizeMemberRequests .Values.authorizeInner | default false }}
  auditRequests: {{ .Values.logging.requests }}
  {{- with .Values.memberGroups }}
  memberGroups: {{ toJson . }}
  {{- end }}
tunnels:
  peerPort: {{ .Values.ports.peers }}
  {{- if .Values.agents.address }}
  agentsAddress: {{ .Values.agents.address }}
  agentsPort: {{ .Values.ports.agents }}
  {{- end }}
registration:
  namespaces: {{ toJson .Values.registrationNamespaces }}
  policy: {{ .Values.registrationPolicy }}
  selfAssignedLabels: {{ .Values.selfAssignedLabels }}
  {{- if .Values.agentImage.repository }}
  agentImage: {{ include "gateway.image" (list .Values.agentImage .Chart.AppVersion) }}
  {{- end }}
{{- if .Values.csrSigner.secretName }}
klusterlets:
  signerCertFile: /etc/fleetgate/signer/tls.crt
  signerKeyFile: /etc/fleetgate/signer/tls.key
{{- end }}
members:
  argoCDNamespace: {{ .Values.argocdNamespace }}
  taintUnreachable: {{ .Values.taintUnreachable }}
  {{- if .Values.flowControl.create }}
  agentsPriorityLevel: {{ printf "fleetgate-%s-%s" .Release.Namespace (include "gateway.name" .) | trunc 240 }}-agents
  {{- end }}
placement:
  authorizeAuthors: {{ .Values.authorizeAuthors }}
  standardDecisions: {{ .Values.standardDecisions }}
  {{- if (.Values.helmCharts).enabled }}
  helmCharts: true
  {{- with .Values.helmCharts.registries }}
  helmChartRegistries: {{ toJson . }}
  {{- end }}
  {{- if .Values.helmCharts.credentialsSecret }}
  helmChartCredentialsFile: /etc/fleetgate/charts/config.json
  {{- end }}
  {{- end }}
process:
  metricsBindAddress: ":{{ .Values.ports.metrics }}"
  healthProbeBindAddress: ":{{ .Values.ports.probes }}"
  {{- with (.Values.tracing).endpoint }}
  tracing:
    samplingRatePerMillion: {{ int64 $.Values.tracing.samplingRatePerMillion }}
  {{- end }}
{{- end -}}
