// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definitions installs CustomResourceDefinitions on a member: those of the agent's records, and
// those of claims, with which people state facts about it.
package definitions

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	"fleetgate.io/fleetgate/pkg/kube/crdwait"
)

// InstalledByLabel is on objects that the agent installed on the member, with the value
// InstalledByAgent. The agent does not change definitions without it.
const (
	InstalledByLabel = "fleetgate.io/installed-by"
	InstalledByAgent = "agent"
)

// manager is the field manager of definitions. It must not change, or fields of older agents would
// stay.
const manager = "work-api-agent"

// Ensure installs or updates the kinds of the API groups on a member, and waits until they are
// served or the context is done. It does not change definitions that others installed. The client's
// scheme must contain apiextensions.k8s.io/v1.
func Ensure(ctx context.Context, member client.Client, groups ...string) error {
	wanted, err := crds.ForMember(groups...)
	if err != nil {
		return err
	}
	for _, crd := range wanted {
		if err := ensureOne(ctx, member, crd); err != nil {
			return fmt.Errorf("installing CustomResourceDefinition %s on the member: %w", crd.Name, err)
		}
		if err := crdwait.UntilServed(ctx, member, crd.Name); err != nil {
			return fmt.Errorf("installing the agent's kinds on the member: %w", err)
		}
	}
	return nil
}

func ensureOne(ctx context.Context, member client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	live := &apiextensionsv1.CustomResourceDefinition{}
	err := member.Get(ctx, client.ObjectKeyFromObject(crd), live)
	if err == nil && live.Labels[InstalledByLabel] != InstalledByAgent {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	metav1.SetMetaDataLabel(&crd.ObjectMeta, InstalledByLabel, InstalledByAgent)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return err
	}
	delete(fields, "status")
	return member.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields}),
		client.FieldOwner(manager), client.ForceOwnership)
}
