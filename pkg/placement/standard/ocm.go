// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/kube/naming"
)

const byPlacement = "placement"

// ocm is Open Cluster Management's Placements, whichever scheduler decides them.
type ocm struct{ reader client.Reader }

var _ source = (*ocm)(nil)

func (*ocm) name() string               { return "placement.standardocm" }
func (*ocm) group() string              { return ocmclusterv1beta1.GroupName }
func (*ocm) kind(string) string         { return "Placement" }
func (*ocm) empty(string) client.Object { return &ocmclusterv1beta1.Placement{} }
func (*ocm) publishes() bool            { return true }

// chosen has a part for each PlacementDecision, so that clusters keep their order and their object. It
// waits until there are as many clusters as in the Placement's status, because decisions are written
// before the status, one by one.
func (o *ocm) chosen(ctx context.Context, placement client.Object) (parts [][]string, done bool, err error) {
	key := client.ObjectKeyFromObject(placement)
	var list ocmclusterv1beta1.PlacementDecisionList
	if err := o.reader.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{byPlacement: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, fmt.Errorf("listing the decisions of Placement %s: %w", key, err)
	}
	// Their names end with their number.
	slices.SortFunc(list.Items, func(a, b ocmclusterv1beta1.PlacementDecision) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	found := 0
	for i := range list.Items {
		var part []string
		for _, decision := range list.Items[i].Status.Decisions {
			part = append(part, decision.ClusterName)
		}
		parts, found = append(parts, part), found+len(part)
	}
	status := &placement.(*ocmclusterv1beta1.Placement).Status
	return parts, len(status.Conditions) > 0 && found == int(status.NumberOfSelectedClusters), nil
}

func (*ocm) watch(b *builder.Builder) *builder.Builder {
	return b.
		Watches(&ocmclusterv1beta1.Placement{}, &handler.EnqueueRequestForObject{}).
		Watches(&ocmclusterv1beta1.PlacementDecision{}, enqueue.After(settle, func(object client.Object) []types.NamespacedName {
			name := naming.Labelled(object, ocmclusterv1beta1.PlacementLabel)
			if name == "" {
				return nil
			}
			return []types.NamespacedName{{Namespace: object.GetNamespace(), Name: name}}
		}))
}

func (*ocm) addIndex(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &ocmclusterv1beta1.PlacementDecision{}, byPlacement, func(object client.Object) []string {
		return []string{naming.Labelled(object, ocmclusterv1beta1.PlacementLabel)}
	})
	if err != nil {
		return fmt.Errorf("indexing PlacementDecisions by Placement: %w", err)
	}
	return nil
}
