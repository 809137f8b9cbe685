// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// GoingDelay is the delay before a retry after a write was rejected because its namespace is being
// deleted: a namespace of the same name can follow.
const GoingDelay = 5 * time.Second

// NamespaceGoing reports whether a namespace is being deleted, or is deleted. Then the API server
// rejects new objects, including events, and deletes existing ones. Without a name it is false.
func NamespaceGoing(ctx context.Context, reader client.Reader, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if found, err := reconcileutil.GetIfExists(ctx, reader, client.ObjectKey{Name: name}, namespace, "looking whether namespace %q is being deleted", name); !found {
		return err == nil, err
	}
	return namespace.DeletionTimestamp != nil, nil
}

// DefinitionGoing reports whether the CustomResourceDefinition of the placements in a namespace, or of
// those without one, is being deleted, or is deleted. The API server then deletes all of them, although no
// user asked for the deletion of any.
func DefinitionGoing(ctx context.Context, reader client.Reader, namespace string) (bool, error) {
	resource := placementv1beta1.Resource("clusterresourceplacements")
	if namespace != "" {
		resource = placementv1beta1.Resource("resourceplacements")
	}
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	found, err := reconcileutil.GetIfExists(ctx, reader, client.ObjectKey{Name: resource.String()}, definition, "looking whether CustomResourceDefinition %q is being deleted", resource)
	return err == nil && !found || definition.DeletionTimestamp != nil, err
}

// RefusedAsGoing reports whether a write was rejected because its namespace is being deleted, which a
// cache could not know.
func RefusedAsGoing(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
