{{/* Copyright The fleetgate Authors. */}}
{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* Name of everything that the release makes in its namespace. */}}
{{- define "agent.name" -}}
{{- if contains "agent" .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- else -}}{{ printf "%s-agent" .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{/* Name of what it makes for the whole cluster: agents of two hubs do not meet. */}}
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

{{/* An image by digest, or by tag. Given: (list image defaultTag). */}}
{{- define "agent.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}{{ $image.repository }}@{{ $image.digest }}{{- else -}}{{ $image.repository }}:{{ $image.tag | default (index . 1) }}{{- end -}}
{{- end -}}

{{/* Certificates as PEM, from PEM or from base64 of it. Given: (list name value). */}}
{{- define "agent.pem" -}}
{{- $name := index . 0 -}}{{- $given := index . 1 | trim -}}
{{- if not $given -}}
{{- else if contains "-----BEGIN CERTIFICATE-----" $given -}}{{ $given }}
{{- else -}}
{{- $decoded := $given | nospace | b64dec -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" $decoded) -}}
{{- fail (printf "%s is neither certificates in PEM form nor base64 of such" $name) -}}
{{- end -}}
{{ $decoded | trim }}
{{- end -}}
{{- end -}}

{{/* "true" for an agent that registers; empty for one whose identity others keep. */}}
{{- define "agent.registers" -}}
{{- if not .Values.config.memberClusterName -}}true{{- end -}}
{{- end -}}

{{/* Namespace for the accounts of ManagedServiceAccounts. */}}
{{- define "agent.accounts" -}}
{{- $first := "open-cluster-management-managed-serviceaccount" -}}
{{- .Values.accounts.namespace | default (ternary (printf "%s-%s" $first .Values.hubName) $first (not (empty .Values.hubName))) -}}
{{- end -}}

{{/* The role with which the gateway acts on this cluster for its callers, as the agent names it. */}}
{{- define "agent.impersonation" -}}
{{- if eq (include "agent.accounts" .) "open-cluster-management-managed-serviceaccount" -}}fleetgate-impersonate{{- else -}}fleetgate-impersonate-{{ include "agent.accounts" . }}{{- end -}}
{{- end -}}

{{/* What cannot be checked by the schema: values that must fit each other. */}}
{{- define "agent.validate" -}}
{{- if and (.Values.tracing).samplingRatePerMillion (not .Values.tracing.endpoint) -}}
{{- fail "tracing.samplingRatePerMillion does nothing without tracing.endpoint, the host:port of a collector" -}}
{{- end -}}
{{- if .Values.strictNames -}}
{{- $namespace := .Values.internal.systemNamespace | default "cattle-fleet-system" -}}
{{- if or (ne .Release.Name "fleet-agent") (ne .Release.Namespace $namespace) -}}
{{- fail (printf "strictNames: the release must be fleet-agent in namespace %s, this is %s in %s" $namespace .Release.Name .Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- if eq (include "agent.accounts" .) .Release.Namespace -}}
{{- fail "accounts.namespace must not be the release's own: whoever holds an account there would read the agent's key" -}}
{{- end -}}
{{- if and .Values.config.hubURL (not .Values.config.memberClusterName) -}}
{{- fail "config.hubURL needs config.memberClusterName, the MemberCluster that names this agent's identity" -}}
{{- end -}}
{{- if include "agent.registers" . -}}{{- include "agent.validateRegistration" . -}}{{- else -}}{{- include "agent.validateIdentity" . -}}{{- end -}}
{{- end -}}

{{/* An upgrade may come without a token: the agent has registered since. */}}
{{- define "agent.validateRegistration" -}}
{{- if and .Release.IsInstall (not .Values.token) -}}
{{- fail "token is empty: give the values of a ClusterRegistrationToken (-f values.yaml), or config.hubURL and config.memberClusterName for an identity that others keep" -}}
{{- end -}}
{{- if and .Values.token (not .Values.apiServerURL) -}}
{{- fail "apiServerURL is empty: give the URL of the hub's API server, as the values of the ClusterRegistrationToken hold it" -}}
{{- end -}}
{{- end -}}

{{- define "agent.validateIdentity" -}}
{{- if .Values.token -}}
{{- fail "token and config.memberClusterName are both given: an agent registers, or has an identity that others keep" -}}
{{- end -}}
{{- $provider := .Values.config.provider -}}
{{- if ne (eq $provider "kubeconfig") (not (empty .Values.config.kubeconfigSecret)) -}}
{{- fail "config.provider=kubeconfig goes with config.kubeconfigSecret, and it with that" -}}
{{- end -}}
{{- if and (ne $provider "kubeconfig") (not .Values.config.hubURL) -}}
{{- fail "config.memberClusterName needs config.hubURL, the URL of the hub's API server" -}}
{{- end -}}
{{- if ne (eq $provider "file") (not (empty .Values.config.tokenFile)) -}}
{{- fail "config.provider=file goes with config.tokenFile, and it with that" -}}
{{- end -}}
{{- if and (eq $provider "secret") .Values.secret.namespace (ne .Values.secret.namespace .Release.Namespace) -}}
{{- fail (printf "secret.namespace is %s: a Pod reads Secrets of its own namespace only, copy the Secret to %s" .Values.secret.namespace .Release.Namespace) -}}
{{- end -}}
{{- if and (eq $provider "azure") (not .Values.refreshtoken.repository) -}}
{{- fail "config.provider=azure needs refreshtoken.repository, the image of a container that writes the identity's token to /config/token; the fleet agents of Azure ship one" -}}
{{- end -}}
{{- end -}}
