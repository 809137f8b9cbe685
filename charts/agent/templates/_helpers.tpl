{{/* Copyright The fleetgate Authors. */}}
{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* Name of all namespaced objects of the release. */}}
{{- define "agent.name" -}}
{{- if contains "agent" .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- else -}}{{ printf "%s-agent" .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{/* Name of cluster-scoped objects. It contains the namespace, so that agents of two hubs do not conflict. */}}
{{- define "agent.clusterName" -}}
{{- printf "fleetgate:%s:%s" .Release.Namespace (include "agent.name" .) -}}
{{- end -}}

{{- define "agent.selector" -}}
app.kubernetes.io/name: fleetgate-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "agent.labels" -}}
{{ include "agent.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "agent.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "agent.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* Image reference by digest or by tag. Arguments: (list image defaultTag). */}}
{{- define "agent.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}{{ $image.repository }}@{{ $image.digest }}{{- else -}}{{ $image.repository }}:{{ $image.tag | default (index . 1) }}{{- end -}}
{{- end -}}

{{/* Certificates as PEM, from PEM or from base64 of PEM. Arguments: (list name value). */}}
{{- define "agent.pem" -}}
{{- $name := index . 0 -}}{{- $given := index . 1 | trim -}}
{{- if not $given -}}
{{- else if contains "-----BEGIN CERTIFICATE-----" $given -}}{{ $given }}
{{- else -}}
{{- $decoded := $given | nospace | b64dec -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" $decoded) -}}
{{- fail (printf "%s is neither PEM certificates nor base64 of PEM" $name) -}}
{{- end -}}
{{ $decoded | trim }}
{{- end -}}
{{- end -}}

{{/* "true" for an agent that registers; empty for one with an identity that the user manages. */}}
{{- define "agent.registers" -}}
{{- if not .Values.config.memberClusterName -}}true{{- end -}}
{{- end -}}

{{/* "true" for an agent that runs on another cluster than its member. */}}
{{- define "agent.hosted" -}}
{{- if (.Values.member).kubeconfigSecret -}}true{{- end -}}
{{- end -}}

{{/* Namespace for the accounts of ManagedServiceAccounts. */}}
{{- define "agent.accounts" -}}
{{- $first := "open-cluster-management-managed-serviceaccount" -}}
{{- .Values.accounts.namespace | default (ternary (printf "%s-%s" $first .Values.hubName) $first (not (empty .Values.hubName))) -}}
{{- end -}}

{{/* Impersonation role of the gateway on this cluster, named as in the agent. */}}
{{- define "agent.impersonation" -}}
{{- if eq (include "agent.accounts" .) "open-cluster-management-managed-serviceaccount" -}}fleetgate-impersonate{{- else -}}fleetgate-impersonate-{{ include "agent.accounts" . }}{{- end -}}
{{- end -}}

{{/* Checks that the schema cannot express: values that depend on each other. */}}
{{- define "agent.validate" -}}
{{- if and (.Values.tracing).samplingRatePerMillion (not .Values.tracing.endpoint) -}}
{{- fail "tracing.samplingRatePerMillion has no effect without tracing.endpoint: set it to the host:port of a collector" -}}
{{- end -}}
{{- if .Values.strictNames -}}
{{- $namespace := .Values.internal.systemNamespace | default "cattle-fleet-system" -}}
{{- if or (ne .Release.Name "fleet-agent") (ne .Release.Namespace $namespace) -}}
{{- fail (printf "strictNames: the release must be fleet-agent in namespace %s, this is %s in %s" $namespace .Release.Name .Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- if eq (include "agent.accounts" .) .Release.Namespace -}}
{{- fail "accounts.namespace must not be the namespace of the release: accounts there could read the agent's key" -}}
{{- end -}}
{{- if and .Values.config.hubURL (not .Values.config.memberClusterName) -}}
{{- fail "config.hubURL needs config.memberClusterName: set it to the MemberCluster that names this agent's identity" -}}
{{- end -}}
{{- if include "agent.registers" . -}}{{- include "agent.validateRegistration" . -}}{{- else -}}{{- include "agent.validateIdentity" . -}}{{- end -}}
{{- end -}}

{{/* An upgrade needs no token, because the agent is registered. */}}
{{- define "agent.validateRegistration" -}}
{{- if and .Release.IsInstall (not .Values.token) -}}
{{- fail "token is empty: pass the values of a ClusterRegistrationToken (-f values.yaml), or set config.hubURL and config.memberClusterName for an identity that you manage" -}}
{{- end -}}
{{- if and .Values.token (not .Values.apiServerURL) -}}
{{- fail "apiServerURL is empty: set it to the URL of the hub's API server, as in the values of the ClusterRegistrationToken" -}}
{{- end -}}
{{- end -}}

{{- define "agent.validateIdentity" -}}
{{- if .Values.token -}}
{{- fail "token and config.memberClusterName are both set: an agent either registers, or uses an identity that you manage" -}}
{{- end -}}
{{- $provider := .Values.config.provider -}}
{{- if ne (eq $provider "kubeconfig") (not (empty .Values.config.kubeconfigSecret)) -}}
{{- fail "config.provider=kubeconfig and config.kubeconfigSecret need each other" -}}
{{- end -}}
{{- if and (ne $provider "kubeconfig") (not .Values.config.hubURL) -}}
{{- fail "config.memberClusterName needs config.hubURL: set it to the URL of the hub's API server" -}}
{{- end -}}
{{- if ne (eq $provider "file") (not (empty .Values.config.tokenFile)) -}}
{{- fail "config.provider=file and config.tokenFile need each other" -}}
{{- end -}}
{{- if and (eq $provider "secret") .Values.secret.namespace (ne .Values.secret.namespace .Release.Namespace) -}}
{{- fail (printf "secret.namespace is %s: a Pod can read only Secrets of its own namespace; copy the Secret to %s" .Values.secret.namespace .Release.Namespace) -}}
{{- end -}}
{{- if and (eq $provider "azure") (not .Values.refreshtoken.repository) -}}
{{- fail "config.provider=azure needs refreshtoken.repository: set it to the image of a container that writes the token of the identity to /config/token; the fleet agents of Azure contain one" -}}
{{- end -}}
{{- end -}}

{{/* AgentConfiguration: values of the chart, and configuration on top of them. */}}
{{- define "agent.configuration" -}}
apiVersion: config.fleetgate.io/v1alpha1
kind: AgentConfiguration
{{ mergeOverwrite (include "agent.configured" . | fromYaml) (deepCopy .Values.configuration) | toYaml }}
{{- end -}}

{{- define "agent.configured" -}}
member:
  namespace: {{ .Release.Namespace }}
  {{- if not (include "agent.hosted" .) }}
  deployment: {{ include "agent.name" . }}
  {{- end }}
  collectNamespaces: {{ .Values.enableNamespaceCollectionInPropertyProvider }}
hub:
  name: {{ .Values.hubName | quote }}
  {{- if not (include "agent.registers" .) }}
  memberName: {{ .Values.config.memberClusterName }}
  {{- if eq .Values.config.provider "kubeconfig" }}
  kubeconfig: /etc/fleetgate/hub/kubeconfig
  {{- else }}
  url: {{ .Values.config.hubURL }}
  tokenFile: {{ eq .Values.config.provider "file" | ternary .Values.config.tokenFile "/config/token" }}
  {{- if .Values.config.hubCA }}
  caFile: /etc/fleetgate/hub/ca.crt
  {{- end }}
  {{- end }}
  {{- end }}
registration:
  hubCertificate: {{ .Values.hubCertificate }}
  {{- if and (include "agent.hosted" .) (include "agent.registers" .) }}
  bootstrapFile: /etc/fleetgate/bootstrap/values
  {{- end }}
accounts:
  namespace: {{ include "agent.accounts" . }}
  adopt: {{ .Values.accounts.adopt }}
process:
  metricsBindAddress: ":{{ .Values.ports.metrics }}"
  healthProbeBindAddress: ":{{ .Values.ports.probes }}"
  {{- with (.Values.tracing).endpoint }}
  tracing:
    samplingRatePerMillion: {{ int64 $.Values.tracing.samplingRatePerMillion }}
  {{- end }}
{{- end -}}
