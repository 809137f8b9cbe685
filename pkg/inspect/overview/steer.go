// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Change is a patch request for one object. It can be shown before it is sent, and is sent exactly as
// shown, byte for byte.
type Change struct {
	object client.Object
	// body is a merge patch without unprintable characters.
	body []byte
	// status is true for a patch of the status subresource.
	status bool
}

// changeOf is the patch from before to after.
func changeOf(before, after client.Object, status bool, options ...client.MergeFromOption) (Change, error) {
	body, err := client.MergeFromWithOptions(before, options...).Data(after)
	if err != nil {
		return Change{}, fmt.Errorf("building the patch for %s: %w", NameOf(after), err)
	}
	return Change{after, untrusted.VisibleJSON(body), status}, nil
}

// Name is the name of the object, with the namespace in front if there is one.
func (c Change) Name() string { return NameOf(c.object) }

// Request formats the change as an HTTP request: method, path and body.
func (h *Hub) Request(c Change) (string, error) {
	kind, err := apiutil.GVKForObject(c.object, h.Scheme())
	if err != nil {
		return "", err
	}
	mapping, err := h.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", fmt.Errorf("looking up kind %s on the hub: %w", kind.Kind, err)
	}
	path := "/apis/" + kind.GroupVersion().String()
	if namespace := c.object.GetNamespace(); namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + mapping.Resource.Resource + "/" + c.object.GetName()
	if c.status {
		path += "/status"
	}
	return fmt.Sprintf("PATCH %s\nContent-Type: %s\n\n%s", path, types.MergePatchType, c.body), nil
}

// Send sends the change with the user's credentials. It returns a conflict if the object was changed
// or replaced since the change was built.
func (h *Hub) Send(ctx context.Context, c Change) error {
	patch := client.RawPatch(types.MergePatchType, c.body)
	send := func() error { return h.Patch(ctx, c.object, patch) }
	if c.status {
		send = func() error { return h.Status().Patch(ctx, c.object, patch) }
	}
	if err := send(); err != nil {
		return fmt.Errorf("patching %s: %w", c.Name(), err)
	}
	return nil
}

// Approvals returns the changes that approve the pending approval requests of a run, or only those of
// a stage. With names the client in the message of the condition.
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
			Message: "Approved with " + with, ObservedGeneration: request.GetGeneration(),
		})
		// A merge patch replaces the list of conditions: the lock keeps conditions that others add.
		change, err := changeOf(before, request, true, client.MergeFromWithOptimisticLock{})
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// Steering is the change that starts, resumes or stops a run.
func (h *Hub) Steering(ctx context.Context, name string, state placementv1beta1.UpdateRunState) (Change, error) {
	run, err := h.Run(ctx, name)
	if err != nil {
		return Change{}, err
	}
	before := run.DeepCopyObject().(client.Object)
	run.GetSpec().State = state
	// The patch has the UID but no resource version: the status changes all the time, which must
	// not block stopping, but a new run with the same name must not be changed.
	before.SetUID("")
	return changeOf(before, run, false)
}

// WaitingApprovals lists the approval requests of a run that are not approved.
func (h *Hub) WaitingApprovals(ctx context.Context, run placementv1beta1.UpdateRunObject) ([]placementv1beta1.ApprovalRequestObject, error) {
	requests, err := h.approvalsOf(ctx, run)
	return slices.DeleteFunc(requests, func(r placementv1beta1.ApprovalRequestObject) bool {
		return meta.IsStatusConditionTrue(r.GetStatus().Conditions, placementv1beta1.ConditionApprovalRequestApproved)
	}), err
}
