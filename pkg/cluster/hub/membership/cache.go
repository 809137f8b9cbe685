// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
)

// NewMemberCache creates a cache of objects that the hub created for members: the metadata of Secrets,
// without their contents, and Leases. It selects them by label. The caller adds it to its manager.
func NewMemberCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	ofMembers, err := labels.NewRequirement(clusterv1beta1.LabelMember, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting what belongs to members: %w", err)
	}
	options.DefaultLabelSelector = labels.NewSelector().Add(*ofMembers)
	members, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making a cache of what belongs to members: %w", err)
	}
	return members, nil
}

type secretHandler = handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request]

// CredentialSource passes members' credential Secrets that were created or deleted to the handler. It
// needs a cache from NewMemberCache.
func CredentialSource(secrets cache.Cache, seats identity.Seats, h secretHandler) source.Source {
	isCredential := func(secret client.Object) bool {
		_, ofMember := seats.MemberOf(secret.GetNamespace())
		return ofMember && secret.GetName() == seats.Credential
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return source.Kind(secrets, secret, h, predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		CreateFunc: func(e event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return isCredential(e.Object) },
		DeleteFunc: func(e event.TypedDeleteEvent[*metav1.PartialObjectMetadata]) bool { return isCredential(e.Object) },
		UpdateFunc: func(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool { return false },
	})
}

// whenGone passes deleted Secrets, and not those that this controller creates.
func whenGone(requests handler.TypedMapFunc[*metav1.PartialObjectMetadata, reconcile.Request]) secretHandler {
	all := handler.TypedEnqueueRequestsFromMapFunc(requests)
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{DeleteFunc: all.Delete}
}

// leaseSource passes renewed Leases.
func leaseSource(members cache.Cache, seats identity.Seats) source.Source {
	renewed := predicate.NewTypedPredicateFuncs(func(lease *coordinationv1.Lease) bool { return lease.Name == seats.Lease })
	toMember := func(_ context.Context, lease *coordinationv1.Lease) []reconcile.Request {
		member, ok := seats.MemberOf(lease.Namespace)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: internalKey(seats, member)}}
	}
	return source.Kind(members, &coordinationv1.Lease{}, handler.TypedEnqueueRequestsFromMapFunc(toMember), renewed)
}

func (r *Reconciler) memberOfCredential(_ context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	member, ok := r.Seats.MemberOf(secret.GetNamespace())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: member}}}
}
