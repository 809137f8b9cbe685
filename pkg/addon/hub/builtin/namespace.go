// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// assign assigns the namespace of a cluster to its member, so that ManagedServiceAccounts there work as
// with the add-on of Open Cluster Management. An assignment of an administrator stays, and so does its
// removal.
func (r *Reconciler) assign(ctx context.Context, cluster string) error {
	namespace, exists, err := r.namespaceOf(ctx, cluster)
	_, assigned := namespace.Labels[clusterv1beta1.LabelMember]
	_, removed := namespace.Annotations[addonv1alpha1.AssignedAnnotation]
	if !exists || err != nil || assigned || removed || namespace.Labels[clusterv1.ClusterNameLabel] != cluster || namespace.DeletionTimestamp != nil {
		return err
	}
	return reconcileutil.Patch(ctx, r.Client, namespace, func() {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, clusterv1beta1.LabelMember, cluster)
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, addonv1alpha1.AssignedAnnotation, managedServiceAccount)
	}, "assigning namespace %q to its member", cluster)
}

// withdraw removes the assignment, if it is not an administrator's.
func (r *Reconciler) withdraw(ctx context.Context, cluster string) error {
	namespace, exists, err := r.namespaceOf(ctx, cluster)
	if _, ours := namespace.Annotations[addonv1alpha1.AssignedAnnotation]; !exists || err != nil || !ours {
		return err
	}
	return client.IgnoreNotFound(reconcileutil.Patch(ctx, r.Client, namespace, func() {
		delete(namespace.Annotations, addonv1alpha1.AssignedAnnotation)
		if namespace.Labels[clusterv1beta1.LabelMember] == cluster {
			delete(namespace.Labels, clusterv1beta1.LabelMember)
		}
	}, "withdrawing namespace %q from its member", cluster))
}

func (r *Reconciler) namespaceOf(ctx context.Context, cluster string) (*metav1.PartialObjectMetadata, bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: cluster}, namespace, "reading namespace %q", cluster)
	return namespace, exists, err
}
