// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// Admission is whether the hub has a place for the member: its InternalMemberCluster is
// there, and the agent has not left by it. An agent works while there is one. Without one
// the hub would refuse all that it asks, so it only asks for that, until a MemberCluster
// is made again. Make it with NewAdmission.
type Admission struct {
	path     string
	hub      rest.Interface
	enrolled func() error
	clock    clock.Clock
	// doubted has one place: the hub refused something that it grants its members.
	doubted chan struct{}
}

const (
	// firstAdmissionRetry and admissionRetry bound the wait until the hub is asked again.
	// Mostly the place is about to be made, and whoever makes a MemberCluster waits for its
	// agent.
	firstAdmissionRetry = 100 * time.Millisecond
	admissionRetry      = 3 * time.Second
	// enrolledRetry is how often is looked whether the agent is enrolled: until then the
	// hub need not be asked.
	enrolledRetry = time.Second
)

// NewAdmission asks the hub that config leads to. enrolled is nil while the hub accepts
// the agent's identity, as the method Ready of those who keep it.
func NewAdmission(member string, config *rest.Config, enrolled func() error, clock clock.Clock) (*Admission, error) {
	hub, err := restClient(config)
	if err != nil {
		return nil, err
	}
	return &Admission{path: internalPath(member), hub: hub, enrolled: enrolled, clock: clock, doubted: make(chan struct{}, 1)}, nil
}

// internalPath is where the one object is that only the member's identity may read.
func internalPath(member string) string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/internalmemberclusters/%s",
		clusterv1beta1.GroupVersion, clusterv1beta1.MemberNamespace(member), member)
}

// Await returns nil once there is a place, or why the context ended.
func (a *Admission) Await(ctx context.Context) error {
	told, again := "", firstAdmissionRetry
	for {
		wait := enrolledRetry
		if a.enrolled() == nil { // Else whoever enrolls says why not.
			wait, again = again, min(2*again, admissionRetry)
			is, why := a.ask(ctx)
			if is == admitted {
				return nil
			}
			if ctx.Err() == nil && why != told {
				log.FromContext(ctx).Info("The hub has no place for this member: create its MemberCluster there", "reason", why)
				told = why
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for a place on the hub: %w", ctx.Err())
		case <-a.clock.After(wait):
		}
	}
}

// Doubt has Hold look whether the place is still there. It never blocks.
func (a *Admission) Doubt() {
	select {
	case a.doubted <- struct{}{}:
	default:
	}
}

// Hold returns when the place is no more, or the context ends.
func (a *Admission) Hold(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.doubted:
		}
		if is, why := a.ask(ctx); is == dismissed {
			log.FromContext(ctx).Info("The hub let this member go; what was placed on it stays", "reason", why)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-a.clock.After(doubtInterval):
		}
	}
}

// answer is the hub's.
type answer int

const (
	unknown answer = iota
	admitted
	dismissed
)

// ask returns the answer and, unless it is a yes, why.
func (a *Admission) ask(ctx context.Context) (answer, string) {
	content, err := a.hub.Get().AbsPath(a.path).Do(ctx).Raw()
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return dismissed, err.Error()
	case err != nil:
		return unknown, cause(err).Error()
	}
	var internal clusterv1beta1.InternalMemberCluster
	if err := json.Unmarshal(content, &internal); err != nil {
		return unknown, "reading the InternalMemberCluster: " + err.Error()
	}
	if hasLeft(&internal) {
		return dismissed, "the agent has left, as the hub asked"
	}
	return admitted, ""
}

// hasLeft tells whether the agent has done what the hub asked when it let the member go.
// One that was started meanwhile has it still to say.
func hasLeft(internal *clusterv1beta1.InternalMemberCluster) bool {
	agent := internal.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if internal.Spec.State != clusterv1beta1.ClusterStateLeave || agent == nil {
		return false
	}
	joined := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionJoined)
	return joined != nil && joined.Status == metav1.ConditionFalse && joined.ObservedGeneration >= internal.Generation
}
