// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Change is a request that changes one object: it can be shown before it is sent.
type Change struct {
	before, after client.Object
	// status is true if it changes the status alone.
	status bool
}

// Name is that of the object, with the namespace in front where there is one.
func (c Change) Name() string { return NameOf(c.after) }

// Request is the change as it is sent: method, path and body.
func (h *Hub) Request(c Change) (string, error) {
	kind, err := apiutil.GVKForObject(c.after, h.Scheme())
	if err != nil {
		return "", err
	}
	mapping, err := h.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", fmt.Errorf("asking the hub for kind %s: %w", kind.Kind, err)
	}
	body, err := client.MergeFrom(c.before).Data(c.after)
	if err != nil {
		return "", err
	}
	path := "/apis/" + kind.GroupVersion().String()
	if namespace := c.after.GetNamespace(); namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + mapping.Resource.Resource + "/" + c.after.GetName()
	if c.status {
		path += "/status"
	}
	return fmt.Sprintf("PATCH %s\nContent-Type: application/merge-patch+json\n\n%s", path, body), nil
}

// Send makes the change, as the user.
func (h *Hub) Send(ctx context.Context, c Change) error {
	send := func() error { return h.Patch(ctx, c.after, client.MergeFrom(c.before)) }
	if c.status {
		send = func() error { return h.Status().Patch(ctx, c.after, client.MergeFrom(c.before)) }
	}
	if err := send(); err != nil {
		return fmt.Errorf("changing %s: %w", c.Name(), err)
	}
	return nil
}

// Approvals are the changes that approve what a run asks for and nobody has answered; with a
// stage of that alone. With says who approves, for the condition.
func (h *Hub) Approvals(ctx context.Context, name, stage, with string) ([]Change, error) {
	run, err := h.Run(ctx, name)
	if err != nil {
		return nil, err
	}
	requests, err := h.WaitingApprovals(ctx, run)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, request := range requests {
		if stage != "" && request.GetSpec().TargetStage != stage {
			continue
		}
		before := request.DeepCopyObject().(client.Object)
		meta.SetStatusCondition(&request.GetStatus().Conditions, metav1.Condition{
			Type: placementv1beta1.ConditionApprovalRequestApproved, Status: metav1.ConditionTrue, Reason: "ApprovedByUser",
			Message: "approved with " + with, ObservedGeneration: request.GetGeneration(),
		})
		changes = append(changes, Change{before, request, true})
	}
	return changes, nil
}

// Steering is the change that has a run go on, or stop.
func (h *Hub) Steering(ctx context.Context, name string, state placementv1beta1.UpdateRunState) (Change, error) {
	run, err := h.Run(ctx, name)
	if err != nil {
		return Change{}, err
	}
	before := run.DeepCopyObject().(client.Object)
	run.GetSpec().State = state
	return Change{before, run, false}, nil
}

// WaitingApprovals are what a run asks for and nobody has approved.
func (h *Hub) WaitingApprovals(ctx context.Context, run placementv1beta1.UpdateRunObject) ([]placementv1beta1.ApprovalRequestObject, error) {
	requests, err := h.approvalsOf(ctx, run)
	return slices.DeleteFunc(requests, func(r placementv1beta1.ApprovalRequestObject) bool {
		return meta.IsStatusConditionTrue(r.GetStatus().Conditions, placementv1beta1.ConditionApprovalRequestApproved)
	}), err
}
