// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds holds the CustomResourceDefinitions of all groups that the hub's or a member's API
// server stores. They are generated from the Go types beside this package.
//
// The YAML files are embedded: the gateway's installer, the agent, the charts and the tests use the
// same files. The groups that the gateway serves itself (cluster.core.oam.dev, tunnel.fleetgate.io)
// have no CRDs.
//
// Do not edit the YAML: change the Go types, or the table of served versions in hack/crdgen, and
// run make generate.
package crds

import (
	"embed"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// CRDs that are installed on members and not on the hub: records of applied objects, and claims of
// a cluster.
const (
	AppliedWorks         = "appliedworks.placement.kubernetes-fleet.io"
	AppliedManifestWorks = "appliedmanifestworks.work.open-cluster-management.io"
	ClusterClaims        = "clusterclaims.cluster.open-cluster-management.io"
)

// All returns every CRD, in order of file name. The caller can modify them.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing embedded CRDs: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, entry := range entries {
		crd, err := parse(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading embedded CRD %s: %w", entry.Name(), err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// ForHub returns the CRDs of the given API groups that are installed on a hub.
func ForHub(groups ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return where(func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return !isForMembers(crd) && slices.Contains(groups, crd.Spec.Group)
	})
}

// ForMember returns the CRDs of the given API groups that are installed on a member.
func ForMember(groups ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return where(func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return isForMembers(crd) && slices.Contains(groups, crd.Spec.Group)
	})
}

// Named returns the CRDs with the given names.
func Named(names ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return where(func(crd *apiextensionsv1.CustomResourceDefinition) bool { return slices.Contains(names, crd.Name) })
}

func isForMembers(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Contains([]string{AppliedWorks, AppliedManifestWorks, ClusterClaims}, crd.Name)
}

func where(keep func(*apiextensionsv1.CustomResourceDefinition) bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := All()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return !keep(crd) }), nil
}

func parse(file string) (*apiextensionsv1.CustomResourceDefinition, error) {
	content, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, crd); err != nil {
		return nil, err
	}
	return crd, nil
}
