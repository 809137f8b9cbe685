// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	// maxNamespaces limits the reported namespaces, the first by name. KubeFleet's agents have the
	// same limit.
	maxNamespaces = 200
	// namespacesSettle is how long changes of namespaces are collected: namespaces are often
	// created in groups.
	namespacesSettle = time.Second
	// namespacesPause is the minimum interval between two reports because of namespaces.
	namespacesPause = 10 * time.Second
	// namespacesRetry is the delay before namespaces are watched again.
	namespacesRetry = 5 * time.Second
)

// Namespaces collects the namespaces of the member. Terminating namespaces do not count, because
// nothing can be placed there. Create it with NewNamespaces, and call Run.
type Namespaces struct {
	*notice
	member metadata.Getter
}

// NewNamespaces returns the Namespaces of the client's member.
func NewNamespaces(member metadata.Interface, clock clock.WithDelayedExecution) *Namespaces {
	return &Namespaces{
		member: member.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")),
		notice: newNotice(clock, namespacesSettle, namespacesPause),
	}
}

// collection is the report about the member's namespaces.
type collection struct {
	// owners maps each namespace to the name of its AppliedWork, or "".
	owners map[string]string
	// condition reports whether the collection is complete.
	condition metav1.Condition
}

// collect lists the namespaces. If the agent lacks the right to do so, the condition says so.
func (n *Namespaces) collect(ctx context.Context) (*collection, error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	owners, all := map[string]string{}, true
	err := inPages(func(options metav1.ListOptions) (string, error) {
		list, err := n.member.List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if !list.Items[i].DeletionTimestamp.IsZero() {
				continue
			}
			if len(owners) == maxNamespaces {
				all = false
				return "", nil
			}
			owners[list.Items[i].Name] = ownerOf(&list.Items[i])
		}
		return list.Continue, nil
	})
	switch {
	case apierrors.IsForbidden(err):
		return &collection{condition: namespacesCondition(metav1.ConditionUnknown, clusterv1beta1.ReasonNamespacesForbidden,
			"the agent is not allowed to list and watch namespaces of the member: grant its account these rights there, or remove member.collectNamespaces")}, nil
	case err != nil:
		return nil, fmt.Errorf("listing namespaces: %w", err)
	case !all:
		return &collection{owners, namespacesCondition(metav1.ConditionFalse, clusterv1beta1.ReasonNamespacesDegraded,
			fmt.Sprintf("the member has more than %d namespaces: only the first are reported, and no placement skips the member", maxNamespaces))}, nil
	}
	return &collection{owners, namespacesCondition(metav1.ConditionTrue, clusterv1beta1.ReasonNamespacesCollected, "all namespaces of the member are reported")}, nil
}

func namespacesCondition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: clusterv1beta1.ConditionNamespacesCollected, Status: status, Reason: reason, Message: message}
}

// ownerOf returns the name of the AppliedWork that owns a namespace.
func ownerOf(namespace *metav1.PartialObjectMetadata) string {
	for _, owner := range namespace.OwnerReferences {
		if owner.Kind == "AppliedWork" && strings.HasPrefix(owner.APIVersion, placementv1beta1.GroupName+"/") {
			return owner.Name
		}
	}
	return ""
}

// setStatus sets the collection in a status. If it is nil, it is unknown and the previous one stays.
func (c *collection) setStatus(status *clusterv1beta1.InternalMemberClusterStatus, generation int64, now time.Time) {
	if c == nil {
		return
	}
	status.Namespaces = c.owners
	setCondition(&status.Conditions, generation, c.condition, now)
}

// removeNamespaces removes the collection if the agent no longer collects namespaces.
func removeNamespaces(status *clusterv1beta1.InternalMemberClusterStatus) {
	status.Namespaces = nil
	meta.RemoveStatusCondition(&status.Conditions, clusterv1beta1.ConditionNamespacesCollected)
}

// Run triggers a report when namespaces change, until ctx ends. It does not report a forbidden
// watch; the list of each heartbeat does.
func (n *Namespaces) Run(ctx context.Context) error {
	n.follow(ctx, n.member, namespacesRetry)
	return nil
}
