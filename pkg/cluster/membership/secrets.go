// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"

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
)

// NewSecretCache makes a cache that holds the metadata, never the content, of the
// Secrets that the hub made for members. The caller adds it to its manager.
func NewSecretCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	ofMembers, err := labels.NewRequirement(clusterv1beta1.LabelMember, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting members' Secrets: %w", err)
	}
	options.DefaultLabelSelector = labels.NewSelector().Add(*ofMembers)
	secrets, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making a cache of members' Secrets: %w", err)
	}
	return secrets, nil
}

type secretHandler = handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request]

// CredentialSource tells the handler of members' credential Secrets that were made
// or deleted. It needs a cache that NewSecretCache made.
func CredentialSource(secrets cache.Cache, h secretHandler) source.Source {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return source.Kind(secrets, secret, h, predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		CreateFunc: func(e event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return isCredential(e.Object) },
		DeleteFunc: func(e event.TypedDeleteEvent[*metav1.PartialObjectMetadata]) bool { return isCredential(e.Object) },
		UpdateFunc: func(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool { return false },
	})
}

func isCredential(secret client.Object) bool {
	_, ofMember := clusterv1beta1.MemberOfNamespace(secret.GetNamespace())
	return ofMember && secret.GetName() == clusterv1beta1.AgentCredentialSecret
}

func memberOfCredential(_ context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	member, ok := clusterv1beta1.MemberOfNamespace(secret.GetNamespace())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: member}}}
}
