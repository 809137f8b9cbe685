// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Older gateways installed an agent from their own manifests: a Deployment with another, immutable
// selector, and a binding with another name. Both have the gateway's label and are deleted when the
// agent is installed again. Objects of users or Helm are not touched.

// replace deletes a former Deployment, so that the chart's can be created. It reports whether it
// existed and was ours.
func replace(ctx context.Context, member client.Client, object *unstructured.Unstructured) (bool, error) {
	if object.GetKind() != "Deployment" {
		return false, nil
	}
	return deleteOurs(ctx, member, object)
}

// removeFormerBinding deletes the binding of an older gateway.
func removeFormerBinding(ctx context.Context, member client.Client, namespace string) error {
	binding := &unstructured.Unstructured{}
	binding.SetAPIVersion("rbac.authorization.k8s.io/v1")
	binding.SetKind("ClusterRoleBinding")
	binding.SetName(ReleaseName + "-" + namespace)
	_, err := deleteOurs(ctx, member, binding)
	return err
}

// deleteOurs deletes an object of that name if the gateway created it.
func deleteOurs(ctx context.Context, member client.Client, object *unstructured.Unstructured) (bool, error) {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(object.GroupVersionKind())
	err := member.Get(ctx, client.ObjectKeyFromObject(object), there)
	if apierrors.IsNotFound(err) || err == nil && there.GetLabels()[managedByLabel] != managedBy {
		return false, nil
	}
	if err == nil {
		uid := there.GetUID()
		err = client.IgnoreNotFound(member.Delete(ctx, there, client.Preconditions{UID: &uid}))
	}
	if err != nil {
		return false, fmt.Errorf("deleting the former %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return true, nil
}
