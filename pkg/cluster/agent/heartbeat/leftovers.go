// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// collectLeftovers finds the retained objects of a hub by their annotations, so that it also finds those
// of an earlier agent. The member's API server answers from its watch cache. A kind that the agent is not
// allowed to list has none.
func collectLeftovers(ctx context.Context, member metadata.Interface, hub string) (retention.Leftovers, error) {
	found := retention.Leftovers{}
	for _, data := range retention.Kinds() {
		list, err := member.Resource(data.Resource).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", data.Resource.Resource, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			origin, of := retention.CutHub(object.Annotations[placementv1beta1.RetainedFromAnnotation])
			if origin != "" && of == hub {
				found.Add(origin, data.Kind+" "+strings.TrimPrefix(object.Namespace+"/"+object.Name, "/"))
			}
		}
	}
	return found, nil
}

// leftovers is nil if they are unknown.
func (r *Reconciler) leftovers(ctx context.Context) *string {
	if r.Metadata == nil {
		return nil
	}
	found, err := collectLeftovers(ctx, r.Metadata, r.HubName)
	if err != nil {
		log.FromContext(ctx).Info("Could not find the member's retained objects; the hub keeps the previous report", "error", err.Error())
		return nil
	}
	return new(found.String())
}
