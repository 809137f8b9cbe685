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

// Admission reports whether the hub has a MemberCluster for the agent: the member's
// InternalMemberCluster exists, and the agent has not left by it. Without it the hub forbids all
// requests of the agent, so the agent does nothing but wait until a MemberCluster is created again.
// Create it with NewAdmission.
type Admission struct {
	path     string
	hub      rest.Interface
	enrolled func() error
	clock    clock.Clock
	// recheck has capacity one. It signals that the hub rejected a request that members are
	// allowed.
	recheck chan struct{}
}

const (
	// firstAdmissionRetry and admissionRetry bound the retry delay. In most cases a user is just
	// creating the MemberCluster and waits for the agent.
	firstAdmissionRetry = 100 * time.Millisecond
	admissionRetry      = 3 * time.Second
	// enrolledRetry is the interval of checks whether the agent is enrolled. It sends no request to
	// the hub before.
	enrolledRetry = time.Second
)

// NewAdmission returns an Admission for the hub of config. enrolled returns nil while the hub
// accepts the agent's identity, like the method Ready of Enroller and External.
func NewAdmission(member string, config *rest.Config, enrolled func() error, clock clock.Clock) (*Admission, error) {
	hub, err := restClient(config)
	if err != nil {
		return nil, err
	}
	return &Admission{path: internalPath(member), hub: hub, enrolled: enrolled, clock: clock, recheck: make(chan struct{}, 1)}, nil
}

// internalPath is the path of the member's InternalMemberCluster, which only the member's identity
// can read.
func internalPath(member string) string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/internalmemberclusters/%s",
		clusterv1beta1.GroupVersion, clusterv1beta1.MemberNamespace(member), member)
}

// Await returns nil once the member is admitted, or an error when the context ends.
func (a *Admission) Await(ctx context.Context) error {
	logged, retry := "", firstAdmissionRetry
	for {
		wait := enrolledRetry
		if a.enrolled() == nil { // Otherwise the enroller reports the reason.
			wait, retry = retry, min(2*retry, admissionRetry)
			result, reason := a.check(ctx)
			if result == admitted {
				return nil
			}
			if ctx.Err() == nil && reason != logged {
				log.FromContext(ctx).Info("The hub has no place for this member: create its MemberCluster there", "reason", reason)
				logged = reason
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for a place on the hub: %w", ctx.Err())
		case <-a.clock.After(wait):
		}
	}
}

// Recheck makes AwaitDismissal check the admission. It never blocks.
func (a *Admission) Recheck() {
	select {
	case a.recheck <- struct{}{}:
	default:
	}
}

// AwaitDismissal returns when the member is no longer admitted, or when the context ends.
func (a *Admission) AwaitDismissal(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.recheck:
		}
		if result, reason := a.check(ctx); result == dismissed {
			log.FromContext(ctx).Info("The hub removed this member; placed resources stay", "reason", reason)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-a.clock.After(recheckInterval):
		}
	}
}

// admissionResult is the hub's response.
type admissionResult int

const (
	unknown admissionResult = iota
	admitted
	dismissed
)

// check returns the result and, unless it is admitted, the reason.
func (a *Admission) check(ctx context.Context) (admissionResult, string) {
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
		return dismissed, "the agent has left because the hub requested it"
	}
	return admitted, ""
}

// hasLeft reports whether the agent has left as the hub requested. After a
// restart, the agent still has to report it.
func hasLeft(internal *clusterv1beta1.InternalMemberCluster) bool {
	agent := internal.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if internal.Spec.State != clusterv1beta1.ClusterStateLeave || agent == nil {
		return false
	}
	joined := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionJoined)
	return joined != nil && joined.Status == metav1.ConditionFalse && joined.ObservedGeneration >= internal.Generation
}
