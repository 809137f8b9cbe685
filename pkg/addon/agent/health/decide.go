// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

// grace is how long an agent may fail to renew its Lease: five times the interval that libraries for
// add-ons use.
const grace = 5 * time.Minute

// leaseOf is the Lease that tells about an add-on, and false if none does.
func leaseOf(addOn *addonv1alpha1.ManagedClusterAddOn) (types.NamespacedName, bool) {
	host := addOn.Annotations[addonv1alpha1.HostingClusterAnnotation]
	if addOn.DeletionTimestamp != nil || addOn.Status.HealthCheck.Mode == addonv1alpha1.HealthCheckCustomized || host != "" && host != addOn.Namespace {
		return types.NamespacedName{}, false
	}
	namespace := cmp.Or(addOn.Status.Namespace, addOn.Spec.InstallNamespace, addonv1alpha1.DefaultInstallNamespace)
	return types.NamespacedName{Namespace: namespace, Name: addOn.Name}, true
}

// conditionOf is condition Available of an add-on by its Lease, nil if there is none, and when a healthy
// one expires. The messages are those of Open Cluster Management, which clients compare.
func conditionOf(name string, lease *coordinationv1.Lease, now time.Time) (condition metav1.Condition, expires time.Time) {
	condition = metav1.Condition{Type: addonv1alpha1.ConditionAvailable}
	switch {
	case lease == nil:
		condition.Status, condition.Reason = metav1.ConditionUnknown, addonv1alpha1.ReasonLeaseNotFound
		condition.Message = fmt.Sprintf("The status of %s add-on is unknown because its lease does not exist on the cluster", name)
	case lease.Spec.RenewTime == nil || !now.Before(lease.Spec.RenewTime.Add(grace)):
		condition.Status, condition.Reason = metav1.ConditionFalse, addonv1alpha1.ReasonLeaseUpdateStopped
		condition.Message = fmt.Sprintf("%s add-on is not available.", name)
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, addonv1alpha1.ReasonLeaseUpdated
		condition.Message = fmt.Sprintf("%s add-on is available.", name)
		expires = lease.Spec.RenewTime.Add(grace)
	}
	return condition, expires
}
