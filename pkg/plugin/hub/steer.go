// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf16"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Change is a request that changes one object: it can be shown before it is sent, and what is
// sent is what was shown, byte for byte.
type Change struct {
	object client.Object
	// body is a merge patch in letters that all show.
	body []byte
	// status is true if it changes the status alone.
	status bool
}

// changeOf is what leads from before to after.
func changeOf(before, after client.Object, status bool, options ...client.MergeFromOption) (Change, error) {
	body, err := client.MergeFromWithOptions(before, options...).Data(after)
	if err != nil {
		return Change{}, fmt.Errorf("making the change of %s: %w", NameOf(after), err)
	}
	return Change{after, Visible(body), status}, nil
}

// Visible writes what does not show in JSON, or turns what is beside it, as JSON's escapes: it
// means the same, and who looks at it sees it. A line's end is not in a text, and stays.
func Visible(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		if unicode.IsPrint(r) || r == '\n' {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}

// Name is that of the object, with the namespace in front where there is one.
func (c Change) Name() string { return NameOf(c.object) }

// Request is the change as it is sent: method, path and body.
func (h *Hub) Request(c Change) (string, error) {
	kind, err := apiutil.GVKForObject(c.object, h.Scheme())
	if err != nil {
		return "", err
	}
	mapping, err := h.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", fmt.Errorf("asking the hub for kind %s: %w", kind.Kind, err)
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

// Send makes the change, as the user. It is a conflict if the object is not what it was when
// the change was made.
func (h *Hub) Send(ctx context.Context, c Change) error {
	patch := client.RawPatch(types.MergePatchType, c.body)
	send := func() error { return h.Patch(ctx, c.object, patch) }
	if c.status {
		send = func() error { return h.Status().Patch(ctx, c.object, patch) }
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
		// The list of conditions is sent as a whole: what others add meanwhile is not lost.
		change, err := changeOf(before, request, true, client.MergeFromWithOptimisticLock{})
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
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
	// The run's status changes all the time, which is no reason not to stop it. It has to be
	// this run, and not one that has got its name since.
	before.SetUID("")
	return changeOf(before, run, false)
}

// WaitingApprovals are what a run asks for and nobody has approved.
func (h *Hub) WaitingApprovals(ctx context.Context, run placementv1beta1.UpdateRunObject) ([]placementv1beta1.ApprovalRequestObject, error) {
	requests, err := h.approvalsOf(ctx, run)
	return slices.DeleteFunc(requests, func(r placementv1beta1.ApprovalRequestObject) bool {
		return meta.IsStatusConditionTrue(r.GetStatus().Conditions, placementv1beta1.ConditionApprovalRequestApproved)
	}), err
}
