// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// servedBeside are the versions served in addition to the stored one, by the CRD's name. Other
// kinds have one version, or are converted. AppliedWork has no v1: it would be the preferred version, and Kubernetes'
// garbage collector reads each object, and its owner, whose owner reference has another one.
var servedBeside = map[string][]string{
	"memberclusters.cluster.kubernetes-fleet.io":         {"v1"},
	"internalmemberclusters.cluster.kubernetes-fleet.io": {"v1"},

	"managedserviceaccounts.authentication.open-cluster-management.io": {"v1alpha1"},

	"addondeploymentconfigs.addon.open-cluster-management.io": {"v1beta1"},
	"addontemplates.addon.open-cluster-management.io":         {"v1beta1"},

	"clusterresourceplacements.placement.kubernetes-fleet.io":        {"v1"},
	"resourceplacements.placement.kubernetes-fleet.io":               {"v1"},
	"clusterresourceplacementstatuses.placement.kubernetes-fleet.io": {"v1"},
	"clusterschedulingpolicysnapshots.placement.kubernetes-fleet.io": {"v1"},
	"clusterresourcesnapshots.placement.kubernetes-fleet.io":         {"v1"},
	"clusterresourcebindings.placement.kubernetes-fleet.io":          {"v1"},
	"works.placement.kubernetes-fleet.io":                            {"v1"},

	"clusterresourceoverrides.placement.kubernetes-fleet.io":         {"v1", "v1alpha1"},
	"resourceoverrides.placement.kubernetes-fleet.io":                {"v1", "v1alpha1"},
	"clusterresourceoverridesnapshots.placement.kubernetes-fleet.io": {"v1", "v1alpha1"},
	"resourceoverridesnapshots.placement.kubernetes-fleet.io":        {"v1", "v1alpha1"},

	"clusterresourceplacementevictions.placement.kubernetes-fleet.io":         {"v1alpha1"},
	"clusterresourceplacementdisruptionbudgets.placement.kubernetes-fleet.io": {"v1alpha1"},

	clusterStagedUpdateRuns: {"v1", "v1alpha1"},
	"clusterstagedupdatestrategies.placement.kubernetes-fleet.io": {"v1", "v1alpha1"},
	"clusterapprovalrequests.placement.kubernetes-fleet.io":       {"v1", "v1alpha1"},
	"stagedupdateruns.placement.kubernetes-fleet.io":              {"v1"},
	"stagedupdatestrategies.placement.kubernetes-fleet.io":        {"v1"},
	"approvalrequests.placement.kubernetes-fleet.io":              {"v1"},
}

// converted are the CRDs with versions of another schema, which the gateway converts. Each version
// has its own Go type.
var converted = []string{
	"clustermanagementaddons.addon.open-cluster-management.io",
	"managedclusteraddons.addon.open-cluster-management.io",
}

const clusterStagedUpdateRuns = "clusterstagedupdateruns.placement.kubernetes-fleet.io"

// difference is a rule in which a version differs from the stored one. It can change the validation
// of a field, but not remove the field.
type difference struct {
	version string
	crd     string // empty: every CRD that has the version
	apply   func(field string, schema *apiextensionsv1.JSONSchemaProps)
}

var differences = []difference{
	// An envelope has always been one of the two envelope kinds in v1.
	{version: "v1", apply: func(field string, schema *apiextensionsv1.JSONSchemaProps) {
		if field == "envelope" {
			withoutEnum(schema, "type", `"ConfigMap"`)
			withoutEnum(schema, "type", `"Secret"`)
		}
	}},
	// v1 accepted a wait of zero as a plain 0.
	{version: "v1alpha1", apply: func(field string, schema *apiextensionsv1.JSONSchemaProps) {
		if field == "waitTime" {
			schema.Pattern = `^(?:0|(?:(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:s|m|h))+)$`
		}
	}},
	// The snapshot was required.
	{version: "v1alpha1", crd: clusterStagedUpdateRuns, apply: func(field string, schema *apiextensionsv1.JSONSchemaProps) {
		if field == "spec" {
			schema.Required = append(schema.Required, "resourceSnapshotIndex")
			slices.Sort(schema.Required)
		}
	}},
}

// withoutEnum removes a value (in JSON) from a property's enum, and its default if that is the
// value.
func withoutEnum(schema *apiextensionsv1.JSONSchemaProps, property, value string) {
	p, ok := schema.Properties[property]
	if !ok {
		return
	}
	// DeepCopy of a schema shares the enum with the original.
	p.Enum = slices.DeleteFunc(slices.Clone(p.Enum), func(v apiextensionsv1.JSON) bool { return string(v.Raw) == value })
	if p.Default != nil && string(p.Default.Raw) == value {
		p.Default = nil
	}
	schema.Properties[property] = p
}
