// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/work/agent/definitions"
)

// hubGroups are the API groups that a gateway installs by default. The suite of the charts compares
// them with what it installs.
var hubGroups = [...]string{
	"admission.fleetgate.io", "authentication.open-cluster-management.io", "cluster.kubernetes-fleet.io", "fleet.cattle.io",
	"multicluster.x-k8s.io", "placement.kubernetes-fleet.io", "view.fleetgate.io",
}

// addDefinitions writes what a gateway or an agent installs, in one file, for clusters whose
// definitions are applied by another tool. They have the labels by which gateway and agent know
// their own definitions.
func (p *plan) addDefinitions(command string) error {
	all, err := p.definitionsOf(command)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, definition := range all {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
		if err != nil {
			return err
		}
		delete(fields, "status")
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
		one, err := yaml.Marshal(fields)
		if err != nil {
			return err
		}
		text.WriteString("---\n")
		text.Write(one)
	}
	return os.WriteFile(p.path(command+"-crds.yaml"), text.Bytes(), 0o644)
}

func (p *plan) definitionsOf(command string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if command == "agent" {
		return definitions.All()
	}
	all, err := crds.ForHub(hubGroups[:]...)
	for _, definition := range all {
		metav1.SetMetaDataLabel(&definition.ObjectMeta, install.LabelManagedBy, install.ManagedBy)
		metav1.SetMetaDataAnnotation(&definition.ObjectMeta, install.AnnotationVersion, p.version)
	}
	return all, err
}
