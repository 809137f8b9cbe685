// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// NewCache returns a cache of the RoleBindings that this package creates, and of the requests of agents
// of add-ons. The caller adds it to its manager.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	bindings, err := labelled(addonv1alpha1.TemplateLabel)
	if err != nil {
		return nil, err
	}
	requests, err := labelled(clusterv1.ClusterNameLabel, addonv1alpha1.AddOnNameLabel)
	if err != nil {
		return nil, err
	}
	options.ByObject = map[client.Object]cache.ByObject{
		&rbacv1.RoleBinding{}: {Label: bindings}, &certificatesv1.CertificateSigningRequest{}: {Label: requests},
	}
	objects, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making a cache for add-ons with templates: %w", err)
	}
	return objects, nil
}

func labelled(keys ...string) (labels.Selector, error) {
	selector := labels.NewSelector()
	for _, key := range keys {
		exists, err := labels.NewRequirement(key, selection.Exists, nil)
		if err != nil {
			return nil, err
		}
		selector = selector.Add(*exists)
	}
	return selector, nil
}

// AsManager is a configuration with the rights of ManagerAccount, which an administrator grants. The
// API server adds the groups of an account.
func AsManager(config *rest.Config) *rest.Config {
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: serviceaccount.MakeUsername(addonv1alpha1.HubNamespace, addonv1alpha1.ManagerAccount)}
	return as
}
