// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

// NewSecretCache returns a cache for the metadata of the Secrets of ManagedServiceAccounts. The
// caller adds it to its manager.
func NewSecretCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue})
	secrets, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making a cache of the Secrets of ManagedServiceAccounts: %w", err)
	}
	return secrets, nil
}
