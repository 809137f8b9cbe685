// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
)

const (
	// Name is the name of the AddOnPlacementScore.
	Name = clusterv1alpha1.ResourceUsageScore
	// owner is the field manager.
	owner = client.FieldOwner("fleetgate-agent")
	// label is on the object, with the value labelValue. An object without it is somebody else's.
	label, labelValue = "app.kubernetes.io/managed-by", "fleetgate"
)

var errForeign = errors.New("the object was created by another provider: delete it, or disable member.resourceScores")

// Free is the latest known free resources of a member. The zero value is ready to use.
type Free struct {
	// mu guards the following fields.
	mu      sync.Mutex
	free    corev1.ResourceList
	changed chan struct{}
}

// Set stores the resources. The caller must not modify them afterwards.
func (f *Free) Set(free corev1.ResourceList) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = free
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// get returns the resources, nil if they are not known yet, and a channel that is closed by the next Set.
func (f *Free) get() (corev1.ResourceList, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.free, f.changed
}

// Reporter writes the scores of a member. All fields are required.
type Reporter struct {
	// Hub reads from the API server.
	Hub client.Client
	// Namespace is that of the cluster on the hub.
	Namespace string
	Free      *Free
	Clock     clock.PassiveClock
}

// Run writes scores until the context ends. It acts when the free resources were counted again, with each
// heartbeat.
func (r *Reporter) Run(ctx context.Context) {
	var has *clusterv1alpha1.AddOnPlacementScoreStatus
	reported := ""
	for {
		free, changed := r.Free.get()
		if free != nil {
			written, err := r.report(ctx, has, Of(free))
			switch {
			case err == nil:
				has, reported = written, ""
			case ctx.Err() == nil && err.Error() != reported:
				reported = err.Error()
				log.FromContext(ctx).Error(err, "Could not write the scores of the member; retrying with each heartbeat")
			}
			if err != nil {
				has = nil // Somebody may have changed or deleted the object.
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// report writes scores if they are due, and returns what the hub has then. has is nil if that is unknown.
func (r *Reporter) report(ctx context.Context, has *clusterv1alpha1.AddOnPlacementScoreStatus, scores []clusterv1alpha1.AddOnPlacementScoreItem) (*clusterv1alpha1.AddOnPlacementScoreStatus, error) {
	if has == nil {
		current, err := r.read(ctx)
		if err != nil {
			return nil, err
		}
		has = &current.Status
	}
	now := r.Clock.Now()
	if !isDue(has, scores, now) {
		return has, nil
	}
	until := metav1.NewTime(now.Add(validity).Truncate(time.Second))
	status := clusterv1alpha1.AddOnPlacementScoreStatus{Scores: scores, ValidUntil: &until}
	content, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, fmt.Errorf("encoding scores: %w", err)
	}
	object := r.object()
	if err := r.Hub.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, content), owner); err != nil {
		return nil, fmt.Errorf("writing AddOnPlacementScore %s/%s: %w", r.Namespace, Name, err)
	}
	return &object.Status, nil
}

// read returns the object, and creates it if there is none.
func (r *Reporter) read(ctx context.Context) (*clusterv1alpha1.AddOnPlacementScore, error) {
	current := r.object()
	err := r.Hub.Get(ctx, client.ObjectKeyFromObject(current), current)
	if apierrors.IsNotFound(err) {
		return r.create(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("reading AddOnPlacementScore %s/%s: %w", r.Namespace, Name, err)
	}
	if current.Labels[label] != labelValue {
		return nil, fmt.Errorf("writing AddOnPlacementScore %s/%s: %w", r.Namespace, Name, errForeign)
	}
	return current, nil
}

// create creates the object. A create request has no name to which a right could be limited, but an apply
// request has.
func (r *Reporter) create(ctx context.Context) (*clusterv1alpha1.AddOnPlacementScore, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("AddOnPlacementScore"))
	object.SetNamespace(r.Namespace)
	object.SetName(Name)
	object.SetLabels(map[string]string{label: labelValue})
	if err := r.Hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), owner); err != nil {
		return nil, fmt.Errorf("creating AddOnPlacementScore %s/%s: %w", r.Namespace, Name, err)
	}
	return r.object(), nil
}

// Remove deletes the scores of a member that no longer reports any.
func (r *Reporter) Remove(ctx context.Context) error {
	current := r.object()
	err := r.Hub.Get(ctx, client.ObjectKeyFromObject(current), current)
	if err == nil && current.Labels[label] == labelValue {
		uid := current.UID
		err = r.Hub.Delete(ctx, current, client.Preconditions{UID: &uid})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting AddOnPlacementScore %s/%s: %w", r.Namespace, Name, err)
	}
	return nil
}

func (r *Reporter) object() *clusterv1alpha1.AddOnPlacementScore {
	return &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: Name}}
}
