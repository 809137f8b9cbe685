// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// spend records one use of the token for the request, which gets that Cluster. The use is stored before
// anything is created: a gateway that was killed in between finds the request there and continues. The
// write fails if the token changed since it was read, so two concurrent clusters cannot both get the
// last use. A key that registers again with another request, for the same Cluster or not, needs another
// use.
func (r *GrantReconciler) spend(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, cluster string, allowed allowance) (*refusal.Refusal, error) {
	used := usedBy(allowed.token)
	had := slices.ContainsFunc(used, func(use string) bool { return strings.HasSuffix(use, "/"+string(request.UID)) })
	if allowed.uses == 0 || had {
		return nil, nil
	}
	if allowed.reachedUseLimit() {
		return refusal.New(registrationv1alpha1.RegistrationReasonTokenUseLimitReached, "%s", useLimitReached(allowed)), nil
	}
	used = append(used, cluster+"/"+string(request.UID))
	return nil, reconcileutil.Patch(ctx, r.Client, allowed.token, func() {
		metav1.SetMetaDataAnnotation(&allowed.token.ObjectMeta, registrationv1alpha1.AnnotationUsedBy, strings.Join(used, ","))
	}, "recording a use of ClusterRegistrationToken %q", allowed.token.Name)
}

// usedBy are the keys that registered with a token of limited uses.
func usedBy(token *registrationv1alpha1.ClusterRegistrationToken) []string {
	return strings.FieldsFunc(token.Annotations[registrationv1alpha1.AnnotationUsedBy], func(c rune) bool { return c == ',' })
}

func (t allowance) reachedUseLimit() bool { return t.uses > 0 && len(usedBy(t.token)) >= t.uses }

// useLimitReached is the message for the agent that registers and for the user who created the token,
// because only that user can notice that the token leaked.
func useLimitReached(t allowance) string {
	return fmt.Sprintf("ClusterRegistrationToken %q has reached its use limit, %d of %d: give the agent the values of a new token; "+
		"annotation %s of the token names the Clusters that used it: if one of them is not yours, delete it and find out who has your tokens",
		t.token.Name, len(usedBy(t.token)), t.uses, registrationv1alpha1.AnnotationUsedBy)
}

// restricted reports the risk of a leaked token. A token that admits clusters without approval is
// harmless only if it is for one Cluster, or if they are few and choose no labels.
func restricted(t allowance, refused *refusal.Refusal) metav1.Condition {
	condition := metav1.Condition{
		Type: registrationv1alpha1.TokenConditionRestricted, Status: metav1.ConditionTrue, Reason: registrationv1alpha1.TokenReasonRestricted,
	}
	switch {
	case refused != nil:
		condition.Message = "it admits no cluster"
	case t.cluster != "":
		condition.Message = fmt.Sprintf("it is for Cluster %q only", t.cluster)
	case !t.approved:
		condition.Message = "each cluster that registers with it needs an approval"
	case t.uses > 0 && len(t.labels) == 0:
		condition.Message = fmt.Sprintf("it admits at most %d clusters, which choose no labels", t.uses)
	default:
		condition.Status, condition.Reason = metav1.ConditionFalse, registrationv1alpha1.TokenReasonPermissive
		condition.Message = permissive(t)
	}
	return condition
}

func permissive(t allowance) string {
	number, labels := "any number of clusters", "which choose no labels"
	if t.uses > 0 {
		number = fmt.Sprintf("%d clusters", t.uses)
	}
	switch {
	case slices.Contains(t.labels, "*"):
		labels = "which choose any labels"
	case len(t.labels) > 0:
		labels = "which choose the labels " + strings.Join(t.labels, ",")
	}
	return fmt.Sprintf("its holder can register %s, %s, and placements may choose them at once: set the annotations %s, %s and %s, "+
		"or start the gateway with --registration-policy=strict",
		number, labels, registrationv1alpha1.AnnotationApproval, registrationv1alpha1.AnnotationUses, registrationv1alpha1.AnnotationAllowedLabels)
}
