// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// keepConversion returns the definition with the conversion that the hub has. A version that needs a
// gateway to convert is not served at first: the Keeper serves it once a gateway answers. A replica
// that starts later must not stop that.
func (i *Installer) keepConversion(ctx context.Context, wanted *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	if !slices.ContainsFunc(wanted.Spec.Versions, isUnserved) {
		return wanted, nil
	}
	current := &apiextensionsv1.CustomResourceDefinition{}
	found, err := reconcileutil.GetIfExists(ctx, i.Client, client.ObjectKeyFromObject(wanted), current, "looking for CustomResourceDefinition %s", wanted.Name)
	if err != nil || !found || !ours(current) || !isConverted(current) {
		return wanted, err
	}
	kept := wanted.DeepCopy()
	kept.Spec.Conversion = current.Spec.Conversion
	for n := range kept.Spec.Versions {
		kept.Spec.Versions[n].Served = true
	}
	return kept, nil
}

func isUnserved(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return !version.Served }

func isConverted(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return definition.Spec.Conversion != nil && definition.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// stopConversion serves only the stored version of definitions that a gateway converted. Otherwise no
// namespace with such an object could be deleted.
func (u *Uninstaller) stopConversion(ctx context.Context) error {
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := u.Client.List(ctx, &definitions, client.MatchingLabels{LabelManagedBy: ManagedBy}); err != nil {
		return fmt.Errorf("looking for converted kinds: %w", err)
	}
	for n := range definitions.Items {
		definition := &definitions.Items[n]
		if !isConverted(definition) {
			continue
		}
		before := definition.DeepCopy()
		definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		for v := range definition.Spec.Versions {
			definition.Spec.Versions[v].Served = definition.Spec.Versions[v].Storage
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := u.Client.Patch(ctx, definition, patch, FieldOwner); err != nil {
			return fmt.Errorf("stopping the conversion of %s: %w", definition.Name, err)
		}
	}
	return nil
}
